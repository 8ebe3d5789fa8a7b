from __future__ import annotations

from typing import Any

import pytest

from pytest_evalarc.clients.embedded.nop import nop
from pytest_evalarc.errors import UsageError
from tests.evals import Offer, Shell, registry


def named(name: str, plugin: Any) -> Any:
    plugin.__name__ = name
    return plugin


def test_the_built_in_things_come_through_the_same_hooks() -> None:
    """What a third party can add is exactly what we add ourselves."""
    known = registry()

    assert known.clients.names == ("oracle", "nop", "replay", "claude", "codex", "command")
    assert "skills" in known.treatments.names
    assert "python" in known.toolchains.names
    assert {"bwrap", "local"} <= set(known.sandboxes.names)


def test_a_plugin_adds_a_client_that_is_made_once_and_late() -> None:
    """A client may look for its program, which nobody wants done for a run without it."""
    made: list[Shell] = []

    def make() -> Shell:
        made.append(Shell())
        return made[-1]

    known = registry(Offer(clients={"shell": make}))

    assert known.clients.names[-1] == "shell"
    assert made == []
    assert known.clients.get("shell") is known.clients.get("shell")
    assert len(made) == 1


@pytest.mark.parametrize("name", ["nop", "NOP"])
def test_a_name_offered_twice_is_told_with_both_plugins(name: str) -> None:
    """Whichever won would silently change what every result of that name means."""
    ours = named("agents_of_acme", Offer(clients={name: nop}))

    with pytest.raises(
        UsageError,
        match=f"pytest_evalarc_clients: '{name}': is offered by both "
        "evalarc-builtin and agents_of_acme; rename one",
    ):
        registry(ours)


def test_two_third_parties_can_collide_too() -> None:
    """The sentence names them, for the user can uninstall one."""
    first, second = (named(name, Offer(packs={"p": nop})) for name in ("first", "second"))

    with pytest.raises(UsageError, match="both first and second"):
        registry(first, second)


@pytest.mark.parametrize("kind", ["clients", "treatments", "toolchains", "packs", "sandboxes"])
def test_an_unknown_name_tells_the_nearest(kind: str) -> None:
    """A misspelt name is the user's to fix, so no traceback buries the fix."""
    shelf = getattr(registry(), kind)
    wrong = f"{shelf.names[0]}x"

    with pytest.raises(UsageError, match=f"'{wrong}': there is no such one; .*{shelf.names[0]}"):
        shelf.get(wrong)


@pytest.mark.parametrize(
    ("offer", "sentence"),
    [
        (["nop"], "gave .'nop'.; return a mapping"),
        ({"a b": nop}, "'a b' is not a name"),
        ({"": nop}, "'' is not a name"),
        ({3: nop}, "3 is not a name"),
        ({"shell": None}, "'shell': gave None; give a function"),
    ],
)
def test_a_wrong_offer_names_the_plugin(offer: Any, sentence: str) -> None:
    """It is not the user's mistake, so the sentence says whose it is."""
    with pytest.raises(UsageError, match=f"pytest_evalarc_clients of acme.*{sentence}"):
        registry(named("acme", Offer(clients=offer)))


def test_a_plugin_may_have_nothing_to_offer() -> None:
    """None is the answer of a plugin whose program is not installed."""
    none: Any = None

    assert registry(Offer(clients=none)).clients.names == registry().clients.names
