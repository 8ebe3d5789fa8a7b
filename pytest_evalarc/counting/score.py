"""What one graded submission scores, by dimension and altogether."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_evalarc.counting.validity import infrastructure_fault, verdict_of
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.audit import DimensionScore, Evaluation
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.grading import CheckRow, Grading
from pytest_evalarc.model.task import TaskRef

if TYPE_CHECKING:
    from pytest_evalarc.model.candidate import EvaluationDoc, Made

CaseKey: TypeAlias = tuple[str, int | None]
"""A check and the seed that it ran with; None for a hidden test."""

_SCORE_DECIMALS = 8
_SUM_TOLERANCE = 1e-9


def evaluate(
    task: TaskRef,
    grading: Grading,
    checks: Mapping[str, Sequence[str]],
    weights: Mapping[str, float],
) -> Evaluation:
    """Return what grading one submission says, in EvalArc's words.

    Args:
        task: The task whose checks graded it.
        grading: The row of outcomes. Case and seed occur once; a case that is not in it at all
            was not asked for, and leaves its dimensions and the score None.
        checks: Dimensions by check.
        weights: Share of each dimension; sums to 1.

    Returns:
        The score is within [0, 1], rounded to 8 decimals, and None when the harness broke. A
        submission that could not be started is assessed, and scores 0. It is resolved only when
        every step and every dimension of every case passed: no weighted score stands for that.

    Raises:
        DocumentError: A row is doubled, or names a check that the task does not have; or the
            weights are not those of its dimensions.
    """
    # A submission that never got as far as its checks fails them all: it was not spared them.
    rows = grading.rows or tuple(
        CheckRow(check=check, verdicts={}, status="not_run") for check in checks
    )
    dimensions = dimension_scores(rows, checks, weights)
    valid = infrastructure_fault(grading) is None
    complete = all(score.passed == score.total for score in dimensions.values())
    resolved = valid and complete and grading.code_passed
    return Evaluation(
        task=task,
        candidate_sha256=grading.submission_sha256,
        grader_sha256=grading.grader_sha256,
        cases_sha256=grading.checks_sha256,
        runtime=grading.runtime,
        seeds=_seeds(task, rows),
        valid=valid,
        grading_status=grading.status,
        cause=grading.cause,
        status=_status(valid=valid, resolved=resolved),
        score=_weighted(dimensions.values()) if valid else None,
        resolved=resolved,
        dimensions=dimensions,
        cases=grading.rows,
        steps=grading.steps,
        edits_outside_editable=grading.edits_outside_editable,
        isolation=grading.isolation,
        evaluation_seconds=grading.wall_time_s,
        cached=grading.cached,
    )


def _seeds(task: TaskRef, rows: Sequence[CheckRow]) -> tuple[int, ...]:
    """Return the seeds that rows are of, which may be fewer than the task has."""
    asked = {row.seed for row in rows}
    seeds = task.pack.seeds if task.pack else ()
    # Rows without a seed stand for all of them: nothing was run.
    return seeds if None in asked else tuple(seed for seed in seeds if seed in asked)


def evaluation_document(
    grading: Grading,
    *,
    batch: str,
    made: Made,
    task: TaskRef,
    checks: Mapping[str, Sequence[str]],
    weights: Mapping[str, float],
) -> EvaluationDoc:
    """Return what evaluation.json says of a candidate, as `evaluate`, with all it rests on.

    Raises:
        DocumentError: The rows or the weights are not those of the checks.
    """
    from pytest_evalarc.model.candidate import EvaluationDoc

    evaluation = evaluate(task, grading, checks, weights)
    facts = {name: getattr(evaluation, name) for name in type(evaluation).model_fields}
    return EvaluationDoc(
        schema_version=SCHEMA_VERSION,
        batch=batch,
        created_at=made.created_at,
        package_version=made.package_version,
        checks={check: tuple(judged) for check, judged in checks.items()},
        weights=dict(weights),
        **facts,
    )


def dimension_scores(
    rows: Sequence[CheckRow],
    checks: Mapping[str, Sequence[str]],
    weights: Mapping[str, float],
) -> dict[str, DimensionScore]:
    """Return the score of each dimension, in the order in which the checks name them.

    Every seed runs every case, so the proportion over all pairs of case and seed is the
    proportion averaged over seeds.

    Args:
        rows: Rows in any order.
        checks: Dimensions by check.
        weights: Share of each dimension.

    Returns:
        `total` counts cases times seeds, `assessed` those with a verdict. `score` is passed over
        total; None when a case was not asked for or the environment spoilt it.

    Raises:
        DocumentError: A row is doubled, or names a check that the task does not have; or the
            weights are not those of its dimensions.
    """
    by_case = index_rows(rows, checks)
    dimensions = tuple(dict.fromkeys(d for judged in checks.values() for d in judged))
    _require_weights(weights, dimensions)
    seeds = {row.seed for row in rows} or {None}
    return {
        dimension: _dimension_score(
            [
                by_case.get((check, seed))
                for check, judged in checks.items()
                if dimension in judged
                for seed in seeds
            ],
            dimension,
            weights[dimension],
        )
        for dimension in dimensions
    }


def _require_weights(weights: Mapping[str, float], dimensions: Sequence[str]) -> None:
    missing = [dimension for dimension in dimensions if dimension not in weights]
    if missing:
        raise DocumentError("weights", f"dimension {missing[0]!r} has none")
    total = math.fsum(weights.values())
    if dimensions and not (min(weights.values()) >= 0 and abs(total - 1) <= _SUM_TOLERANCE):
        raise DocumentError("weights", f"are not shares that sum to 1, but to {total:.12g}")


def index_rows(
    rows: Sequence[CheckRow], checks: Mapping[str, Sequence[str]]
) -> dict[CaseKey, CheckRow]:
    """Return rows by check and seed.

    Raises:
        DocumentError: A row is doubled, or names a check that the task does not have.
    """
    by_case: dict[CaseKey, CheckRow] = {}
    for row in rows:
        key = (row.check, row.seed)
        if row.check not in checks:
            raise DocumentError("rows", f"check {row.check!r} is not one of this task")
        if key in by_case:
            raise DocumentError("rows", f"check {row.check!r} with seed {row.seed} is there twice")
        by_case[key] = row
    return by_case


def _dimension_score(
    cases: Sequence[CheckRow | None], dimension: str, weight: float
) -> DimensionScore:
    verdicts = [verdict_of(row, dimension) for row in cases]
    unknown = any(row is None or row.status == "environment_error" for row in cases)
    passed = verdicts.count(True)
    return DimensionScore(
        passed=passed,
        total=len(cases),
        assessed=len(verdicts) - verdicts.count(None),
        weight=weight,
        score=None if unknown else passed / len(cases),
    )


def _weighted(dimensions: Iterable[DimensionScore]) -> float | None:
    """Return sum(weight * p_d); None with no dimension, or with one that is unknown."""
    parts = [
        None if dimension.score is None else dimension.weight * dimension.score
        for dimension in dimensions
    ]
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts):
        return None
    return round(math.fsum(known), _SCORE_DECIMALS)


def _status(*, valid: bool, resolved: bool) -> Literal["passed", "failed", "environment_error"]:
    if not valid:
        return "environment_error"
    return "passed" if resolved else "failed"
