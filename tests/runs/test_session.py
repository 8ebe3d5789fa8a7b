from __future__ import annotations

import pytest

from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.transcript import Completion, Transcript
from pytest_evalarc.runs.session import at_its_deadline, execution_of

DONE = Completion(is_error=False)
ERRED = Completion(is_error=True)


@pytest.mark.parametrize(
    ("reason", "status", "completion", "execution"),
    [
        (Ended.EXITED, 0, DONE, Execution.COMPLETED),
        (Ended.EXITED, 1, DONE, Execution.COMPLETED),
        (Ended.EXITED, -9, DONE, Execution.COMPLETED),
        (Ended.FINISHED, -9, DONE, Execution.COMPLETED),
        (Ended.EXITED, 0, None, Execution.CLIENT_ERROR),
        (Ended.EXITED, 0, ERRED, Execution.CLIENT_ERROR),
        (Ended.FINISHED, -9, ERRED, Execution.CLIENT_ERROR),
        (Ended.OUTPUT, -9, DONE, Execution.CLIENT_ERROR),
        (Ended.DEADLINE, 0, DONE, Execution.TIMEOUT),
        (Ended.DEADLINE, -15, None, Execution.TIMEOUT),
        (Ended.STARTUP, -15, DONE, Execution.TIMEOUT),
        (Ended.IDLE, -15, ERRED, Execution.TIMEOUT),
        (Ended.NOT_STARTED, None, None, Execution.NOT_STARTED),
    ],
)
def test_an_execution_is_decided_by_our_deadline_then_by_the_clients_word(
    reason: Ended, status: int | None, completion: Completion | None, execution: Execution
) -> None:
    """A completion event that came with our signal proves no end, and a status proves nothing."""
    ended = Exit(reason=reason, status=status, stdout_bytes=0, stderr_bytes=0, wall_time_s=1.0)
    transcript = Transcript(events=1, interpreted=True, completion=completion)

    assert execution_of(ended, transcript) is execution


@pytest.mark.parametrize(
    ("reason", "status", "wall_time_s", "told"),
    [
        (Ended.EXITED, 124, 60.7, Ended.DEADLINE),
        (Ended.EXITED, 124, 59.9, Ended.EXITED),
        (Ended.EXITED, 0, 60.7, Ended.EXITED),
        (Ended.FINISHED, 124, 60.7, Ended.FINISHED),
        (Ended.CANCELLED, 124, 60.7, Ended.CANCELLED),
        (Ended.DEADLINE, -9, 75.0, Ended.DEADLINE),
    ],
)
def test_a_deadline_kept_inside_the_sandbox_is_told_by_status_and_clock_together(
    reason: Ended, status: int, wall_time_s: float, told: Ended
) -> None:
    """A session that ended by itself in its last second was in time, start-up not counted."""
    ended = Exit(
        reason=reason, status=status, stdout_bytes=0, stderr_bytes=0, wall_time_s=wall_time_s
    )

    assert at_its_deadline(ended, 60.0).reason is told
