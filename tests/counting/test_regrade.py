"""Tests of what a second grading changes, and what it merely shows."""

from __future__ import annotations

import pytest

from pytest_evalarc.counting.regrade import differences, regraded
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.isolation import TrialIsolation
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.task import Deadlines
from pytest_evalarc.model.trial import Decision, Expectations, ModelRef, TrialResult, Versioned

CODE = {"hidden": {"a": "pass"}}


@pytest.fixture
def result(task_ref):
    def make(outcome, *gradings, execution=Execution.COMPLETED, verdicts=()):
        decisions = tuple(
            Decision(name=f"used-{number}", verdict=verdict, rests_on=())
            for number, verdict in enumerate(verdicts)
        )
        return TrialResult(
            schema_version=SCHEMA_VERSION,
            task=task_ref,
            client=Versioned(name="claude"),
            model=ModelRef(),
            mode="with-skills",
            trial=1,
            order=1,
            os="linux x86_64",
            deadlines_secs=Deadlines(),
            execution=execution,
            isolation=TrialIsolation(mode="enforced"),
            gradings=gradings,
            expectations=Expectations(decisions=decisions),
            outcome=outcome,
            cause=None if outcome is Outcome.SUCCEEDED else Cause(kind="because"),
        )

    return make


@pytest.fixture
def passed(grading, row):
    return grading([row("a", {"d": True})])


@pytest.fixture
def failed(grading, row):
    return grading([row("a", {"d": False})])


@pytest.fixture
def broken(grading):
    return grading(status="infrastructure_error", cause="grader_broke")


@pytest.mark.parametrize(
    ("verdicts", "ending"),
    [
        ((), (Outcome.SUCCEEDED, "pass")),
        (("pass",), (Outcome.SUCCEEDED, "pass")),
        (("pass", "fail"), (Outcome.FAILED, "fail")),
        (("inconclusive",), (Outcome.INCONCLUSIVE, "inconclusive")),
    ],
)
def test_an_excluded_trial_ends_where_grading_and_expectations_say(
    result, passed, broken, verdicts, ending
) -> None:
    """Expectations were decided from the session, which nothing takes back."""
    now = regraded(result(Outcome.EXCLUDED_GRADING, broken, verdicts=verdicts), passed, CODE)

    assert (now.outcome, now.success) == ending
    assert now.gradings == (broken, passed)
    assert now.code == CODE


def test_an_excluded_trial_that_misses_has_failed(result, failed, broken) -> None:
    """The exclusion was never in its favour."""
    now = regraded(result(Outcome.EXCLUDED_GRADING, broken), failed, CODE)

    assert (now.outcome, now.cause.kind, now.success) == (Outcome.FAILED, "code", "fail")


def test_an_excluded_trial_whose_grading_breaks_again_stays_excluded(result, broken) -> None:
    """Nothing was learnt."""
    now = regraded(result(Outcome.EXCLUDED_GRADING, broken), broken, CODE)

    assert (now.outcome, now.success) == (Outcome.EXCLUDED_GRADING, None)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.INCONCLUSIVE])
def test_a_trial_that_counts_keeps_everything(result, passed, failed, outcome) -> None:
    """No submission is graded until the verdict pleases."""
    for before, after in ((passed, failed), (failed, passed)):
        kept = result(outcome, before)

        assert regraded(kept, after, CODE) == kept


@pytest.mark.parametrize(
    ("outcome", "execution"),
    [
        (Outcome.FAILED, Execution.TIMEOUT),
        (Outcome.FAILED, Execution.CLIENT_ERROR),
        (Outcome.EXCLUDED_ISOLATION, Execution.COMPLETED),
    ],
)
def test_a_grading_that_broke_is_replaced_and_the_outcome_stays(
    result, passed, broken, outcome, execution
) -> None:
    """The code of a session that timed out is reported, and now it is known."""
    kept = result(outcome, broken, execution=execution)

    now = regraded(kept, passed, CODE)

    assert (now.outcome, now.cause, now.success) == (kept.outcome, kept.cause, kept.success)
    assert now.gradings[-1] == passed


def test_gradings_that_judge_alike_have_no_difference(passed, failed) -> None:
    """Times and digests of the harness may differ."""
    later = passed.model_copy(update={"wall_time_s": 3.0, "grader_sha256": "f" * 64})

    assert differences(passed, later) == ()
    assert differences(passed, failed) == ("a: passed before, failed now",)


def test_steps_seeds_and_what_was_never_graded_are_told(grading, row) -> None:
    """A reader must find the very row."""
    before = grading([row("a", {"d": True}, seed=17)], steps=[("build", "error")])
    after = grading(
        [row("a", {"d": False}, seed=17), row("b", {"d": True})], steps=[("build", "pass")]
    )

    assert differences(before, after) == (
        "step build: error before, pass now",
        "a with seed 17: passed before, failed now",
        "b: not graded before, passed now",
    )
    assert differences(None, before) == (
        "step build: not graded before, error now",
        "a with seed 17: not graded before, passed now",
    )
