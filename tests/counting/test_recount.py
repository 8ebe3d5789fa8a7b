"""Tests of what a document's own rows give."""

from __future__ import annotations

import pytest

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.recount import EditedError, of_audit, of_result, require_agreement
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.trial import TrialResult
from tests.documents import result_of, write_trials


@pytest.fixture
def result(tmp_path):
    """Return what reads the result of a trial that ended so."""
    folder = write_trials(tmp_path)
    return lambda outcome: read_model(result_of(folder, outcome), TrialResult)


@pytest.mark.parametrize("mode", ["full", "fast"])
def test_the_audits_of_packs_agree_with_their_rows(pack, mode) -> None:
    """Many cases, seeds and dimensions, as they were measured."""
    assert list(of_audit(assess(pack.plan(mode=mode), pack.controls()))) == []


def test_an_audit_of_nothing_agrees_with_its_rows(durable_kv) -> None:
    """It has no row that could contradict it."""
    assert list(of_audit(assess(durable_kv.plan(), {}))) == []


def test_a_result_that_says_its_finding_by_its_cause_alone_agrees(result) -> None:
    """So did those that were written before findings were kept."""
    excluded = result(Outcome.EXCLUDED_ISOLATION)
    isolation = excluded.isolation.model_copy(update={"findings": ()})

    assert list(of_result(excluded.model_copy(update={"isolation": isolation}))) == []


def test_a_trial_whose_item_got_no_more_time_is_cancelled_whatever_was_graded(result) -> None:
    """It is cut off wherever it is, and keeps what it had by then."""
    cut_off = {
        "outcome": Outcome.CANCELLED,
        "cause": Cause(kind="pytest_timeout"),
        "success": None,
    }

    assert list(of_result(result(Outcome.FAILED).model_copy(update=cut_off))) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"build": "fail"}, "code.build"),
        ({"fmt_check": "pass"}, "code.fmt_check"),
        ({"own_fmt": None}, "code.own_fmt"),
        ({"hidden": {"adds": "fail"}}, "code.hidden.says"),
        ({"edits_outside_editable": ["a"]}, "code.edits_outside_editable"),
    ],
)
def test_a_view_of_other_steps_than_were_run_is_found(result, changes, field) -> None:
    """The name of the formatter step is the only one that no grading need tell."""
    failed = result(Outcome.FAILED)

    found = [each.field for each in of_result(_with(failed, {**failed.code, **changes}))]

    assert found == [field]


def test_a_view_that_is_missing_is_found(result) -> None:
    """And so is one of nothing."""
    failed, unprepared = result(Outcome.FAILED), result(Outcome.SETUP_FAILURE)

    assert [each.field for each in of_result(_with(failed, None))] == ["code"]
    assert [each.field for each in of_result(_with(unprepared, failed.code))] == ["code"]


def _with(result, code):
    return result.model_copy(update={"code": code})


def test_a_formatter_step_of_another_name_is_no_contradiction(result) -> None:
    """Every toolchain names its own."""
    failed = result(Outcome.FAILED)
    code = {("tidy" if key == "fmt_check" else key): word for key, word in failed.code.items()}

    assert list(of_result(_with(failed, code))) == []


def test_the_first_contradiction_is_told_as_a_sentence(result) -> None:
    """Whoever reads it goes to that file and that field."""
    succeeded = result(Outcome.SUCCEEDED)
    require_agreement(succeeded, where="a/result.json")

    with pytest.raises(EditedError) as caught:
        require_agreement(
            succeeded.model_copy(update={"success": "inconclusive"}), where="a/result.json"
        )

    assert str(caught.value) == (
        'a/result.json: success: says "inconclusive", but its rows give "pass"; '
        "it was edited: restore it"
    )
