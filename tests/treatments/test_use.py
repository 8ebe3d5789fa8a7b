from __future__ import annotations

from typing import Literal

import pytest

from pytest_evalarc.model.task import Expected
from pytest_evalarc.model.transcript import Load, ToolCall, Transcript
from pytest_evalarc.model.trial import Decision, SkillFacts, SyncFacts
from pytest_evalarc.treatments.protocol import Evidence
from pytest_evalarc.treatments.use import (
    Judges,
    decide,
    decide_not_used,
    decide_used,
    not_judged,
)

FILE = ".agents/skills/tidy/SKILL.md"


def evidence(*calls: ToolCall, interpreted: bool = True, found: str | None = "d1") -> Evidence:
    return Evidence(
        transcript=Transcript(events=len(calls), tool_calls=calls, interpreted=interpreted),
        skill_folder=".agents/skills",
        planned={"tidy": "d1"},
        found={} if found is None else {"tidy": found},
    )


def call(
    kind: Literal["skill", "read", "edit", "command"], target: str, *, is_error: bool = False
) -> ToolCall:
    return ToolCall(id="x", kind=kind, name=kind, target=target, is_error=is_error)


LOAD = call("read", FILE)
EDIT = call("edit", FILE)


@pytest.mark.parametrize(
    ("seen", "used", "not_used", "sentence"),
    [
        (evidence(LOAD), "pass", "fail", f"tool call 1 (read {FILE}) succeeded"),
        (
            evidence(call("skill", "tidy", is_error=True)),
            "fail",
            "pass",
            "tool call 1 (skill tidy) failed",
        ),
        (evidence(), "fail", "pass", "no call of the wholly interpreted transcript loads tidy"),
        (
            evidence(interpreted=False),
            "inconclusive",
            "inconclusive",
            "no load of tidy was seen in a transcript that was not interpreted whole",
        ),
    ],
)
def test_use_is_decided_from_the_load_and_from_nothing_else(
    seen: Evidence, used: str, not_used: str, sentence: str
) -> None:
    """An attempt that was denied never delivered the skill, and what is unknown decides nothing."""
    for decision, name, verdict in (
        (decide_used("tidy", seen), "used-tidy", used),
        (decide_not_used("tidy", seen), "not_used-tidy", not_used),
    ):
        assert decision.name == name
        assert decision.verdict == verdict
        assert decision.rests_on == (sentence,)


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (
            evidence(EDIT, LOAD),
            ".agents/skills/tidy was or could be changed before, by tool call 1",
        ),
        (
            evidence(call("command", "sed"), LOAD, found="d2"),
            ".agents/skills/tidy was or could be changed before, by tool call 1",
        ),
        (
            evidence(LOAD, found="d2"),
            ".agents/skills/tidy was changed during the session, "
            "at a time that the transcript hides",
        ),
        (
            evidence(LOAD, found=None),
            ".agents/skills/tidy was changed during the session, "
            "at a time that the transcript hides",
        ),
    ],
)
def test_a_load_that_may_have_followed_an_alteration_decides_nothing(
    seen: Evidence, sentence: str
) -> None:
    """What was loaded then may be the agent's own text instead of the plugin's."""
    for decision in (decide_used("tidy", seen), decide_not_used("tidy", seen)):
        assert decision.verdict == "inconclusive"
        assert decision.rests_on[1:] == (sentence,)


@pytest.mark.parametrize(
    "seen",
    [
        evidence(LOAD, EDIT, found="d2"),
        evidence(LOAD, call("command", "rm -r .agents"), found=None),
        evidence(LOAD, EDIT, LOAD, found="d2"),
    ],
)
def test_a_load_before_an_alteration_stands(seen: Evidence) -> None:
    """The plugin's text was delivered; what became of the file later does not undo that."""
    assert decide_used("tidy", seen).verdict == "pass"
    assert decide_not_used("tidy", seen).verdict == "fail"


def test_an_attempt_after_an_alteration_is_still_no_use() -> None:
    """Nothing was delivered, so it does not matter whose text it would have been."""
    seen = evidence(EDIT, call("skill", "tidy", is_error=True), found="d2")

    assert decide_used("tidy", seen).verdict == "fail"
    assert decide_not_used("tidy", seen).verdict == "pass"


def test_an_alteration_without_a_load_leaves_the_absence_proven() -> None:
    """An agent that deletes a skill unread has not used it."""
    seen = evidence(call("command", "rm -r .agents"), found=None)

    assert decide_used("tidy", seen).verdict == "fail"
    assert decide_not_used("tidy", seen).verdict == "pass"


# What becomes of the verdicts.


def there(skill: str, seen: Evidence) -> Decision:
    verdict = "pass" if skill in seen.planned else "fail"
    return Decision(name=f"installed-{skill}", verdict=verdict, rests_on=(skill,))


def ran(hook: str, _: Evidence) -> Decision:
    return Decision(name=f"hook-{hook}", verdict="inconclusive", rests_on=("nobody looked",))


JUDGES = Judges(
    installed=there, not_installed=not_judged("not_installed", "nothing decides"), hook=ran
)


def test_every_expectation_is_decided_once_and_in_the_order_of_a_task() -> None:
    """Each becomes an item of its own, and the facts on a skill gather what concerns it."""
    expected = Expected(
        installed=("tidy", "gone"),
        not_installed=("gone",),
        used=("tidy",),
        not_used=("gone",),
        hooks=("Stop",),
    )

    found = decide(expected, evidence(LOAD), JUDGES)

    assert [(decision.name, decision.verdict) for decision in found.decisions] == [
        ("installed-tidy", "pass"),
        ("installed-gone", "fail"),
        ("not_installed-gone", None),
        ("used-tidy", "pass"),
        ("not_used-gone", "pass"),
        ("hook-Stop", "inconclusive"),
    ]
    assert found.decisions[2].rests_on == ("nothing decides",)
    assert found.skills == {
        "tidy": SkillFacts(installed="pass", used="pass", observed_load=Load.LOADED),
        "gone": SkillFacts(installed="fail", not_used="pass", observed_load=Load.NOT_OBSERVED),
    }
    assert found.hooks == {"Stop": "inconclusive"}
    assert found.sync == SyncFacts(skill_dir_empty_before="pass")


def test_what_every_trial_is_under_comes_behind_what_its_task_expects() -> None:
    """It counts like an expectation, also for a task that states none."""
    standing = Decision(name="sync-recorded", verdict="fail", rests_on=("no record",))

    found = decide(
        Expected(),
        evidence(),
        JUDGES,
        sync=SyncFacts(sync_recorded="fail"),
        standing=(standing,),
    )

    assert found.decisions == (standing,)
    assert found.sync == SyncFacts(sync_recorded="fail")
    assert found.skills == {"tidy": SkillFacts(observed_load=Load.NOT_OBSERVED)}
    assert decide(Expected(used=("tidy",)), evidence(), JUDGES, standing=(standing,)).decisions == (
        decide_used("tidy", evidence()),
        standing,
    )
