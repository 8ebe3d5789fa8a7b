from __future__ import annotations

from typing import Literal

import pytest

from pytest_evalarc.model.transcript import Load, ToolCall, Transcript
from pytest_evalarc.treatments.loads import UNEXPLAINED, Known, first_alteration, observe_load

FOLDER = ".agents/skills/tidy"
FILE = f"{FOLDER}/SKILL.md"
TIDY = Known.at("tidy", FOLDER, project="/run/project")
LOADED = Known(
    skill="tidy",
    names=frozenset({"tidy", "house:tidy"}),
    folders=("/run/plugins/house/skills/tidy",),
    project="/run/project",
)
SUFFIXED = Known(
    skill="tidy",
    names=frozenset({"tidy", "tidy-1a2b3c4d"}),
    folders=(FOLDER, f"{FOLDER}-1a2b3c4d"),
    project="/run/project",
)


def call(
    kind: Literal["skill", "read", "edit", "command", "other"],
    target: str,
    *,
    is_error: bool | None = False,
) -> ToolCall:
    return ToolCall(id="x", kind=kind, name=kind.title(), target=target, is_error=is_error)


def session(*calls: ToolCall, interpreted: bool = True) -> Transcript:
    return Transcript(events=len(calls), tool_calls=calls, interpreted=interpreted)


SKILL = call("skill", "tidy")
READ = call("read", FILE)
DENIED = call("skill", "tidy", is_error=True)
FAILED_READ = call("read", FILE, is_error=True)
UNANSWERED = call("skill", "tidy", is_error=None)


@pytest.mark.parametrize(
    ("calls", "load", "place", "seen"),
    [
        ((SKILL,), Load.LOADED, 0, "tool call 1 (Skill tidy) succeeded"),
        ((READ,), Load.LOADED, 0, f"tool call 1 (Read {FILE}) succeeded"),
        ((DENIED, READ), Load.LOADED, 1, f"tool call 2 (Read {FILE}) succeeded"),
        ((UNANSWERED, SKILL), Load.LOADED, 1, "tool call 2 (Skill tidy) succeeded"),
        ((READ, READ), Load.LOADED, 0, f"tool call 1 (Read {FILE}) succeeded"),
        ((DENIED,), Load.ATTEMPTED, 0, "tool call 1 (Skill tidy) failed"),
        ((FAILED_READ,), Load.ATTEMPTED, 0, f"tool call 1 (Read {FILE}) failed"),
        ((UNANSWERED,), Load.UNKNOWN, 0, "tool call 1 (Skill tidy) has no result"),
        ((DENIED, UNANSWERED), Load.UNKNOWN, 1, "tool call 2 (Skill tidy) has no result"),
        ((), Load.NOT_OBSERVED, None, "no call of the wholly interpreted transcript loads tidy"),
    ],
)
def test_a_load_is_told_by_the_call_that_shows_it(
    calls: tuple[ToolCall, ...], load: Load, place: int | None, seen: str
) -> None:
    """A verdict without the call it rests on could not be checked by anyone."""
    observation = observe_load(session(*calls), TIDY)

    assert (observation.load, observation.call, observation.seen) == (load, place, seen)


@pytest.mark.parametrize(
    "other",
    [
        call("skill", "tidy-up"),
        call("skill", "Tidy"),
        call("read", "SKILL.md"),
        call("read", f"/elsewhere/{FILE}"),
        call("read", f"{FOLDER}/notes.md"),
        call("edit", FILE),
        call("command", f"ls {FOLDER}"),
        call("command", "cat .agents/skills/other/SKILL.md"),
        call("command", "cat .agents/skills/tidy-up/SKILL.md"),
        call("command", "rg --files -g SKILL.md"),
        call("command", "cat SKILL.md.bak | awk '{print $1}'"),
        call("other", "tidy"),
        call("skill", "house:tidy"),
        call("read", f"/run/project/{FOLDER}-2/SKILL.md"),
    ],
)
def test_what_only_resembles_a_load_is_none(other: ToolCall) -> None:
    """A skill of a like name, or another file of it, does not deliver its instructions."""
    assert observe_load(session(other), TIDY).load is Load.NOT_OBSERVED


@pytest.mark.parametrize(
    ("known", "form"),
    [
        (TIDY, call("skill", "/tidy")),
        (TIDY, call("skill", " tidy ")),
        (TIDY, call("read", f"/run/project/{FILE}")),
        (TIDY, call("read", f"./{FILE}")),
        (TIDY, call("read", f".agents/../{FILE}")),
        (LOADED, call("skill", "tidy")),
        (LOADED, call("skill", "house:tidy")),
        (LOADED, call("skill", "/house:tidy")),
        (LOADED, call("read", "/run/plugins/house/skills/tidy/SKILL.md")),
        (SUFFIXED, call("skill", "tidy-1a2b3c4d")),
        (SUFFIXED, call("read", f"{FOLDER}-1a2b3c4d/SKILL.md")),
    ],
)
def test_every_form_in_which_a_client_names_a_skill_is_a_load(known: Known, form: ToolCall) -> None:
    """A client prefixes, suffixes and slashes names as it likes; the text delivered is one."""
    assert observe_load(session(form), known).load is Load.LOADED


def test_a_load_by_a_sub_agent_counts() -> None:
    """It is the same session, and the skill's text reached it."""
    inner = SKILL.model_copy(update={"parent": "call-7"})

    assert observe_load(session(inner), TIDY).load is Load.LOADED


@pytest.mark.parametrize(
    "command",
    [
        "cat .agents/skills/*/SKILL.md",
        "for s in tidy wash; do cat .agents/skills/$s/SKILL.md; done",
        "find . -name SKILL.md -exec cat {} +",
        "find . -name SKILL.md | xargs cat",
        "cd .agents/skills && cat tidy/SKILL.md",
    ],
)
def test_a_command_that_may_reach_the_file_without_spelling_it_is_unknown(command: str) -> None:
    """A glob prints as much as a path does."""
    assert observe_load(session(call("command", command)), TIDY).load is Load.UNKNOWN


def test_a_hostile_command_is_searched_in_time() -> None:
    """A command is the agent's own text, of whatever length and shape."""
    hostile = call("command", "SKILL.md" + "{" * 200_000 + " tidy-" * 20_000)

    assert observe_load(session(hostile), TIDY).load is Load.NOT_OBSERVED


@pytest.mark.parametrize("kind", ["command", "other"])
@pytest.mark.parametrize("is_error", [True, False, None])
def test_a_command_that_names_the_file_leaves_the_load_unknown(
    kind: Literal["command", "other"], is_error: bool | None
) -> None:
    """`cat SKILL.md; false` fails and delivers, `wc SKILL.md` succeeds and does not."""
    command = call(kind, f"cd {FOLDER} && cat SKILL.md; false", is_error=is_error)

    observation = observe_load(session(DENIED, command), TIDY)

    assert observation.load is Load.UNKNOWN
    assert "may have printed it" in observation.seen


@pytest.mark.parametrize(
    ("calls", "load"),
    [
        ((), Load.UNKNOWN),
        ((DENIED,), Load.UNKNOWN),
        ((SKILL,), Load.LOADED),
    ],
)
def test_a_gap_in_the_transcript_spoils_absences_and_no_presence(
    calls: tuple[ToolCall, ...], load: Load
) -> None:
    """The lost line may hold a load; a load that was seen stays seen."""
    transcript = session(*calls, interpreted=False)

    assert observe_load(transcript, TIDY).load is load


def test_foreign_text_in_a_sentence_is_safe_to_print() -> None:
    """A target is the agent's own text, and sentences go to terminals and reports."""
    hostile = call("command", f"cat {FILE} \x1b]0;title\x07" + "x" * 9000)

    seen = observe_load(session(hostile), TIDY).seen

    assert "\x1b" not in seen
    assert len(seen) < 400


EDIT = call("edit", FILE)
COMMAND = call("command", "make")


@pytest.mark.parametrize(
    ("calls", "is_changed", "place"),
    [
        ((READ, COMMAND), False, None),
        ((READ, EDIT), False, 1),
        ((READ, COMMAND, EDIT), True, 2),
        ((call("edit", FILE, is_error=None),), False, 0),
        ((call("edit", FILE, is_error=True),), False, None),
        ((call("edit", ".agents"),), False, 0),
        ((call("edit", f"{FOLDER}-2/SKILL.md"),), False, None),
        ((READ, COMMAND), True, 1),
        ((READ, call("other", "x")), True, 1),
        ((READ,), True, UNEXPLAINED),
        ((), True, UNEXPLAINED),
    ],
)
def test_an_alteration_is_placed_at_the_first_call_that_explains_it(
    calls: tuple[ToolCall, ...], is_changed: bool, place: int | None
) -> None:
    """A load before it delivered the plugin's text; one after it may not have."""
    found = first_alteration(session(*calls), TIDY, is_changed=is_changed)

    assert found == place
