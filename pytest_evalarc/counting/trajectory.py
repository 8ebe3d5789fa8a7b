"""How much of a budget a submission spent at which score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pytest_evalarc.counting.comparison import (
    IncomparableError,
    conditions_of,
    require_equal_conditions,
)
from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.comparison import Conditions
from pytest_evalarc.model.trajectory import Checkpoint, Observation, Regression, Trajectory

_AREA_DECIMALS = 8


def trajectory(checkpoints: Sequence[Checkpoint], *, budget_seconds: float) -> Trajectory:
    """Return what the checkpoints of one piece of work amount to.

    Args:
        checkpoints: In order of time; may be empty.
        budget_seconds: What the work was given; finite and above 0.

    Raises:
        UsageError: The budget is out of range.
        DocumentError: A time is not after the one before, or not within the budget.
        IncomparableError: An evaluation has no score, or was not made as the first one was.
    """
    observations = [_observed(number, entry) for number, entry in enumerate(checkpoints, start=1)]
    conditions = _shared([checkpoint.evaluation for checkpoint in checkpoints])
    return summarize(observations, conditions, budget_seconds=budget_seconds)


def summarize(
    observations: Sequence[Observation], conditions: Conditions | None, *, budget_seconds: float
) -> Trajectory:
    """Return the document of a trajectory, a function of its observations alone.

    The curve is a left step: 0 before the first observation, each score until the next one, and
    the last until the end of the budget. Nothing is interpolated, and no score is replaced by a
    better one before it.

    Raises:
        UsageError: The budget is out of range.
        DocumentError: A time is not after the one before, or not within the budget.
    """
    _require_budget(budget_seconds)
    _require_times([entry.elapsed_seconds for entry in observations], budget_seconds)
    resolved = (entry.elapsed_seconds for entry in observations if entry.resolved)
    return Trajectory(
        schema_version=SCHEMA_VERSION,
        budget_seconds=budget_seconds,
        normalized_score_area=_area(observations, budget_seconds),
        final_score=observations[-1].score if observations else None,
        first_resolved_seconds=next(resolved, None),
        regressions=tuple(
            Regression(elapsed_seconds=now.elapsed_seconds, from_=before.score, to=now.score)
            for before, now in pairwise(observations)
            if now.score < before.score
        ),
        checkpoint_count=len(observations),
        conditions=conditions,
        checkpoints=tuple(observations),
        interpretation=_interpretation(observations),
    )


def _observed(number: int, checkpoint: Checkpoint) -> Observation:
    evaluation = checkpoint.evaluation
    where = f"checkpoint {number}: evaluation"
    if not evaluation.valid:
        problem = "is not valid: its grading broke on the harness's side"
        raise IncomparableError(where, problem, "evaluate that submission again, or leave it out")
    if evaluation.score is None:
        raise IncomparableError(where, "has no score", "leave it out")
    return Observation(
        elapsed_seconds=checkpoint.elapsed_seconds,
        batch=evaluation.batch,
        candidate_sha256=evaluation.candidate_sha256,
        score=evaluation.score,
        resolved=evaluation.resolved,
    )


def _shared(evaluations: Sequence[EvaluationDoc]) -> Conditions | None:
    if not evaluations:
        return None
    first, *others = evaluations
    for number, other in enumerate([first, *others], start=1):
        require_equal_conditions(first, other, names=("checkpoint 1", f"checkpoint {number}"))
    return conditions_of(first)


def _require_budget(budget_seconds: float) -> None:
    if not (math.isfinite(budget_seconds) and budget_seconds > 0):
        problem = "is no budget of time"
        raise UsageError(f"--budget-seconds {budget_seconds}", problem, "give a number above 0")


def _require_times(times: Sequence[float], budget_seconds: float) -> None:
    before: float | None = None
    for number, time in enumerate(times, start=1):
        where = f"checkpoint {number}: elapsed_seconds"
        if not 0 <= time <= budget_seconds:
            problem = f"is {time}, and not within 0 and the budget of {budget_seconds} s"
            raise DocumentError(where, problem, "measure from the start of the work")
        if before is not None and time <= before:
            problem = f"is {time}, and not after the {before} of the one before"
            raise DocumentError(where, problem, "put the checkpoints in order of time")
        before = time


def _area(observations: Sequence[Observation], budget_seconds: float) -> float:
    ends = [*(entry.elapsed_seconds for entry in observations[1:]), budget_seconds]
    parts = (
        entry.score * ((end - entry.elapsed_seconds) / budget_seconds)
        for entry, end in zip(observations, ends, strict=False)
    )
    return round(math.fsum(parts), _AREA_DECIMALS)


def _interpretation(observations: Sequence[Observation]) -> str:
    if not observations:
        return "Nothing was observed, so the score counts as 0 over the whole budget."
    return (
        "This is the area under the observed scores on a clock that the caller reported: it is "
        "no time horizon and no estimate of one. The last score is held until the budget's end, "
        "which proves neither that the agent ran on nor what its work was worth later."
    )
