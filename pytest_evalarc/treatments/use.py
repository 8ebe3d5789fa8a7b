"""Whether a skill was used, as any treatment decides it: from the transcript alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_evalarc.model.transcript import Load
from pytest_evalarc.model.trial import Decision, SkillFacts, Verdict
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


def observe(skill: str, evidence: Evidence) -> Observation:
    """Return how the transcript shows the load of one skill."""
    return observe_load(evidence.transcript, evidence.known_as(skill))


def decide_used(skill: str, evidence: Evidence) -> Decision:
    """Return whether a skill that should be used was."""
    return _decide(f"used-{skill}", skill, evidence, verdicts=USED)


def decide_not_used(skill: str, evidence: Evidence) -> Decision:
    """Return whether a skill that should not be used was left alone."""
    return _decide(f"not_used-{skill}", skill, evidence, verdicts=NOT_USED)


def skill_facts(
    skill: str, evidence: Evidence, verdicts: Mapping[str, Verdict | None]
) -> SkillFacts:
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
