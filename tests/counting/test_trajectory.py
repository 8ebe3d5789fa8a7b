from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.counting.comparison import IncomparableError
from pytest_evalarc.counting.trajectory import summarize, trajectory
from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.trajectory import Checkpoint, Observation
from tests.documents import OTHER, changed, evaluation

HALF = evaluation("says.words", "says.style")
WHOLE = evaluation()


def at(elapsed_seconds: float, evaluation: Any = WHOLE) -> Checkpoint:
    return Checkpoint(elapsed_seconds=elapsed_seconds, evaluation=evaluation)


def test_the_area_is_that_of_the_left_step_curve() -> None:
    """0 for 120 s, 0.4 for 180 s and 1 for 300 s: (72 + 300) / 600."""
    found = trajectory([at(120, HALF), at(300)], budget_seconds=600)

    assert found.normalized_score_area == 0.62
    assert found.final_score == 1.0
    assert found.first_resolved_seconds == 300
    assert found.regressions == ()
    assert found.checkpoint_count == 2
    assert found.clock_source == "caller-reported"
    assert [(entry.elapsed_seconds, entry.score) for entry in found.checkpoints] == [
        (120, 0.4),
        (300, 1.0),
    ]
    assert "no time horizon" in found.interpretation
    assert "proves neither that the agent ran on" in found.interpretation


def test_a_regression_counts_and_is_told() -> None:
    """The best result so far does not stand for what is there now."""
    found = trajectory([at(0), at(300, HALF), at(450)], budget_seconds=600)

    assert found.normalized_score_area == 0.85  # (300 + 0.4 * 150 + 150) / 600
    (regression,) = found.to_json()["regressions"]  # type: ignore[index,call-overload]
    assert regression == {"elapsed_seconds": 300.0, "from": 1.0, "to": 0.4}
    assert (found.final_score, found.first_resolved_seconds) == (1.0, 0)


def test_nothing_observed_has_no_area_and_no_score() -> None:
    """An unknown score is null, and the curve is 0 before the first observation."""
    found = trajectory([], budget_seconds=600)

    assert (found.normalized_score_area, found.final_score) == (0.0, None)
    assert (found.first_resolved_seconds, found.conditions) == (None, None)


def test_an_observation_at_the_end_of_the_budget_adds_no_area() -> None:
    """It is within the budget, and held for no time."""
    found = trajectory([at(600)], budget_seconds=600)

    assert (found.normalized_score_area, found.final_score) == (0.0, 1.0)


@given(
    st.lists(st.integers(0, 1000), unique=True, max_size=8).map(sorted),
    st.lists(st.integers(0, 100), min_size=8, max_size=8),
)
def test_the_area_is_the_integral_second_by_second(times: list[int], scores: list[int]) -> None:
    """The sum over rectangles must be what the definition says."""
    curve = dict(zip(times, scores, strict=False))
    held, total = 0, 0
    for second in range(1000):
        held = curve.get(second, held)
        total += held
    observations = [
        Observation(
            elapsed_seconds=time,
            batch="b",
            candidate_sha256="a" * 64,
            score=score / 100,
            resolved=False,
        )
        for time, score in curve.items()
    ]

    area = summarize(observations, None, budget_seconds=1000).normalized_score_area

    assert area == pytest.approx(float(Fraction(total, 100_000)), abs=1e-8)


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_is_none_is_refused(budget: float) -> None:
    """An area over it would be a division by nothing."""
    with pytest.raises(UsageError, match=r"--budget-seconds .* is no budget of time"):
        trajectory([at(0)], budget_seconds=budget)


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ([120, 120], "checkpoint 2: elapsed_seconds: is 120.0, and not after the 120.0"),
        ([120, 60], "checkpoint 2: elapsed_seconds: is 60.0, and not after the 120.0"),
        ([-1], "checkpoint 1: elapsed_seconds: is -1.0, and not within 0 and the budget"),
        ([0, 601], "checkpoint 2: elapsed_seconds: is 601.0, and not within 0 and the budget"),
    ],
)
def test_times_out_of_order_or_budget_are_refused(times: list[float], sentence: str) -> None:
    """Sorted or cut silently, the curve would not be what the caller observed."""
    with pytest.raises(DocumentError) as caught:
        trajectory([at(time) for time in times], budget_seconds=600)

    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("field", OTHER)
def test_a_checkpoint_that_was_made_otherwise_is_refused_with_the_field(field: str) -> None:
    """The curve would jump because the ruler was changed."""
    other = changed(WHOLE, field, OTHER[field])

    with pytest.raises(IncomparableError) as caught:
        trajectory([at(1), at(2), at(3, other)], budget_seconds=600)

    assert caught.value.where == field
    assert "in checkpoint 1 and" in caught.value.problem
    assert caught.value.problem.endswith("in checkpoint 3")


def test_a_checkpoint_without_a_score_is_refused() -> None:
    """Neither 0 nor the last score is what was observed."""
    broken = evaluation(status="infrastructure_error", cause=Cause(kind="grader_broke"))
    rowless = evaluation(rows=evaluation().cases[:1])

    with pytest.raises(IncomparableError, match="checkpoint 2: evaluation: is not valid"):
        trajectory([at(1), at(2, broken)], budget_seconds=600)
    with pytest.raises(IncomparableError, match="checkpoint 1: evaluation: has no score"):
        trajectory([at(1, rowless)], budget_seconds=600)
    with pytest.raises(IncomparableError, match="runtime: is not recorded in checkpoint 1"):
        trajectory([at(1, evaluation(runtime=None))], budget_seconds=600)
