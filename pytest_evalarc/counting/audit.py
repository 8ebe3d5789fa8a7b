"""Whether a task's checks can be trusted: declared faults, how they were caught, how narrowly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pytest_evalarc.counting.hitting import minimum_hitting_sets
from pytest_evalarc.counting.score import CaseKey, evaluate, index_rows
from pytest_evalarc.counting.validity import infrastructure_fault, verdict_of
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.audit import (
    Audit,
    AuditPlan,
    Coverage,
    Detection,
    Evaluation,
    MutantAudit,
    MutantClass,
    PlannedMutant,
    StarterAudit,
)
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT, STARTER
from pytest_evalarc.model.grading import CheckRow, Grading

_WHAT_IT_DOES_NOT_SHOW = (
    "This speaks of the declared faults only, which are no independent draws from all possible "
    "ones: it bounds neither undeclared faults nor exploits of the checks."
)

Reason: TypeAlias = Literal["reference_failed", "invalid_control", "no_mutants", "partial"]


def assess(plan: AuditPlan, controls: Mapping[str, Grading]) -> Audit:
    """Return what the controls of one audit show about the checks.

    A fault counts as detected only by a case that the reference passed in this very audit and
    that ran and failed, by behaviour, in the fault's target dimension. Margins count distinct
    cases: one case under two seeds is one detector.

    Args:
        plan: Checks, weights and declared mutants.
        controls: Gradings by control: `reference`, `reference-repeat` (optional; it shows
            flakiness), `starter`, and each mutant's name. A missing one did not run. In fast mode
            a mutant's grading leaves out the rows that nobody asked for.

    Returns:
        Score, weakest margin and coverage are None or empty when `reason` says why. A mutant's
        own margin stays when some other mutant is invalid or missing.

    Raises:
        DocumentError: A control or a row is not in the plan, a row is doubled, or the controls
            were graded by different graders.
    """
    _reject_strangers(plan, controls)
    evaluations = {
        name: evaluate(plan.task, grading, plan.checks, plan.weights)
        for name, grading in controls.items()
    }
    yardstick = _Yardstick.of(plan, controls.get(REFERENCE))
    reference = evaluations.get(REFERENCE)
    reference_passed = reference.resolved if reference and reference.valid else None
    findings = [_judge(mutant, controls.get(mutant.name), yardstick) for mutant in plan.mutants]
    mutants = [
        _mutant_audit(finding, evaluations.get(finding.mutant.name), bool(reference_passed))
        for finding in findings
    ]
    reason = _reason(plan, evaluations)
    starter = _starter_audit(controls.get(STARTER), evaluations.get(STARTER))
    flaky = _flaky(plan, controls)
    killed = sum(mutant.killed for mutant in mutants)
    passed = (
        reason is None
        and bool(starter.failed_something)
        and killed == len(plan.mutants)
        and not flaky
    )
    detection = _detection(plan, mutants, reason)
    audit = Audit(
        schema_version=SCHEMA_VERSION,
        batch=plan.batch,
        task=plan.task,
        sandbox=plan.sandbox,
        checks=plan.checks,
        weights=plan.weights,
        valid=all(evaluation.valid for evaluation in evaluations.values()),
        reference_passed=reference_passed,
        reference=reference,
        reference_repeat=evaluations.get(REFERENCE_REPEAT),
        starter=starter,
        mutants=tuple(mutants),
        mutation_score=killed / len(plan.mutants) if reason is None else None,
        killed=killed,
        total=len(plan.mutants),
        passed=passed,
        reason=reason,
        detection=detection,
        coverage=_coverage(plan, findings, flaky, reason),
        mode=plan.mode,
        selection="partial" if _missing(plan, controls) else "complete",
        interpretation="",
    )
    return audit.model_copy(update={"interpretation": interpret(audit)})


def interpret(audit: Audit) -> str:
    """Return in a few sentences what an audit's number says, and what it does not show."""
    match audit.reason:
        case "invalid_control":
            return (
                "A control could not be graded because the harness broke, so there is no mutation "
                "score; what the other controls showed is kept."
            )
        case "reference_failed":
            return (
                "The reference submission fails its own checks, so nothing that a mutant fails "
                "can be credited to its fault, and there is no mutation score."
            )
        case "partial":
            return (
                "Not every control of this audit was graded, so there is no mutation score; run "
                "the remaining controls to complete it."
            )
        case "no_mutants":
            return (
                "No fault is declared, so nothing shows that the checks notice one; declare "
                "mutants to get a mutation score."
            )
    return f"{_what_it_says(audit)} {_WHAT_IT_DOES_NOT_SHOW}"


class _Cell(NamedTuple):
    """One verdict of the reference that passed: the ground a mutant can lose."""

    case: CaseKey
    dimension: str


_UNANSWERED = frozenset({"environment", "collection", "not_run"})
"""Causes of a check that said nothing about the mutant, however far it had come."""

_EXHAUSTED = frozenset({"timeout", "out_of_memory", "output_limit"})
"""Causes that lie in a bound: the machine decides them too, so they are no wrong answer unless the
reference met the same one."""


@dataclass(frozen=True, kw_only=True)
class _Yardstick:
    """What the reference passed in this audit, and how."""

    plan: AuditPlan
    rows: Mapping[CaseKey, CheckRow]
    passed: Sequence[_Cell]

    @classmethod
    def of(cls, plan: AuditPlan, grading: Grading | None) -> _Yardstick:
        rows = index_rows(grading.rows, plan.checks) if grading else {}
        passed = [
            _Cell(case, dimension)
            for case, row in rows.items()
            for dimension in plan.checks[row.check]
            if verdict_of(row, dimension)
        ]
        return cls(plan=plan, rows=rows, passed=passed)


@dataclass(frozen=True, kw_only=True)
class _Finding:
    """What one mutant showed against the yardstick; cases are in the plan's order."""

    mutant: PlannedMutant
    class_: MutantClass
    reason: str
    on_target: tuple[str, ...] = ()
    anywhere: tuple[str, ...] | None = None
    """None when not every case was run."""


def _judge(mutant: PlannedMutant, grading: Grading | None, yardstick: _Yardstick) -> _Finding:
    """Return a mutant's class; the first that applies, so that no crash passes for a catch."""

    def unseen(class_: MutantClass, reason: str) -> _Finding:
        return _Finding(mutant=mutant, class_=class_, reason=reason)

    if grading is None:
        return unseen("not_run", "this control was not graded")
    fault = infrastructure_fault(grading)
    if fault:
        return unseen("invalid", fault)
    if all(row.status == "not_run" for row in grading.rows):
        why = _why_never_started(grading)
        return _Finding(mutant=mutant, class_="broken", reason=why, anywhere=())
    if not yardstick.passed:
        return unseen("not_run", "the reference passed nothing to judge it by")
    return _compare(mutant, grading, yardstick)


def _compare(mutant: PlannedMutant, grading: Grading, yardstick: _Yardstick) -> _Finding:
    plan = yardstick.plan
    rows = index_rows(grading.rows, plan.checks)
    failed = [
        cell
        for cell in yardstick.passed
        if _fails_by_behaviour(rows.get(cell.case), cell, yardstick)
    ]
    lost = [
        cell
        for cell in yardstick.passed
        if verdict_of(rows.get(cell.case), cell.dimension) is not True
        and (cell.case in rows or plan.mode == "full" or cell.dimension == mutant.target_dimension)
    ]
    on_target = _cases(plan, (c for c in failed if c.dimension == mutant.target_dimension))
    anywhere = _cases(plan, failed)
    class_, reason = _classify(mutant, on_target, anywhere, _cases(plan, lost))
    return _Finding(
        mutant=mutant,
        class_=class_,
        reason=reason,
        on_target=on_target,
        anywhere=anywhere if yardstick.rows.keys() <= rows.keys() else None,
    )


def _classify(
    mutant: PlannedMutant,
    on_target: tuple[str, ...],
    anywhere: tuple[str, ...],
    lost: tuple[str, ...],
) -> tuple[MutantClass, str]:
    target = mutant.target_dimension
    if on_target:
        return "detected", f"fails in {target}: {', '.join(on_target)}"
    if anywhere:
        return "off_target", f"fails outside {target} only: {', '.join(anywhere)}"
    if lost:
        return "broken", f"gave no wrong answer, only crashes or timeouts: {', '.join(lost)}"
    return "survived", "passes everything that the reference passes"


def _fails_by_behaviour(row: CheckRow | None, cell: _Cell, yardstick: _Yardstick) -> bool:
    """Whether a wrong answer was seen, as opposed to none, or to what a bound has cut off."""
    if row is None or not row.answered or verdict_of(row, cell.dimension) is not False:
        return False
    kind = row.cause.kind if row.cause else None
    if kind in _UNANSWERED:
        return False
    reference = yardstick.rows[cell.case].cause
    return kind not in _EXHAUSTED or (reference is not None and reference.kind == kind)


def _why_never_started(grading: Grading) -> str:
    if grading.cause:
        return f"no check ran: {grading.cause.detail or grading.cause.kind}"
    failed = [step.name for step in grading.steps if step.status == "fail"]
    return f"no check ran: {', '.join(failed)} failed" if failed else "no check ran"


def _cases(plan: AuditPlan, cells: Iterable[_Cell]) -> tuple[str, ...]:
    """Return the distinct checks of cells, in the plan's order; seeds do not add."""
    named = {cell.case[0] for cell in cells}
    return tuple(check for check in plan.checks if check in named)


def _mutant_audit(
    finding: _Finding, evaluation: Evaluation | None, reference_passed: bool
) -> MutantAudit:
    is_judged = reference_passed and finding.class_ not in ("invalid", "not_run")
    anywhere = finding.anywhere if is_judged else None
    return MutantAudit(
        name=finding.mutant.name,
        target_dimension=finding.mutant.target_dimension,
        class_=finding.class_,
        killed=finding.class_ == "detected",
        detection_margin=len(finding.on_target) if is_judged else None,
        margin_any=None if anywhere is None else len(anywhere),
        failing_cases=finding.on_target,
        valid=evaluation is None or evaluation.valid,
        score=evaluation.score if evaluation else None,
        candidate_sha256=evaluation.candidate_sha256 if evaluation else None,
        reason=finding.reason,
        evaluation=evaluation,
    )


def _starter_audit(grading: Grading | None, evaluation: Evaluation | None) -> StarterAudit:
    assessed = grading is not None and evaluation is not None and evaluation.valid
    return StarterAudit(
        failed_something=not grading.code_passed if grading and assessed else None,
        evaluation=evaluation,
    )


def _missing(plan: AuditPlan, graded: Iterable[str]) -> set[str]:
    return {REFERENCE, STARTER, *(mutant.name for mutant in plan.mutants)} - set(graded)


def _reason(plan: AuditPlan, evaluations: Mapping[str, Evaluation]) -> Reason | None:
    """Return why there is no score: the reason that no further control could mend comes first."""
    if not all(evaluation.valid for evaluation in evaluations.values()):
        return "invalid_control"
    if REFERENCE in evaluations and not evaluations[REFERENCE].resolved:
        return "reference_failed"
    if _missing(plan, evaluations):
        return "partial"
    return None if plan.mutants else "no_mutants"


def _detection(plan: AuditPlan, mutants: Sequence[MutantAudit], reason: Reason | None) -> Detection:
    single = [mutant for mutant in mutants if mutant.killed and mutant.detection_margin == 1]
    sole = {case for mutant in single for case in mutant.failing_cases}
    return Detection(
        weakest_margin=(
            min(mutant.detection_margin or 0 for mutant in mutants) if reason is None else None
        ),
        single_case_detections=tuple(mutant.name for mutant in single),
        sole_detector_cases=tuple(check for check in plan.checks if check in sole),
    )


def _coverage(
    plan: AuditPlan, findings: Sequence[_Finding], flaky: tuple[str, ...], reason: Reason | None
) -> Coverage:
    targeted = {mutant.target_dimension for mutant in plan.mutants}
    dimensions = dict.fromkeys(d for judged in plan.checks.values() for d in judged)
    untargeted = tuple(dimension for dimension in dimensions if dimension not in targeted)
    if reason is not None:
        return Coverage(
            leave_one_out=dict.fromkeys(plan.checks),
            idle_cases=(),
            minimal_sets=(),
            minimal_sets_complete=False,
            untargeted_dimensions=untargeted,
            flaky=flaky,
        )
    detectors = [finding.on_target for finding in findings if finding.on_target]
    at_work = {case for cases in detectors for case in cases}
    minimal = minimum_hitting_sets(detectors, tuple(plan.checks))
    return Coverage(
        leave_one_out={
            check: sum(cases != (check,) for cases in detectors) / len(plan.mutants)
            for check in plan.checks
        },
        idle_cases=tuple(check for check in plan.checks if check not in at_work),
        minimal_sets=minimal.sets,
        minimal_sets_complete=minimal.complete,
        untargeted_dimensions=untargeted,
        flaky=flaky,
    )


def _flaky(plan: AuditPlan, controls: Mapping[str, Grading]) -> tuple[str, ...]:
    """Return checks whose verdict on the reference changed; a spoilt case shows nothing."""
    if REFERENCE not in controls or REFERENCE_REPEAT not in controls:
        return ()
    first, again = (
        {
            case: [verdict_of(row, dimension) for dimension in plan.checks[row.check]]
            for case, row in index_rows(controls[name].rows, plan.checks).items()
            if row.status != "environment_error"
        }
        for name in (REFERENCE, REFERENCE_REPEAT)
    )
    changed = {case[0] for case in first.keys() & again.keys() if first[case] != again[case]}
    return tuple(check for check in plan.checks if check in changed)


def _reject_strangers(plan: AuditPlan, controls: Mapping[str, Grading]) -> None:
    planned = {REFERENCE, REFERENCE_REPEAT, STARTER, *(mutant.name for mutant in plan.mutants)}
    strangers = sorted(controls.keys() - planned)
    if strangers:
        raise DocumentError(
            f"audit of {plan.task.name}", f"control {strangers[0]!r} is not in its plan"
        )
    if len({grading.grader_sha256 for grading in controls.values()}) > 1:
        raise DocumentError(
            f"audit of {plan.task.name}",
            "its controls were graded by different graders",
            "run it again as a new batch",
        )


def _what_it_says(audit: Audit) -> str:
    missed = [mutant.name for mutant in audit.mutants if not mutant.killed]
    sole = audit.detection.sole_detector_cases
    clauses = [f"{audit.killed} of {_counted(audit.total, 'declared fault')} detected"]
    if missed:
        clauses.append(f"not detected: {', '.join(missed)}")
    else:
        clauses.append(f"the weakest by {_counted(audit.detection.weakest_margin or 0, 'case')}")
    if sole:
        clauses.append(f"a fault rests on each of these cases alone: {', '.join(sole)}")
    if not audit.starter.failed_something:
        clauses.append("the bare starter passes, so the task asks for nothing")
    if audit.coverage.flaky:
        clauses.append(f"verdicts on the reference changed: {', '.join(audit.coverage.flaky)}")
    return f"{'; '.join(clauses)}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
