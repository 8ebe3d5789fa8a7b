"""Which gradings may stand for later ones."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evalarc.grading.settled import is_settled
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow, Grading, ProcessRow, StepRow
from pytest_evalarc.model.isolation import IsolationRecord

PASSED = CheckRow(check="c", verdicts={"d": True}, status="passed", answered=True)
FAILED = CheckRow(check="c", verdicts={"d": False}, status="failed", answered=True, detail="1 != 2")


def grading(*rows: CheckRow, steps: tuple[StepRow, ...] = (), **facts: Any) -> Grading:
    return Grading(
        **{
            "submission_sha256": "0" * 64,
            "grader_sha256": "1" * 64,
            "checks_sha256": "2" * 64,
            "status": "graded",
            "isolation": IsolationRecord(level="enforced", sandbox="bwrap"),
            **facts,
        },
        steps=steps,
        rows=rows,
    )


def process(reason: str = "exited", code: int | None = 0) -> ProcessRow:
    return ProcessRow(exit_code=code, reason=reason, output_bytes=0)


def row(kind: str, **facts: Any) -> CheckRow:
    """Return a row of a submission that did not get to its end."""
    cause = Cause(kind=kind, detail="it did not get there")
    known: dict[str, Any] = {"status": "agent_error", "cause": cause, "detail": cause.detail}
    return FAILED.model_copy(update={**known, **facts})


@pytest.mark.parametrize(
    "settled",
    [
        grading(PASSED, FAILED),
        grading(PASSED, steps=(StepRow(name="build", status="pass"),)),
        grading(row("protocol"), row("exit_status"), row("output_limit"), row("unsolicited")),
        grading(row("early_exit", processes=(process(code=1),))),
        # The pack itself ended that one, as its case has it.
        grading(PASSED.model_copy(update={"processes": (process("killed", -9), process())})),
        grading(
            PASSED.model_copy(update={"status": "not_run", "verdicts": {"d": None}}),
            steps=(
                StepRow(name="build", status="fail", detail="no such module"),
                StepRow(name="unit_tests", status="skipped"),
            ),
        ),
    ],
    ids=["verdicts", "steps", "faults", "early exit", "killed by its case", "not built"],
)
def test_what_would_come_out_alike_is_settled(settled: Grading) -> None:
    """Failures are worth as much as passes: an audit consists of them."""
    assert is_settled(settled)


@pytest.mark.parametrize(
    "unsettled",
    [
        grading(PASSED, status="infrastructure_error"),
        grading(PASSED, cause=Cause(kind="invalid_submission")),
        grading(PASSED, FAILED.model_copy(update={"status": "environment_error"})),
        grading(row("timeout")),
        grading(row("out_of_memory")),
        grading(FAILED.model_copy(update={"processes": (process("deadline"),)})),
        grading(row("early_exit", processes=(process(code=-9),))),
        grading(row("early_exit", processes=(process(code=137),))),
        grading(FAILED.model_copy(update={"detail": "NoAnswer: f gave no answer within 10 s"})),
        grading(FAILED.model_copy(update={"detail": "subprocess.TimeoutExpired: …"})),
        grading(PASSED, steps=(StepRow(name="build", status="error"),)),
        grading(
            PASSED,
            steps=(StepRow(name="build", status="fail", cause=Cause(kind="timeout")),),
        ),
        grading(
            PASSED,
            steps=(StepRow(name="unit_tests", status="fail", cause=Cause(kind="early_exit")),),
        ),
        grading(PASSED, steps=(StepRow(name="u", status="fail", detail="it timed out"),)),
    ],
    ids=[
        *("harness broke", "invalid", "environment", "timeout", "memory", "deadline of a process"),
        *("killed", "killed in a shell", "late call", "late program", "step broke", "late step"),
        *("step ended early", "step speaks of time"),
    ],
)
def test_what_a_loaded_machine_may_have_caused_is_not(unsettled: Grading) -> None:
    """It would be held against the submission for ever, on any other day."""
    assert not is_settled(unsettled)
