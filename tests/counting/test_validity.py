"""Tests of what tells a broken harness from a bad submission."""

from __future__ import annotations

import pytest

from pytest_evalarc.counting.validity import infrastructure_fault, verdict_of


def test_a_fault_of_ours_is_told_with_where_it_happened(row, grading) -> None:
    """The sentence ends up in a report, where it must lead to the part that broke."""
    spoilt_row = grading([row("persists", {}, status="environment_error", cause="disk")])
    spoilt_step = grading(steps=[("build", "error")])
    spoilt = grading(status="infrastructure_error", cause="sandbox")

    assert infrastructure_fault(spoilt_row) == "check persists: disk"
    assert infrastructure_fault(spoilt_step) == "step build: could not be run"
    assert infrastructure_fault(spoilt) == "because of sandbox"


@pytest.mark.parametrize("status", ["failed", "agent_error", "not_run"])
def test_what_a_submission_does_is_never_a_fault_of_ours(status, row, grading) -> None:
    """Otherwise a candidate that crashes on purpose buys itself an exclusion."""
    graded = grading([row("a", {"a": False}, status=status)], steps=[("build", "fail")])

    assert infrastructure_fault(graded) is None


def test_a_spoilt_case_has_no_verdict_at_all(row) -> None:
    """What a case judged before the environment broke it proves nothing, passes included."""
    spoilt = row("a", {"routing": True, "notes": None}, status="environment_error")

    assert verdict_of(spoilt, "routing") is None
    assert verdict_of(None, "routing") is None
    assert verdict_of(row("a", {"routing": True}), "routing") is True
