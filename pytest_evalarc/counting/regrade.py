"""What a second grading of a kept submission changes, and what it merely shows."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from pytest_evalarc.counting.outcome import decide_outcome, success_of
from pytest_evalarc.counting.validity import infrastructure_fault
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.trial import TrialResult


def regraded(
    result: TrialResult, grading: Grading, code: Mapping[str, JsonValue] | None
) -> TrialResult:
    """Return a trial as it counts after its kept submission was graded again.

    Args:
        result: The trial as it ended.
        grading: The new grading of what it left.
        code: The flat view of that grading.

    Returns:
        The same result, unless its last grading broke on the harness's side: the new grading
        then stands for it. Only a trial that was excluded for its grading gets another outcome,
        so no submission is graded until the verdict pleases.
    """
    if not _lacks_grading(result):
        return result
    facts: dict[str, object] = {"gradings": (*result.gradings, grading), "code": code}
    if result.outcome is Outcome.EXCLUDED_GRADING:
        outcome, cause = decide_outcome(
            result.execution,
            grading=grading,
            decisions=result.expectations.decisions if result.expectations else (),
        )
        facts |= {"outcome": outcome, "cause": cause, "success": success_of(outcome)}
    return result.model_copy(update=facts)


def differences(before: Grading | None, after: Grading) -> tuple[str, ...]:
    """Return each step and check that two gradings of one submission do not judge alike."""
    old, new = _words(before) if before else {}, _words(after)
    return tuple(
        f"{name}: {old.get(name, 'not graded')} before, {new.get(name, 'not graded')} now"
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    )


def _lacks_grading(result: TrialResult) -> bool:
    last = result.gradings[-1] if result.gradings else None
    return last is None or infrastructure_fault(last) is not None


def _words(grading: Grading) -> dict[str, str]:
    steps = {f"step {step.name}": step.status for step in grading.steps}
    seeds = {
        f"{row.check}{'' if row.seed is None else f' with seed {row.seed}'}": row.status
        for row in grading.rows
    }
    return {**steps, **{name: status.replace("_", " ") for name, status in seeds.items()}}
