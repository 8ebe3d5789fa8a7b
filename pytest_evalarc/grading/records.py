"""Judge what came over the record channel: the one place that tells whose failure it was."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow, CheckStatus, ProcessRow, StepRow, StepStatus
from pytest_evalarc.model.task import Check

Record = dict[str, JsonValue]

RECORD_BYTES = 1 << 20
"""Far more than any honest run reports."""


class Verdict(NamedTuple):
    """How one grading process ended, whatever it ran."""

    status: CheckStatus
    cause: Cause | None
    answered: bool
    detail: str


def judge(stdout: bytes, nonce: str, exit: Exit, *, complaint: bytes = b"") -> Verdict:
    """Return what a grading process showed.

    It is an infrastructure error if and only if it never became ready. Whatever is wrong after
    that, foreign bytes included, is the submission's failure: otherwise a cheat buys an exclusion.

    Args:
        stdout: The whole record channel.
        nonce: What every record must be signed with.
        exit: How the process ended; its status alone proves nothing.
        complaint: What it said on standard error, to explain an infrastructure error.
    """
    records, foreign = _signed(stdout, nonce)
    if not records or records[0].get("kind") != "ready":
        said = printable(exit.detail or complaint[-500:]).strip()
        detail = f"the grader never became ready ({exit.reason}, status {exit.status}): {said}"
        return Verdict(
            "environment_error",
            Cause(kind="grader_not_ready", detail=detail.rstrip(": ")),
            False,
            "",
        )
    answered = any(record.get("answered") is True for record in records)
    early = _early_end(records, foreign=foreign, exit=exit)
    if early is not None:
        return Verdict("agent_error", early, answered, early.detail)
    return _outcome(records, answered=answered)


def signed(nonce: str, number: int, text: bytes) -> bytes:
    """Return a record's line: its signature, a space, its JSON.

    Args:
        nonce: The key.
        number: The record's place in the sequence, from 0.
        text: The record as JSON, without a line break.

    Source: RFC 2104, with SHA-256.
    """
    signature = hmac.digest(nonce.encode(), b"%d %b" % (number, text), "sha256")
    return signature.hex().encode("ascii") + b" " + text + b"\n"


def _signed(stdout: bytes, nonce: str) -> tuple[list[Record], bool]:
    """Return the records up to the first line that is none, and whether there was such a line."""
    records: list[Record] = []
    for line in stdout.splitlines(keepends=True):
        _, _, text = line.rstrip(b"\n").partition(b" ")
        if not hmac.compare_digest(line, signed(nonce, len(records), text)):
            return records, True
        try:
            record = loads(text, where="record")
        except DocumentError:
            record = None
        if not isinstance(record, dict):
            return records, True
        records.append(record)
    return records, False


def _early_end(  # noqa: PLR0911 - one line a reason, in order of what explains the most.
    records: Sequence[Record], *, foreign: bool, exit: Exit
) -> Cause | None:
    """Return why a run did not come to its proper end, or None when it did."""
    if exit.reason in (Ended.DEADLINE, Ended.IDLE, Ended.STARTUP):
        seconds = f"{exit.wall_time_s:.1f}"
        return Cause(kind="timeout", detail=f"it was not done within its deadline ({seconds} s)")
    if exit.reason is Ended.OUTPUT:
        said = exit.stdout_bytes + exit.stderr_bytes
        return Cause(kind="output_limit", detail=f"it printed more than it may ({said} bytes)")
    if exit.out_of_memory:
        return Cause(kind="out_of_memory", detail="it needed more memory than it may use")
    if foreign:
        return Cause(kind="protocol", detail="something else wrote to the record channel")
    if records[-1].get("kind") != "end":
        detail = f"its process ended before the run did (status {exit.status})"
        return Cause(kind="early_exit", detail=detail)
    changed = [name for record in records for name in _strings(record.get("changed"))]
    if changed:
        detail = f"it replaced parts of the test runner: {', '.join(changed[:5])}"
        return Cause(kind="tampered", detail=printable(detail))
    return None


def _outcome(records: Sequence[Record], *, answered: bool) -> Verdict:
    outcomes = [record for record in records if record.get("kind") == "outcome"]
    collected = [record for record in records if record.get("kind") == "collected"]
    ends = [record for record in records if record.get("kind") == "end"]
    text = printable(str(outcomes[0].get("text", ""))) if outcomes else ""
    if len(outcomes) != 1 or len(ends) != 1 or not _counts_agree(collected, outcomes[0], ends[0]):
        detail = text or "not exactly one test ran"
        return Verdict("agent_error", Cause(kind="collection", detail=detail), answered, detail)
    outcome, when = outcomes[0].get("outcome"), outcomes[0].get("when")
    if (outcome, when) == ("passed", "call"):
        return Verdict("passed", None, True, "")
    if (outcome, when) == ("failed", "call"):
        return Verdict("failed", None, answered, text)
    detail = text or printable(f"the test was {outcome} in {when}")
    return Verdict("agent_error", Cause(kind="not_run", detail=detail), answered, detail)


def _counts_agree(collected: Sequence[Record], outcome: Record, end: Record) -> bool:
    if not collected:
        # Steps report an outcome without a collection; a check that could not be collected too,
        # and that one names no test.
        return bool(outcome.get("id"))
    ids = _strings(collected[0].get("ids"))
    return len(collected) == 1 and ids == [outcome.get("id")] and end.get("ran") == 1


def _strings(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def check_row(check: Check, verdict: Verdict, exit: Exit, *, stderr: bytes) -> CheckRow:
    """Return the row of a hidden check, which has one dimension."""
    known = None if verdict.status == "environment_error" else verdict.status == "passed"
    return CheckRow(
        check=check.id,
        verdicts=dict.fromkeys(check.dimensions, known),
        status=verdict.status,
        cause=verdict.cause,
        answered=verdict.answered,
        wall_time_s=round(exit.wall_time_s, 6),
        detail=verdict.detail,
        processes=(
            ProcessRow(
                exit_code=exit.status,
                reason=exit.reason.value,
                output_bytes=exit.stdout_bytes + exit.stderr_bytes,
                stderr_tail=printable(stderr[-2000:]),
            ),
        ),
    )


def row_not_run(check: Check, cause: Cause, *, seed: int | None = None) -> CheckRow:
    """Return the row of a check that was not run, and why."""
    return CheckRow(
        check=check.id,
        seed=seed,
        verdicts=dict.fromkeys(check.dimensions),
        status="not_run",
        cause=cause,
        detail=cause.detail,
    )


def step_row(name: str, verdict: Verdict, exit: Exit) -> StepRow:
    """Return the row of a step that reported over the record channel."""
    words: dict[CheckStatus, StepStatus] = {"passed": "pass", "environment_error": "error"}
    return StepRow(
        name=name,
        status=words.get(verdict.status, "fail"),
        cause=verdict.cause,
        wall_time_s=round(exit.wall_time_s, 6),
        detail=verdict.detail,
        output_bytes=exit.stdout_bytes + exit.stderr_bytes,
    )


def request(nonce: str, **data: JsonValue) -> bytes:
    """Return the request that a grading process reads from standard input."""
    return json.dumps({"nonce": nonce, **data}).encode("ascii")
