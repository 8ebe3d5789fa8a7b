"""Every submission of the corpus fools a grader that trusts it, and none of them ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.grading.toolchain import Tools
from tests.adversarial.corpus import SUBMISSIONS, Attack, attacks
from tests.adversarial.submissions import (
    CHILD,
    FORMS,
    fools_an_unprotected_grader,
    graded,
    staged,
)
from tests.needs import needs, needs_bwrap

NEEDS = {"python": (), "node": (needs("node"),), "rust": (needs("cargo"),)}


def each(*, stoppable: bool | None = None) -> pytest.MarkDecorator:
    """Return the parametrization over attacks, with what each needs."""
    chosen = [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow, *NEEDS[one.kind]])
        for one in attacks(*SUBMISSIONS)
        if stoppable is one.stoppable or (stoppable is None and not one.only_ours)
    ]
    return pytest.mark.parametrize("attack", chosen)


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tools]:
    """Return what stages the tools of a language, once for all attacks."""
    made: dict[str, Tools] = {}

    def of(kind: str) -> Tools:
        if kind not in made:
            made[kind] = staged(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return of


@each()
def test_an_unprotected_grader_is_fooled(attack: Attack, tmp_path: Path) -> None:
    """An attack that never wins anywhere shows nothing about a defence."""
    assert fools_an_unprotected_grader(attack, tmp_path)


@needs_bwrap
@pytest.mark.parametrize("form", FORMS)
@each(stoppable=True)
def test_ours_sees_what_it_is(
    attack: Attack, form: str, tmp_path: Path, tools: Callable[[str], Tools]
) -> None:
    """And never as a broken grader, which would buy the submission an exclusion."""
    assert graded(attack, form, tmp_path, tools(attack.kind)) == attack.seen[form]
    assert attack.seen[form] in ("failed", "agent_error", "build_failed")


@needs_bwrap
@pytest.mark.parametrize("form", FORMS)
@each(stoppable=False)
def test_what_shares_a_process_with_its_check_is_told_apart(
    attack: Attack, form: str, tmp_path: Path, tools: Callable[[str], Tools]
) -> None:
    """It wins in the process of a check, is never counted as caught, and loses in the other form.

    The day that one of these loses in both, the documentation claims too little.
    """
    assert graded(attack, form, tmp_path, tools(attack.kind)) == attack.seen[form]
    assert (attack.seen[form] == "passed") is (form != CHILD)
