"""What checks report: any bytes on the channel are judged, and only the signed ones count.

The channel is one protocol for all languages: a Python check signs its records itself, and those
of Rust and Node are signed by the script that runs their program.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.files.strict import document_bytes
from pytest_evalarc.grading.records import check_row, judge, signed
from pytest_evalarc.isolation.command import Ended, Exit
from tests.fuzz.forms import JSON, damaged, fuzzed
from tests.grading.whole_run import CHECK, EXIT, NONCE, WHOLE

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(("ready", "collected", "outcome", "end", "step", "x")) | JSON,
        "id": st.just("test_it") | JSON,
        "ids": st.just(["test_it"]) | JSON,
        "outcome": st.sampled_from(("passed", "failed", "skipped")) | JSON,
        "when": st.sampled_from(("setup", "call", "teardown")) | JSON,
        "answered": JSON,
        "text": JSON,
        "ran": JSON,
        "exitstatus": JSON,
        "changed": JSON,
    },
)
EXITS = st.builds(
    lambda reason, status, memory: replace(
        EXIT, reason=reason, status=status, out_of_memory=memory
    ),
    st.sampled_from(list(Ended)),
    st.sampled_from((0, 1, -9, 139)),
    st.booleans(),
)


def channel(records: Any, nonce: str = NONCE) -> bytes:
    return b"".join(
        signed(nonce, number, json.dumps(record).encode()) for number, record in enumerate(records)
    )


def require_judged(stdout: bytes, exit: Exit) -> str:
    """Return the status that a channel is judged as; it survives in a document."""
    verdict = judge(stdout, NONCE, exit, complaint=stdout)
    document_bytes(check_row(CHECK, verdict, exit, stderr=stdout))
    assert (verdict.cause is None) == (verdict.status in ("passed", "failed"))
    return verdict.status


@fuzzed(120)
@given(damaged([channel(WHOLE), channel(WHOLE[:1])]), EXITS)
def test_no_damaged_channel_passes(stdout: bytes, exit: Exit) -> None:
    """A submission that reaches the channel can break it, and can have nothing pass by that."""
    status = require_judged(stdout, exit)

    assert status != "passed" or stdout == channel(WHOLE)


@fuzzed(100)
@given(st.lists(FIELDS | st.sampled_from(WHOLE), max_size=5), EXITS)
def test_only_the_whole_run_passes(records: list[dict[str, Any]], exit: Exit) -> None:
    """Signed records of any content: what a runner of tomorrow, or one led astray, may report."""
    status = require_judged(channel([WHOLE[0], *records]), exit)

    if status == "passed":
        outcomes = [record for record in records if record.get("kind") == "outcome"]
        assert any(record.get("outcome") == "passed" for record in outcomes)
        assert records[-1]["kind"] == "end"
        # A whole report stands although its process had to be killed afterwards.
        assert exit.reason not in (Ended.DEADLINE, Ended.IDLE, Ended.STARTUP, Ended.OUTPUT)


@fuzzed(80)
@given(st.permutations(range(4)), st.lists(st.integers(0, 3), max_size=3), st.text(max_size=8))
def test_records_repeated_moved_or_forged_never_pass(
    order: list[int], again: list[int], nonce: str
) -> None:
    """A signature covers a record's place, so a true record elsewhere is a false one."""
    lines = channel(WHOLE).splitlines(keepends=True)
    told = b"".join(lines[place] for place in [*order, *again])

    is_whole = (order, again) == ([0, 1, 2, 3], [])
    assert (require_judged(told, EXIT) == "passed") == is_whole
    assert (require_judged(channel(WHOLE, nonce), EXIT) == "passed") == (nonce == NONCE)
