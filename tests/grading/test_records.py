"""The one place that tells whose failure it was, over every way a run can end."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.grading.records import (
    RECORD_BYTES,
    Verdict,
    check_row,
    judge,
    request,
    row_not_run,
    signed,
    step_row,
)
from pytest_evalarc.isolation.command import Ended
from pytest_evalarc.model.base import Cause
from tests.grading.whole_run import CHECK, COLLECTED, END, EXIT, NONCE, OUTCOME, READY, WHOLE


def channel(*records, nonce=NONCE):
    return b"".join(
        signed(nonce, number, json.dumps(record).encode()) for number, record in enumerate(records)
    )


def verdict(*records, exit=EXIT, more=b""):
    return judge(channel(*records) + more, NONCE, exit)


def kind(found):
    return (found.status, found.cause.kind if found.cause else None)


def test_a_whole_run_passes():
    """What every other case here differs from in one thing."""
    assert verdict(*WHOLE) == Verdict("passed", None, True, "")


def test_a_step_reports_an_outcome_without_a_collection():
    """A build has nothing to collect."""
    assert kind(verdict(READY, OUTCOME, END)) == ("passed", None)


def test_a_wrong_outcome_is_told_with_its_reason():
    """A failed check ran to its end; the reason is what an agent's author reads first."""
    failed = {**OUTCOME, "outcome": "failed", "text": "assert 1 == 2\x1b[0m"}

    assert verdict(READY, COLLECTED, failed, END) == Verdict(
        "failed", None, True, "assert 1 == 2\\x1b[0m"
    )


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\n",
        b"Traceback (most recent call last):\n",
        channel(READY, nonce="another"),
        channel(COLLECTED, READY),
        channel({}),
        channel({"kind": ["ready"]}),
    ],
)
def test_without_ready_it_is_an_infrastructure_error(said):
    """Before `ready` nothing of the submission can have been reached."""
    found = judge(said, NONCE, replace(EXIT, status=1), complaint=b"no module named pytest\x00")

    assert kind(found) == ("environment_error", "grader_not_ready")
    assert "status 1" in found.cause.detail
    assert found.cause.detail.endswith("no module named pytest\\x00")


@pytest.mark.parametrize("reason", [reason for reason in Ended if reason is not Ended.CANCELLED])
@pytest.mark.parametrize("more", [b"", b"\xff\n", channel(END, nonce="another"), b'"text"\n'])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_whatever_is_wrong_after_ready_is_the_submissions_failure(reason, more, length):
    """Otherwise a cheat would buy an exclusion from the count."""
    found = verdict(*WHOLE[:length], exit=replace(EXIT, reason=reason, status=-9), more=more)

    assert found.status == "agent_error"
    assert found.cause is not None


@pytest.mark.parametrize(
    ("exit", "records", "cause"),
    [
        (replace(EXIT, reason=Ended.DEADLINE), WHOLE, "timeout"),
        (replace(EXIT, reason=Ended.OUTPUT), WHOLE, "output_limit"),
        (replace(EXIT, out_of_memory=True), WHOLE, "out_of_memory"),
        (EXIT, WHOLE[:3], "early_exit"),
        (EXIT, (*WHOLE, OUTCOME), "early_exit"),
        (EXIT, (*WHOLE[:3], {**END, "changed": ["builtins.len"]}), "tampered"),
        (EXIT, (READY, END), "collection"),
        (EXIT, (READY, COLLECTED, END), "collection"),
        (EXIT, (READY, {**COLLECTED, "ids": []}, OUTCOME, END), "collection"),
        (EXIT, (READY, {**COLLECTED, "ids": ["a", "b"]}, OUTCOME, END), "collection"),
        (EXIT, (READY, COLLECTED, COLLECTED, OUTCOME, END), "collection"),
        (EXIT, (READY, COLLECTED, OUTCOME, OUTCOME, END), "collection"),
        (EXIT, (READY, COLLECTED, {**OUTCOME, "id": "test_other"}, END), "collection"),
        (EXIT, (READY, {**OUTCOME, "id": ""}, END), "collection"),
        (EXIT, (READY, COLLECTED, OUTCOME, {**END, "ran": 2}), "collection"),
        (EXIT, (READY, COLLECTED, OUTCOME, END, END), "collection"),
        (EXIT, (READY, COLLECTED, {**OUTCOME, "outcome": "skipped"}, END), "not_run"),
        (EXIT, (READY, COLLECTED, {**OUTCOME, "outcome": "xfail"}, END), "not_run"),
        (EXIT, (READY, COLLECTED, {**OUTCOME, "when": "setup"}, END), "not_run"),
        (EXIT, (READY, COLLECTED, {**OUTCOME, "outcome": "\x1b"}, END), "not_run"),
    ],
)
def test_exactly_one_test_has_to_run_and_to_end(exit, records, cause):
    """Zero tests, two tests, a skip and an early end all leave nothing that failed."""
    found = verdict(*records, exit=exit)

    assert kind(found) == ("agent_error", cause)
    assert "\x1b" not in found.detail


def test_more_than_a_run_can_report_is_foreign():
    """A channel that was flooded is cut, and what was cut could have been anything."""
    from pytest_evalarc.isolation.capture import Capture

    capture = Capture(RECORD_BYTES)
    capture.add(channel(*WHOLE[:3]) + b"x" * RECORD_BYTES)

    assert kind(judge(capture.data(), NONCE, EXIT)) == ("agent_error", "protocol")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
signed_records = st.dictionaries(
    st.sampled_from(["kind", "id", "ids", "outcome", "when", "answered", "text", "ran", "changed"]),
    st.sampled_from(["ready", "collected", "outcome", "end", "passed", "call"]) | json_values,
)


@given(records=st.lists(signed_records, max_size=5), more=st.binary(max_size=40))
def test_no_record_breaks_the_judge(records, more):
    """Inside the process of a check anything can be signed, and grading must go on."""
    found = verdict(READY, *records, more=more)

    assert found.status in ("passed", "failed", "agent_error")
    row = check_row(CHECK, found, EXIT, stderr=more)
    assert row.passed == (found.status == "passed")


def test_a_row_keeps_what_the_process_showed():
    """Verdicts, their dimension and how the process ended go into every result."""
    row = check_row(CHECK, verdict(*WHOLE), EXIT, stderr=b"warned\x1b")

    assert row.verdicts == {"durability": True}
    assert row.wall_time_s == 0.25
    assert row.processes[0].output_bytes == 410
    assert row.processes[0].stderr_tail == "warned\\x1b"


def test_a_row_of_an_infrastructure_error_has_no_verdict():
    """Neither passed nor failed: nobody could tell."""
    row = check_row(CHECK, verdict(), EXIT, stderr=b"")

    assert row.verdicts == {"durability": None}
    assert row.status == "environment_error"


def test_a_check_that_was_not_run_says_why():
    """A hole in the row of outcomes would be read as a pass or as a bug of ours."""
    row = row_not_run(CHECK, Cause(kind="build_failed", detail="build failed"))

    assert (row.status, row.verdicts, row.detail) == (
        "not_run",
        {"durability": None},
        "build failed",
    )


@pytest.mark.parametrize(
    ("records", "status"),
    [(WHOLE, "pass"), ((READY, END), "fail"), ((), "error")],
)
def test_a_step_passes_fails_or_broke(records, status):
    """The words of steps for the same three facts."""
    row = step_row("build", verdict(*records), EXIT)

    assert (row.name, row.status, row.output_bytes) == ("build", status, 410)


def test_a_request_travels_in_ascii():
    """It is read before any locale is known, names that are not UTF-8 included."""
    sent = request(NONCE, project="/ü/\udcff", sources=["a"])

    assert json.loads(sent.decode("ascii")) == {
        "nonce": NONCE,
        "project": "/ü/\udcff",
        "sources": ["a"],
    }


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([0, 2, 3], id="one left out"),
        pytest.param([0, 1, 1, 2, 3], id="one twice"),
        pytest.param([0, 2, 1, 3], id="two swapped"),
    ],
)
def test_records_hold_only_in_the_order_they_were_sent(lines):
    """Whoever sits on the channel can pass on what he likes, and nothing is missed but the run."""
    sent = channel(*WHOLE).splitlines(keepends=True)

    found = judge(b"".join(sent[line] for line in lines), NONCE, EXIT)

    assert kind(found) == ("agent_error", "protocol")


def test_a_record_tells_nothing_to_sign_another_with():
    """The key itself must not travel: a diverted channel would hand it over."""
    assert NONCE.encode() not in channel(*WHOLE)
