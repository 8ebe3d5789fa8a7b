"""What a document's own rows give, computed again by the functions that wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.batches_compared import compared_again
from pytest_evalarc.counting.comparison import compare
from pytest_evalarc.counting.differences import differences, shown
from pytest_evalarc.counting.measured import content_sha256, pass_rate
from pytest_evalarc.counting.outcome import CauseKind, Ending, code_view, decide_outcome, success_of
from pytest_evalarc.counting.regrade import regraded
from pytest_evalarc.counting.score import evaluation_document
from pytest_evalarc.counting.trajectory import summarize
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.audit import Audit, AuditPlan, Evaluation, PlannedMutant
from pytest_evalarc.model.base import Cause, Model
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.comparison import BatchComparison, Comparison, Side
from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT, STARTER
from pytest_evalarc.model.grading import CheckRow, CheckStatus, Grading, StepRow
from pytest_evalarc.model.measured import Measured, MeasuredRow
from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.trajectory import Trajectory
from pytest_evalarc.model.trial import TrialResult

_SETUP = {CauseKind.PREPARATION.value, CauseKind.PRELAUNCH.value}
_UNREACHED = {
    CauseKind.NOT_REACHED.value,
    CauseKind.INTERRUPTED.value,
    CauseKind.WORKER_CRASH.value,
    CauseKind.BUDGET.value,
}
_FINDINGS = {CauseKind.ESCAPE.value, CauseKind.ARM_MISMATCH.value}
_NOT_A_STEP = ("hidden", "edits_outside_editable")


class Disagreement(NamedTuple):
    """A field of a document that is not what its rows give."""

    field: str
    """As `mutants.2.killed`."""
    says: object
    """JSON data, or `ABSENT`."""
    gives: object

    def __str__(self) -> str:
        return f"{self.field}: says {shown(self.says)}, its rows give {shown(self.gives)}"


class EditedError(DocumentError):
    """A document says otherwise than its own rows: it was edited, or mixed up."""


def require_agreement(result: TrialResult, *, where: str) -> None:
    """Refuse a result that says otherwise than its own gradings and expectations.

    Args:
        result: The result, as it was read.
        where: Its path.

    Raises:
        EditedError: Names the first field, what it says, and what the rows give.
    """
    for found in of_result(result):
        refuse(found, where=where)


def refuse(found: Disagreement, *, where: str, hint: str = "it was edited: restore it") -> None:
    """Refuse a document for one of its fields.

    Raises:
        EditedError: Always.
    """
    told = f"says {shown(found.says)}, but its rows give {shown(found.gives)}"
    raise EditedError(f"{where}: {found.field}", told, hint)


def of_evaluation(document: EvaluationDoc) -> Iterator[Disagreement]:
    """Yield what evaluation.json says otherwise than its cases and steps.

    Raises:
        DocumentError: Its rows cannot be counted, as when a case is there twice.
    """
    again = evaluation_document(
        _grading(document),
        batch=document.batch,
        made=document,
        task=document.task,
        checks=document.checks,
        weights=document.weights,
    )
    yield from compared(document, again)


def of_audit(document: Audit) -> Iterator[Disagreement]:
    """Yield what audit.json says otherwise than the evaluations of its controls.

    Raises:
        DocumentError: Its rows cannot be counted, as when a case is there twice.
    """
    yield from compared(document, assess(_audit_plan(document), _controls(document)))


def of_trajectory(document: Trajectory) -> Iterator[Disagreement]:
    """Yield what a trajectory says otherwise than its checkpoints.

    Raises:
        DocumentError: Its checkpoints are none of one trajectory.
    """
    again = summarize(
        document.checkpoints, document.conditions, budget_seconds=document.budget_seconds
    )
    yield from compared(document, again)


def of_comparison(document: Comparison) -> Iterator[Disagreement]:
    """Yield what a comparison says otherwise than the cases of its two sides.

    Raises:
        DocumentError: Its rows cannot be counted, as when a case is there twice.
        IncomparableError: Its sides do not have the same cases.
    """
    baseline, current = (
        evaluation_document(
            _grading_of_side(document, side),
            batch=side.batch,
            made=side,
            task=document.task,
            checks=document.checks,
            weights=document.weights,
        )
        for side in (document.baseline, document.current)
    )
    yield from compared(document, compare(baseline, current))


def of_batch_comparison(document: BatchComparison) -> Iterator[Disagreement]:
    """Yield what a comparison of batches says otherwise than the tallies of its rows.

    Why a row is incomparable is believed where its tallies do not show it.
    """
    impossible = [
        found
        for number, row in enumerate(document.rows)
        for side, tally in (("before", row.before), ("after", row.after))
        if tally is not None
        for found in _too_many(tally.passed, tally.judged, f"rows.{number}.{side}")
    ]
    # No interval can be computed from such a row.
    yield from impossible or compared(document, compared_again(document))


def of_accepted(document: Measured) -> Iterator[Disagreement]:
    """Yield what an accepted document says otherwise than its rows, or than when it was accepted.

    Which number was edited is told where its row shows it; the digest covers every other field.
    """
    found = False
    for number, row in enumerate(document.rows):
        for disagreement in (
            *_too_many(row.passed, row.judged, f"rows.{number}"),
            *_of_rate(row, f"rows.{number}"),
        ):
            found = True
            yield disagreement
    digest = content_sha256(document)
    if not found and document.content_sha256 != digest:
        yield Disagreement("content_sha256", document.content_sha256, digest)


def _too_many(passed: int, judged: int, where: str) -> Iterator[Disagreement]:
    if passed > judged:
        yield Disagreement(f"{where}.passed", passed, f"{judged} at most")


def _of_rate(row: MeasuredRow, where: str) -> Iterator[Disagreement]:
    rate = pass_rate(row)
    if row.passed <= row.judged and row.pass_rate != rate:
        yield Disagreement(f"{where}.pass_rate", row.pass_rate, rate)


def of_result(document: TrialResult) -> Iterator[Disagreement]:
    """Yield what result.json says otherwise than its gradings and expectations.

    What no row of a result shows is believed: why a trial was not prepared or was cut off, as long
    as nothing was graded, and that its item got no more time.
    """
    for number, grading in enumerate(document.gradings):
        yield from _of_rows(grading, f"gradings.{number}")
    yield from _of_ending(
        document,
        code=_code(document.code, document.gradings[-1]) if document.gradings else None,
        ending=_ending(document),
    )
    record = document.isolation.record
    if record is not None and record.level != document.isolation.mode:
        yield Disagreement("isolation.mode", document.isolation.mode, record.level)


def of_regrade(document: Regrade, result: TrialResult) -> Iterator[Disagreement]:
    """Yield what regrade-<n>.json says otherwise than its grading and the trial's result.

    Args:
        document: The re-grading.
        result: The result of the same trial.
    """
    now = regraded(result, document.grading, document.code)
    yield from _of_rows(document.grading, "grading")
    yield from _of_ending(
        document,
        code=_code(document.code, document.grading),
        ending=Ending(now.outcome, now.cause),
    )


def compared(says: Model, gives: Model) -> Iterator[Disagreement]:
    """Yield where a document is not what it should be; its schema version is no number of its."""
    for difference in differences(says.to_json(), gives.to_json()):
        if difference.field != "schema_version":
            yield Disagreement(*difference)


def _grading(evaluation: Evaluation) -> Grading:
    """Return the grading that an evaluation was computed from, as far as it matters for that."""
    return Grading(
        submission_sha256=evaluation.candidate_sha256,
        grader_sha256=evaluation.grader_sha256,
        checks_sha256=evaluation.cases_sha256,
        status=evaluation.grading_status,
        cause=evaluation.cause,
        steps=evaluation.steps,
        rows=tuple(row.model_copy(update={"status": _status(row)}) for row in evaluation.cases),
        edits_outside_editable=evaluation.edits_outside_editable,
        isolation=evaluation.isolation,
        runtime=evaluation.runtime,
        wall_time_s=evaluation.evaluation_seconds,
        cached=evaluation.cached,
    )


def _grading_of_side(comparison: Comparison, side: Side) -> Grading:
    return Grading(
        submission_sha256=side.candidate_sha256,
        grader_sha256=comparison.grader_sha256,
        checks_sha256=comparison.cases_sha256,
        status="graded",
        cause=side.cause,
        steps=tuple(StepRow(name=name, status=status) for name, status in side.steps.items()),
        rows=tuple(
            CheckRow(check=case.case, seed=case.seed, verdicts=case.verdicts, status=case.status)
            for case in side.cases
        ),
        isolation=side.isolation,
        runtime=comparison.runtime,
    )


def _audit_plan(audit: Audit) -> AuditPlan:
    return AuditPlan(
        schema_version=audit.schema_version,
        batch=audit.batch,
        task=audit.task,
        mode=audit.mode,
        checks=audit.checks,
        weights=audit.weights,
        mutants=tuple(
            PlannedMutant(name=mutant.name, target_dimension=mutant.target_dimension)
            for mutant in audit.mutants
        ),
        sandbox=audit.sandbox,
    )


def _controls(audit: Audit) -> dict[str, Grading]:
    evaluations = {
        REFERENCE: audit.reference,
        REFERENCE_REPEAT: audit.reference_repeat,
        STARTER: audit.starter.evaluation,
        **{mutant.name: mutant.evaluation for mutant in audit.mutants},
    }
    return {
        name: _grading(evaluation)
        for name, evaluation in evaluations.items()
        if evaluation is not None
    }


def _status(row: CheckRow) -> CheckStatus:
    """Return a row's status as its verdicts have it, where they decide between two."""
    if row.status not in ("passed", "failed"):
        return row.status
    return "passed" if row.verdicts and all(row.verdicts.values()) else "failed"


def _of_rows(grading: Grading, field: str) -> Iterator[Disagreement]:
    for number, row in enumerate(grading.rows):
        status = _status(row)
        if status != row.status:
            yield Disagreement(f"{field}.rows.{number}.status", row.status, status)


def _of_ending(
    document: TrialResult | Regrade,
    *,
    code: dict[str, JsonValue] | None,
    ending: Ending,
) -> Iterator[Disagreement]:
    # Most agree, and thousands of results are looked at.
    for difference in differences(document.code, code) if document.code != code else ():
        field = "code" if difference.field == "the document" else f"code.{difference.field}"
        yield Disagreement(field, difference.first, difference.second)
    if document.outcome is not ending.outcome:
        yield Disagreement("outcome", document.outcome.value, ending.outcome.value)
    yield from _of_cause(document.cause, ending.cause)
    given = success_of(ending.outcome)
    if document.success != given:
        yield Disagreement("success", document.success, given)


def _of_cause(says: Cause | None, gives: Cause | None) -> Iterator[Disagreement]:
    """Compare the words that causes are counted by: sentences may change between versions."""
    words = [cause.kind if cause else None for cause in (says, gives)]
    if words[0] != words[1]:
        yield Disagreement("cause.kind", *words)


def _ending(result: TrialResult) -> Ending:
    cause = result.cause
    kind = cause.kind if cause else ""
    # Older results do not say apart from their cause what voided the isolation.
    told = (cause,) if cause and kind in _FINDINGS else ()
    # Whatever fails before a session, or dies with it, leaves nothing that was graded; only an
    # item's timeout cuts a trial off that goes on to its result.
    is_blank = result.execution is Execution.NOT_STARTED and not result.gradings
    is_cut_off = kind == CauseKind.PYTEST_TIMEOUT or (is_blank and kind in _UNREACHED)
    return decide_outcome(
        result.execution,
        fault=result.fault,
        setup=cause if is_blank and kind in _SETUP else None,
        cancellation=cause if is_cut_off else None,
        findings=result.isolation.findings or told,
        grading=result.gradings[-1] if result.gradings else None,
        decisions=result.expectations.decisions if result.expectations else (),
    )


def _code(code: Mapping[str, JsonValue] | None, grading: Grading) -> dict[str, JsonValue]:
    """Return the flat view of a grading, its formatter step called as the one that is there.

    Its key is there also when the step did not run, and then nothing else gives its name.
    """
    steps = [step.name for step in grading.steps]
    unrun = [key for key in code or () if key not in steps and key not in _NOT_A_STEP]
    fmt_step, *_ = [*unrun, *reversed(steps), "fmt_check"]
    return code_view(grading, fmt_step=fmt_step)
