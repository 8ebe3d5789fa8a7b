"""Tests of where a planned trial ends."""

from __future__ import annotations

import itertools

import pytest

from pytest_evalarc.counting.outcome import code_view, decide_outcome, success_of
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.trial import Decision

COMPLETED = Execution.COMPLETED
CRASH = Cause(kind="worker_crash")
PRELAUNCH = Cause(kind="prelaunch")
ESCAPE = Cause(kind="escape")


def decision(name, verdict):
    return Decision(name=name, verdict=verdict, rests_on=())


@pytest.fixture(scope="module")
def good(row, grading):
    return grading([row("persists", {"persists": True})], steps=[("build", "pass")])


@pytest.fixture(scope="module")
def bad(row, grading):
    return grading([row("persists", {"persists": False})], steps=[("build", "pass")])


@pytest.fixture(scope="module")
def spoilt(grading):
    return grading(status="infrastructure_error", cause="sandbox")


def test_the_earliest_reason_decides(good, bad, spoilt) -> None:
    """With every reason given at once, taking the first away must reveal the next one."""
    failed = [decision("used-a", "fail")]
    unclear = [decision("used-a", "inconclusive")]
    everything = {
        "setup": PRELAUNCH,
        "cancellation": CRASH,
        "findings": [ESCAPE],
        "grading": spoilt,
        "decisions": failed + unclear,
    }
    less = [
        {},
        {"setup": None},
        {"cancellation": None},
        {"findings": []},
        {"grading": bad},
        {"grading": good},
        {"decisions": unclear},
        {"decisions": []},
    ]
    steps = itertools.accumulate(less, lambda given, change: given | change, initial=everything)

    endings = [decide_outcome(COMPLETED, **given) for given in list(steps)[1:]]

    assert [(outcome.value, cause and cause.kind) for outcome, cause in endings] == [
        ("setup_failure", "prelaunch"),
        ("cancelled", "worker_crash"),
        ("excluded_isolation", "escape"),
        ("excluded_grading", "grading"),
        ("failed", "code"),
        ("failed", "expectation"),
        ("inconclusive", "expectation"),
        ("succeeded", None),
    ]


@pytest.mark.parametrize(
    ("execution", "kind"),
    [(Execution.TIMEOUT, "timeout"), (Execution.CLIENT_ERROR, "client_error")],
)
def test_an_unfinished_session_fails_whatever_its_grading_says(
    execution, kind, good, bad, spoilt
) -> None:
    """A timeout must not leave the count because the grading of its leftovers broke."""
    for grading in (good, bad, spoilt, None):
        ending = decide_outcome(execution, grading=grading)
        assert (ending.outcome, ending.cause.kind) == (Outcome.FAILED, kind)


def test_an_escape_voids_even_a_timed_out_session() -> None:
    """What was seen outside the boundary makes the trial say nothing, however it ended."""
    ending = decide_outcome(Execution.TIMEOUT, findings=[Cause(kind="arm_mismatch"), ESCAPE])

    assert (ending.outcome, ending.cause.kind) == (Outcome.EXCLUDED_ISOLATION, "arm_mismatch")


def test_a_session_that_never_started_was_not_reached() -> None:
    """No word on why it is missing is no reason to call it a failure of set-up or agent."""
    ending = decide_outcome(Execution.NOT_STARTED)

    assert (ending.outcome, ending.cause.kind) == (Outcome.CANCELLED, "not_reached")


def test_one_spoilt_row_or_step_excludes_a_completed_session(row, grading) -> None:
    """A grading may be told as `graded` and still hold a hole that our own side made."""
    spoilt_row = grading(
        [
            row("a", {"a": False}),
            row("b", {"b": None}, status="environment_error", cause="environment"),
        ]
    )
    spoilt_step = grading([row("a", {"a": False})], steps=[("build", "error")])

    for given in (spoilt_row, spoilt_step, None):
        ending = decide_outcome(COMPLETED, grading=given)
        assert (ending.outcome, ending.cause.kind) == (Outcome.EXCLUDED_GRADING, "grading")


def test_a_refused_submission_is_a_failure_of_its_code(grading) -> None:
    """A symlink under an editable path invalidates the submission, not the trial."""
    ending = decide_outcome(COMPLETED, grading=grading(cause="symlink"))

    assert ending == (Outcome.FAILED, Cause(kind="code", detail="because of symlink"))


def test_an_expectation_that_nothing_judges_changes_nothing(good) -> None:
    """`not_installed` under `skills` has no decider: None is neither fail nor doubt."""
    ending = decide_outcome(COMPLETED, grading=good, decisions=[decision("not_installed-a", None)])

    assert ending == (Outcome.SUCCEEDED, None)


def test_only_counted_outcomes_have_a_success() -> None:
    """An excluded trial is no failure, so its `success` is null and not `fail`."""
    assert {outcome.value: success_of(outcome) for outcome in Outcome} == {
        "setup_failure": None,
        "cancelled": None,
        "excluded_isolation": None,
        "excluded_grading": None,
        "failed": "fail",
        "inconclusive": "inconclusive",
        "succeeded": "pass",
    }


def test_the_code_view_has_the_keys_of_the_reference_in_order(row, grading) -> None:
    """Readers of `result.json` know these flat keys; a formatter that was not asked is null."""
    graded = grading(
        [row("settings_persist", {"settings_persist": True})],
        steps=[("build", "pass"), ("cargo_test_lib", "pass")],
    )

    view = code_view(graded, fmt_step="cargo_fmt_check")

    assert list(view.items()) == [
        ("build", "pass"),
        ("cargo_test_lib", "pass"),
        ("hidden", {"settings_persist": "pass"}),
        ("cargo_fmt_check", None),
        ("edits_outside_editable", []),
    ]


def test_what_was_not_run_is_null_and_never_a_failure(row, grading) -> None:
    """After a failed build nothing is known of the checks, which the view must not hide."""
    graded = grading(
        [
            row("a", {}, status="not_run", answered=False),
            row("b", {"b": None}, status="environment_error"),
            row("c", {"c": False}, status="agent_error"),
        ],
        steps=[("build", "fail"), ("unit_tests", "skipped"), ("fmt_check", "error")],
        edits=["Cargo.lock"],
    )

    assert code_view(graded, fmt_step="fmt_check") == {
        "build": "fail",
        "unit_tests": None,
        "hidden": {"a": None, "b": None, "c": "fail"},
        "fmt_check": None,
        "edits_outside_editable": ["Cargo.lock"],
    }


def test_a_check_passes_only_under_all_of_its_seeds(row, grading) -> None:
    """A pack's case has one entry in the view, and one bad seed is enough to fail it."""
    graded = grading(
        [
            row("a", {"d": True}, seed=17),
            row("a", {"d": False}, seed=41),
            row("b", {"d": True}, seed=17),
            row("b", {}, seed=41, status="not_run"),
            row("c", {"d": True}, seed=17),
            row("c", {"d": True}, seed=41),
        ]
    )

    hidden = code_view(graded, fmt_step="fmt_check")["hidden"]

    assert hidden == {"a": "fail", "b": None, "c": "pass"}
