"""Whether a grading tells something about the submission, or only that the harness broke."""

from __future__ import annotations

from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow, Grading


def infrastructure_fault(grading: Grading) -> str | None:
    """Return what broke on the harness's side while it graded, as a sentence.

    Args:
        grading: Any grading; one whose `status` is `graded` may still hold a step or a
            row that our own side spoilt.

    Returns:
        The first fault found, or None when every gap is the submission's own doing.
    """
    if grading.status == "infrastructure_error":
        return _told(grading.cause, "the grading broke")
    for step in grading.steps:
        if step.status == "error":
            return f"step {step.name}: {_told(step.cause, step.detail or 'could not be run')}"
    for row in grading.rows:
        if row.status == "environment_error":
            return f"check {row.check}: {_told(row.cause, row.detail or 'could not be run')}"
    return None


def verdict_of(row: CheckRow | None, dimension: str) -> bool | None:
    """Return a case's verdict in one dimension; None when it was not assessed.

    An environment error voids the whole case: what it judged before it broke proves nothing.
    """
    if row is None or row.status == "environment_error":
        return None
    return row.verdicts.get(dimension)


def _told(cause: Cause | None, fallback: str) -> str:
    return (cause.detail or cause.kind) if cause else fallback
