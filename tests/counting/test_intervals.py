"""Tests of intervals: published examples, other implementations, and how often they hold."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from pytest_evalarc.counting.intervals import (
    Interval,
    newcombe_difference,
    normal_quantile,
    student_quantile,
    wilson_interval,
)

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def told(interval: Interval) -> tuple[float, float]:
    """Return bounds as tables print them."""
    return round(interval.low, 4), round(interval.high, 4)


@pytest.mark.parametrize(
    ("succeeded", "eligible", "bounds"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilson_intervals_are_those_that_newcombe_published(
    succeeded: int, eligible: int, bounds: tuple[float, float]
) -> None:
    """Newcombe (1998), Two-sided confidence intervals for the single proportion, table I."""
    assert told(wilson_interval(succeeded, eligible)) == bounds


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((6, 7, 2, 7), (0.0582, 0.8062)),
        ((5, 56, 0, 29), (-0.0381, 0.1926)),
        ((0, 10, 0, 20), (-0.1611, 0.2775)),
        ((0, 10, 0, 10), (-0.2775, 0.2775)),
        ((10, 10, 0, 20), (0.6791, 1.0)),
        ((10, 10, 0, 10), (0.6075, 1.0)),
    ],
)
def test_differences_are_those_that_newcombe_published(
    counts: tuple[int, int, int, int], bounds: tuple[float, float]
) -> None:
    """Newcombe (1998), Interval estimation for the difference, table II, method 10."""
    assert told(newcombe_difference(*counts)) == bounds


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_wilson_intervals_are_those_of_another_implementation(confidence: float) -> None:
    """Every count of every small number of trials, and of some large ones."""
    for eligible in (*range(1, 31), 100, 1_000, 10_000):
        for succeeded in {*range(min(eligible, 30) + 1), eligible // 2, eligible - 1, eligible}:
            ours = wilson_interval(succeeded, eligible, confidence=confidence)

            theirs = proportion_confint(succeeded, eligible, alpha=1 - confidence, method="wilson")
            assert (ours.low, ours.high) == pytest.approx(theirs, rel=0, abs=1e-9)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_differences_are_those_of_another_implementation(confidence: float) -> None:
    """Every pair of counts of a few numbers of trials, equal and not."""
    for eligible, other_eligible in ((1, 1), (3, 8), (5, 5), (10, 7), (200, 40)):
        for succeeded in range(0, eligible + 1, max(1, eligible // 10)):
            for other in range(0, other_eligible + 1, max(1, other_eligible // 10)):
                counts = (succeeded, eligible, other, other_eligible)
                ours = newcombe_difference(*counts, confidence=confidence)

                theirs = confint_proportions_2indep(
                    *counts, method="newcomb", compare="diff", alpha=1 - confidence
                )
                assert (ours.low, ours.high) == pytest.approx(theirs, rel=0, abs=1e-9)


def test_quantiles_are_those_of_another_implementation() -> None:
    """Bounds can be no better than the quantile that they rest on."""
    for confidence in (*CONFIDENCES, 0.999):
        share = (1 + confidence) / 2
        assert normal_quantile(confidence) == pytest.approx(norm.ppf(share), rel=1e-12)
        for degrees in (*range(1, 60), 200, 999):
            ours = student_quantile(confidence, degrees)
            assert ours == pytest.approx(t.ppf(share, degrees), rel=1e-9)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_rate_lies_in_its_interval_and_the_mirror_has_the_mirrored_one(
    counts: tuple[int, int],
) -> None:
    """Success and failure are names: swapping them may only swap the bounds."""
    succeeded, eligible = counts
    interval = wilson_interval(succeeded, eligible)
    mirrored = wilson_interval(eligible - succeeded, eligible)

    assert succeeded / eligible in interval
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((interval.low, interval.high))
    assert 0 <= interval.low < interval.high <= 1
    assert (interval.low == 0) is (succeeded == 0)
    assert (interval.high == 1) is (succeeded == eligible)


def binomial(trials: int, rate: float) -> list[float]:
    return [math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(trials + 1)]


@pytest.mark.parametrize("eligible", [5, 10, 20, 50])
def test_wilson_intervals_hold_as_often_as_they_say(eligible: int) -> None:
    """Exactly, over all outcomes: on average over rates 95 %, and never far below it."""
    intervals = [wilson_interval(k, eligible) for k in range(eligible + 1)]
    coverages = [
        sum(p for p, i in zip(binomial(eligible, rate), intervals, strict=True) if rate in i)
        for rate in ((2 * step + 1) / 400 for step in range(200))
    ]

    assert sum(coverages) / len(coverages) == pytest.approx(0.95, abs=0.015)
    assert min(coverages) > 0.82


@pytest.mark.parametrize(
    ("eligible", "rates"),
    [((5, 5), (0.8, 0.4)), ((10, 10), (0.5, 0.5)), ((20, 12), (0.9, 0.6)), ((40, 40), (0.3, 0.1))],
)
def test_differences_hold_as_often_as_they_say(
    eligible: tuple[int, int], rates: tuple[float, float]
) -> None:
    """In 4,000 simulated evaluations: 95 %, give or take what chance and few trials make of it."""
    rng = random.Random(8)
    held = 0
    for _ in range(4_000):
        one, other = (
            sum(rng.random() < rate for _ in range(trials))
            for trials, rate in zip(eligible, rates, strict=True)
        )
        held += rates[0] - rates[1] in newcombe_difference(one, eligible[0], other, eligible[1])

    # Three standard errors of a simulated share are 0.01; counts are whole, hence the rest.
    assert held / 4_000 == pytest.approx(0.955, abs=0.03)


@pytest.mark.parametrize(
    ("succeeded", "eligible", "confidence", "told"),
    [
        (0, 0, 0.95, "eligible is 0"),
        (-1, 5, 0.95, "succeeded is -1"),
        (6, 5, 0.95, "succeeded is 6"),
        (1, 5, 0.0, "confidence is 0.0"),
        (1, 5, 1.0, "confidence is 1.0"),
        (1, 5, math.nan, "confidence is nan"),
    ],
)
def test_what_is_no_count_is_refused(
    succeeded: int, eligible: int, confidence: float, told: str
) -> None:
    """An interval of nothing would be believed like any other."""
    with pytest.raises(ValueError, match=told):
        wilson_interval(succeeded, eligible, confidence=confidence)
    with pytest.raises(ValueError, match=told):
        newcombe_difference(succeeded, eligible, 1, 2, confidence=confidence)


def test_a_t_without_degrees_is_refused() -> None:
    """One value has no spread to estimate."""
    with pytest.raises(ValueError, match="degrees is 0"):
        student_quantile(0.95, 0)
    with pytest.raises(ValueError, match=r"confidence is 1\.5"):
        student_quantile(1.5, 3)


def test_an_interval_upside_down_is_refused() -> None:
    """Whoever swaps the bounds would find that nothing lies inside."""
    with pytest.raises(ValueError, match="has no inside"):
        Interval(0.5, 0.4)
    assert Interval(0.123456789, 0.9).rounded(3) == Interval(0.123, 0.9)
