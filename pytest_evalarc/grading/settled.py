"""Whether a grading would come out alike again: only such a one may stand for a later one."""

from __future__ import annotations

import re

from pytest_evalarc.isolation.command import Ended
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow, Grading, ProcessRow, StepRow

UNSETTLED_CAUSES = frozenset({"timeout", "out_of_memory"})
"""What a loaded machine can cause, and a submission too."""
UNSETTLED_ENDS = frozenset(
    {Ended.STARTUP, Ended.DEADLINE, Ended.IDLE, Ended.CANCELLED, Ended.NOT_STARTED}
)
KILLED = (-9, 137)
"""Exit statuses of what SIGKILL ended, as the kernel does when the whole machine lacks memory."""

_SPEAKS_OF_TIME = re.compile(r"time[sd]?[ _-]?out|no answer within", re.IGNORECASE)
"""A check may have a deadline of its own, which shows in nothing but its words."""


def is_settled(grading: Grading) -> bool:
    """Return whether a grading is complete, and owes nothing to our machine or to its load.

    What broke on our side is not settled, nor what was not graded as a whole, nor what any clock
    or shortage of memory ended: on another day that may pass. A failure whose words speak of a
    timeout is left out as well, whoever's deadline it was.
    """
    return (
        grading.status == "graded"
        and grading.cause is None
        and all(_is_settled_step(step) for step in grading.steps)
        and all(_is_settled_row(row) for row in grading.rows)
    )


def _is_settled_step(step: StepRow) -> bool:
    if step.status == "skipped":
        return True
    # A step keeps no row of its process, so an early end may be anybody's signal.
    ended_early = step.cause is not None and step.cause.kind == "early_exit"
    return step.status != "error" and not ended_early and _is_settled_cause(step.cause, step.detail)


def _is_settled_row(row: CheckRow) -> bool:
    if row.status == "not_run":
        # The step that kept it from running is looked at itself.
        return True
    return (
        row.status != "environment_error"
        and _is_settled_cause(row.cause, row.detail)
        and (row.passed or not _SPEAKS_OF_TIME.search(row.detail))
        and not any(_is_cut_off(process) for process in row.processes)
    )


def _is_settled_cause(cause: Cause | None, detail: str) -> bool:
    if cause is None:
        return not _SPEAKS_OF_TIME.search(detail)
    said = f"{cause.detail} {detail}"
    return cause.kind not in UNSETTLED_CAUSES and not _SPEAKS_OF_TIME.search(said)


def _is_cut_off(process: ProcessRow) -> bool:
    was_killed = process.reason == Ended.EXITED and process.exit_code in KILLED
    return was_killed or process.reason in UNSETTLED_ENDS
