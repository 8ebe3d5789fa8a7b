from __future__ import annotations

import pytest

from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.transcript import Completion, Transcript
from pytest_evalarc.runs.session import execution_of

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
