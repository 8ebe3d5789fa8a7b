"""Whether two evaluations can be compared at all, and what changed from one to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pytest_evalarc.counting.differences import differences, shown
from pytest_evalarc.counting.score import CaseKey
from pytest_evalarc.counting.validity import verdict_of
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.comparison import (
    CaseTransition,
    CaseVerdicts,
    ComparedCheck,
    Comparison,
    Conditions,
    FailedCase,
    Side,
)
from pytest_evalarc.model.grading import CheckRow, StepStatus

_DELTA_DECIMALS = 8
_EQUAL = "compare only what was evaluated in the same way"

_Rows: TypeAlias = Mapping[CaseKey, CheckRow]


class IncomparableError(EvalArcError):
    """Evaluations were not made in the same way, so their difference would mean nothing."""


def conditions_of(evaluation: EvaluationDoc) -> Conditions:
    """Return what another evaluation must share to be compared with this one."""
    return Conditions(**{name: getattr(evaluation, name) for name in Conditions.model_fields})


def require_equal_conditions(
    first: EvaluationDoc, other: EvaluationDoc, *, names: tuple[str, str]
) -> Conditions:
    """Return what two evaluations share.

    Args:
        first: An evaluation.
        other: Another one.
        names: What messages call them.

    Raises:
        IncomparableError: They differ in the field that it names, with both values; or one does
            not say in which runtime it was made.
    """
    for evaluation, name in zip((first, other), names, strict=True):
        if evaluation.runtime is None:
            raise IncomparableError("runtime", f"is not recorded in {name}", _EQUAL)
    conditions = conditions_of(first)
    for field, one, two in differences(conditions.to_json(), conditions_of(other).to_json()):
        told = f"is {shown(one)} in {names[0]} and {shown(two)} in {names[1]}"
        raise IncomparableError(field, told, _EQUAL)
    return conditions


def compare(baseline: EvaluationDoc, current: EvaluationDoc) -> Comparison:
    """Return what became better and worse, check by check.

    A check regressed when it passed in the baseline and does not now, be it that it was not even
    run, since that was the submission's doing. So did a step, as `build`.

    Args:
        baseline: What is compared with.
        current: Another evaluation of the same task, in the same runtime.

    Returns:
        Checks and cases in the order of the baseline; no improvement makes up for a regression.

    Raises:
        IncomparableError: One of them is not valid, or they were not made in the same way.
    """
    names = ("the baseline", "the current evaluation")
    for evaluation, name in zip((baseline, current), names, strict=True):
        if not evaluation.valid:
            problem = f"is false in {name}, whose grading broke on the harness's side"
            raise IncomparableError("valid", problem, "evaluate it again")
    conditions = require_equal_conditions(baseline, current, names=names)
    before, after = _rows(baseline), _rows(current)
    if before.keys() != after.keys():
        (check, seed), *_ = sorted(before.keys() ^ after.keys(), key=str)
        told = f"case {check!r} with seed {seed} is in one of the evaluations alone"
        raise IncomparableError("cases", told, _EQUAL)
    regressions = tuple(_lost(conditions, before, after))
    regressed_steps = _lost_steps(baseline, current)
    facts = {name: getattr(conditions, name) for name in Conditions.model_fields}
    comparison = Comparison(
        **facts | {"schema_version": SCHEMA_VERSION},
        baseline=_side(baseline),
        current=_side(current),
        score_delta=_delta(baseline.score, current.score),
        regressions=regressions,
        improvements=tuple(_lost(conditions, after, before)),
        regressed_steps=regressed_steps,
        improved_steps=_lost_steps(current, baseline),
        case_transitions=tuple(_transitions(conditions, before, after)),
        current_failed_cases=tuple(
            FailedCase(seed=seed, case=case)
            for (case, seed), row in after.items()
            if not row.passed
        ),
        has_regressions=bool(regressions or regressed_steps),
        interpretation="",
    )
    return comparison.model_copy(update={"interpretation": _interpret(comparison)})


def _rows(evaluation: EvaluationDoc) -> _Rows:
    return {(row.check, row.seed): row for row in evaluation.cases}


def _side(evaluation: EvaluationDoc) -> Side:
    return Side(
        batch=evaluation.batch,
        created_at=evaluation.created_at,
        package_version=evaluation.package_version,
        candidate_sha256=evaluation.candidate_sha256,
        score=evaluation.score,
        resolved=evaluation.resolved,
        cause=evaluation.cause,
        steps=_steps(evaluation),
        cases=tuple(
            CaseVerdicts(seed=row.seed, case=row.check, status=row.status, verdicts=row.verdicts)
            for row in evaluation.cases
        ),
        isolation=evaluation.isolation,
    )


def _lost(conditions: Conditions, before: _Rows, after: _Rows) -> Iterator[ComparedCheck]:
    """Yield the checks that passed before and do not afterwards."""
    for (case, seed), row in before.items():
        for dimension in conditions.checks.get(case, ()):
            if verdict_of(row, dimension) and not verdict_of(after[case, seed], dimension):
                yield ComparedCheck(seed=seed, case=case, dimension=dimension)


def _steps(evaluation: EvaluationDoc) -> dict[str, StepStatus]:
    return {step.name: step.status for step in evaluation.steps}


def _lost_steps(before: EvaluationDoc, after: EvaluationDoc) -> tuple[str, ...]:
    statuses = _steps(after)
    return tuple(
        name
        for name, status in _steps(before).items()
        if status == "pass" and statuses.get(name) != "pass"
    )


def _transitions(conditions: Conditions, before: _Rows, after: _Rows) -> Iterator[CaseTransition]:
    for (case, seed), row in before.items():
        now = after[case, seed]
        if (row.status, row.verdicts) == (now.status, now.verdicts):
            continue
        one, two = {(case, seed): row}, {(case, seed): now}
        yield CaseTransition(
            seed=seed,
            case=case,
            before=row.status,
            after=now.status,
            regressed=tuple(check.dimension for check in _lost(conditions, one, two)),
            improved=tuple(check.dimension for check in _lost(conditions, two, one)),
        )


def _delta(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    return round(after - before, _DELTA_DECIMALS)


def _interpret(comparison: Comparison) -> str:
    regressed, improved = len(comparison.regressions), len(comparison.improvements)
    told = f"Of the checks {regressed} regressed and {improved} improved"
    if comparison.regressed_steps:
        told += f"; these steps regressed: {', '.join(comparison.regressed_steps)}"
    return (
        f"{told}. This compares one grading of each submission on the cases of one task: a score "
        "that went up makes up for no regression, and nothing is said of other cases."
    )
