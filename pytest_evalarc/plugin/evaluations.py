"""What a person reads of a candidate, and of kept submissions that were graded again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_evalarc.model.audit import Evaluation
    from pytest_evalarc.model.candidate import EvaluationDoc
    from pytest_evalarc.model.grading import CheckRow
    from pytest_evalarc.reporting.regrade import RegradeReport

MOST_TOLD = 20


def evaluation_lines(evaluation: EvaluationDoc) -> list[str]:
    """Return a candidate's evaluation: title, verdict with score, dimensions, what is unmet."""
    lines = [f"{evaluation.task.name}: submission", _verdict(evaluation)]
    if evaluation.dimensions:
        lines.append(
            "dimensions: "
            + ", ".join(
                f"{name} {found.passed} of {found.total}"
                for name, found in evaluation.dimensions.items()
            )
        )
    lines += unmet(evaluation)[:MOST_TOLD]
    if evaluation.edits_outside_editable:
        edits = evaluation.edits_outside_editable
        lines.append(f"differs outside `editable` in {len(edits)} paths, which are not graded")
    return lines


def evaluation_line(evaluation: EvaluationDoc) -> str:
    """Return a candidate's evaluation in one line."""
    return f"{evaluation.task.name}: submission: {_verdict(evaluation)}"


def _verdict(evaluation: EvaluationDoc) -> str:
    if not evaluation.valid:
        return "not judged: the harness broke"
    word = "resolved" if evaluation.resolved else "not resolved"
    score = "unknown" if evaluation.score is None else f"{evaluation.score:.2f}"
    return f"{word}, score {score}"


def unmet(evaluation: Evaluation) -> list[str]:
    """Return each step and check that did not pass; of several seeds, why it was in the first."""
    steps = [
        f"step {step.name}: {_first_line(step.detail) or step.status}"
        for step in evaluation.steps
        if step.status in ("fail", "error")
    ]
    failed: dict[str, list[CheckRow]] = {}
    for row in evaluation.cases:
        if not row.passed:
            failed.setdefault(row.check, []).append(row)
    return steps + [_unmet_check(check, rows) for check, rows in failed.items()]


def _unmet_check(check: str, rows: Sequence[CheckRow]) -> str:
    seeds = ", ".join(str(row.seed) for row in rows if row.seed is not None)
    told = f" with seed{'s' if len(rows) > 1 else ''} {seeds}" if seeds else ""
    why = _first_line(rows[0].detail) or rows[0].status.replace("_", " ")
    return f"check {check}{told}: {why}"


def _first_line(detail: str) -> str:
    return detail.partition("\n")[0][:200]


def regrade_lines(report: RegradeReport) -> list[str]:
    """Return what a re-grading judged otherwise, a line for each trial."""
    told = list(report.changes[:MOST_TOLD])
    if len(report.changes) > MOST_TOLD:
        told.append(f"… and {len(report.changes) - MOST_TOLD} more trials")
    return [_regraded(report), *(told or ["nothing changed"])]


def regrade_line(report: RegradeReport) -> str:
    """Return a re-grading in one line."""
    benchmark, changes = report.benchmark, len(report.changes)
    changed = f"{changes} change{'' if changes == 1 else 's'}" if changes else "nothing changed"
    return f"{benchmark.task} with {benchmark.client}: {_regraded(report)}, {changed}"


def _regraded(report: RegradeReport) -> str:
    trials = "1 trial" if report.graded == 1 else f"{report.graded} trials"
    return f"re-grading {report.number}: {trials} graded again"
