"""What all treatments decide alike: whether a skill was used, and what becomes of the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pytest_evalarc.model.task import Expected
from pytest_evalarc.model.transcript import Load
from pytest_evalarc.model.trial import Decision, Expectations, SkillFacts, SyncFacts, Verdict
from pytest_evalarc.treatments.loads import Observation, first_alteration, observe_load
from pytest_evalarc.treatments.protocol import Evidence

USED = MappingProxyType[Load, Verdict](
    {
        Load.LOADED: "pass",
        Load.ATTEMPTED: "fail",
        Load.NOT_OBSERVED: "fail",
        Load.UNKNOWN: "inconclusive",
    }
)
"""Verdict on `used` by load."""

NOT_USED = MappingProxyType[Load, Verdict](
    {
        Load.LOADED: "fail",
        # A failed attempt never delivered the skill's content.
        Load.ATTEMPTED: "pass",
        Load.NOT_OBSERVED: "pass",
        Load.UNKNOWN: "inconclusive",
    }
)
"""Verdict on `not_used` by load."""

PLACED = SyncFacts(skill_dir_empty_before="pass")
"""What stands for every treatment that puts skills in place itself: its staging refuses a folder
that is not empty, so no session starts otherwise."""

Judge: TypeAlias = Callable[[str, Evidence], Decision]
"""Decides on one skill or hook, by its name, and calls the decision `<expectation>-<name>`."""


class Judges(NamedTuple):
    """What each treatment decides in its own way."""

    installed: Judge
    not_installed: Judge
    hook: Judge


def decide(
    expected: Expected,
    evidence: Evidence,
    judges: Judges,
    *,
    sync: SyncFacts = PLACED,
    standing: tuple[Decision, ...] = (),
) -> Expectations:
    """Return each expectation's verdict, with what it rests on.

    Args:
        expected: What the task's author expects.
        evidence: What was observed of the session.
        judges: Decide what is not decided alike under all treatments.
        sync: What is known of a sync.
        standing: Decisions that every trial of the treatment is under, whatever its task expects.
    """
    decisions = (*_decisions(expected, evidence, judges), *standing)
    verdicts = {decision.name: decision.verdict for decision in decisions}
    named = (*expected.installed, *expected.not_installed, *expected.used, *expected.not_used)
    return Expectations(
        skills={
            skill: _facts(skill, evidence, verdicts)
            for skill in dict.fromkeys((*evidence.planned, *named))
        },
        hooks={hook: verdicts[f"hook-{hook}"] for hook in expected.hooks},
        sync=sync,
        decisions=decisions,
    )


def not_judged(expectation: str, reason: str) -> Judge:
    """Return what leaves an expectation without a verdict, whatever it names.

    Args:
        expectation: Its kind, as `not_installed`.
        reason: Why there is nothing to decide, as a sentence.
    """

    def judge(name: str, _: Evidence) -> Decision:
        return Decision(name=f"{expectation}-{name}", verdict=None, rests_on=(reason,))

    return judge


def observe(skill: str, evidence: Evidence) -> Observation:
    """Return how the transcript shows the load of one skill."""
    return observe_load(evidence.transcript, evidence.known_as(skill))


def decide_used(skill: str, evidence: Evidence) -> Decision:
    """Return whether a skill that should be used was."""
    return _decide(f"used-{skill}", skill, evidence, verdicts=USED)


def decide_not_used(skill: str, evidence: Evidence) -> Decision:
    """Return whether a skill that should not be used was left alone."""
    return _decide(f"not_used-{skill}", skill, evidence, verdicts=NOT_USED)


def _decisions(expected: Expected, evidence: Evidence, judges: Judges) -> Iterator[Decision]:
    yield from (judges.installed(skill, evidence) for skill in expected.installed)
    yield from (judges.not_installed(skill, evidence) for skill in expected.not_installed)
    yield from (decide_used(skill, evidence) for skill in expected.used)
    yield from (decide_not_used(skill, evidence) for skill in expected.not_used)
    yield from (judges.hook(hook, evidence) for hook in expected.hooks)


def _facts(skill: str, evidence: Evidence, verdicts: Mapping[str, Verdict | None]) -> SkillFacts:
    """Return what is known of one skill, given each decision's verdict by its name."""
    return SkillFacts(
        installed=verdicts.get(f"installed-{skill}"),
        not_installed=verdicts.get(f"not_installed-{skill}"),
        used=verdicts.get(f"used-{skill}"),
        not_used=verdicts.get(f"not_used-{skill}"),
        observed_load=observe(skill, evidence).load,
    )


def _decide(
    name: str, skill: str, evidence: Evidence, *, verdicts: MappingProxyType[Load, Verdict]
) -> Decision:
    observation = observe(skill, evidence)
    altered = _altered_before(skill, evidence, observation)
    if altered:
        return Decision(name=name, verdict="inconclusive", rests_on=(observation.seen, altered))
    return Decision(name=name, verdict=verdicts[observation.load], rests_on=(observation.seen,))


def _altered_before(skill: str, evidence: Evidence, observation: Observation) -> str:
    """Return what speaks of a change before the load, or an empty string: then it stands."""
    if observation.load is not Load.LOADED or observation.call is None:
        return ""
    known = evidence.known_as(skill)
    folder = known.folders[0]
    place = first_alteration(evidence.transcript, known, is_changed=evidence.is_changed(skill))
    if place is None or observation.call <= place:
        return ""
    if place < 0:
        return f"{folder} was changed during the session, at a time that the transcript hides"
    return f"{folder} was or could be changed before, by tool call {place + 1}"
