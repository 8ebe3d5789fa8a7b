"""Tests of comparisons within pairs: matched trials, and tasks."""

from __future__ import annotations

import random
from itertools import product
from statistics import fmean

import pytest
from scipy.stats import t
from statsmodels.stats.contingency_tables import mcnemar

from pytest_evalarc.counting.paired import LEAST_TASKS, cluster_bootstrap, mcnemar_exact

BOUNDS = (-0.02857143, 0.45714286)
TASKS = (0.4, 0.2, -0.2, 0.0, 0.6, 0.2, 0.4)


def test_the_published_example_of_mcnemars_test_is_reproduced() -> None:
    """Conover (1999), section 3.5: 4 against 21 pairs, two-sided by the binomial."""
    assert mcnemar_exact(21, 4) == pytest.approx(0.000910520553588867, rel=1e-12)


def test_mcnemars_test_is_that_of_another_implementation() -> None:
    """Over a grid of pairs, either side ahead."""
    for one, other in product((*range(12), 50, 301), repeat=2):
        if one + other:
            theirs = mcnemar([[7, one], [other, 3]], exact=True).pvalue
            assert mcnemar_exact(one, other) == pytest.approx(theirs, rel=0, abs=1e-9)


def test_pairs_that_ended_alike_say_nothing() -> None:
    """Without a pair that differs there is no evidence of a difference at all."""
    assert mcnemar_exact(0, 0) == 1.0
    assert mcnemar_exact(3, 3) == 1.0


def test_thousands_of_pairs_are_no_overflow() -> None:
    """Powers of two that large are beyond any float, and so is their inverse."""
    assert mcnemar_exact(5_000, 0) == 0.0
    assert mcnemar_exact(5_000, 5_001) == 1.0


def test_negative_pairs_are_refused() -> None:
    """They are a difference of counts, not a count."""
    with pytest.raises(ValueError, match="counts start at 0"):
        mcnemar_exact(-1, 3)


def test_an_interval_over_tasks_is_the_same_whoever_computes_it() -> None:
    """It is kept in documents, and verified: neither order nor process may move it."""
    again = cluster_bootstrap(tuple(reversed(TASKS)))

    assert cluster_bootstrap(TASKS) == again
    assert cluster_bootstrap(TASKS, resamples=50) != cluster_bootstrap(TASKS, resamples=50, seed=2)
    assert (round(again.low, 8), round(again.high, 8)) == BOUNDS


def test_an_interval_over_tasks_is_that_of_all_resamples() -> None:
    """Four tasks have 256 resamples, so the exact quantiles are known."""
    tasks = (0.0, 0.1, 0.3, 0.8)
    means = sorted(fmean(drawn) for drawn in product(tasks, repeat=4))

    found = cluster_bootstrap(tasks, confidence=0.5, resamples=20_000)

    # With three degrees of freedom the middle half is taken out to 18.9 and 81.1 %.
    assert found.low == pytest.approx(means[round(0.189 * 255)], abs=0.026)
    assert found.high == pytest.approx(means[round(0.811 * 255)], abs=0.026)


def test_of_normal_differences_it_is_about_the_t_interval() -> None:
    """That is what percentiles are taken further out for when tasks are few."""
    rng = random.Random(3)
    values = [rng.gauss(0.1, 0.1) for _ in range(12)]
    error = (sum((v - fmean(values)) ** 2 for v in values) / 11 / 12) ** 0.5

    found = cluster_bootstrap(values)

    reach = t.ppf(0.975, 11) * error
    assert found.low == pytest.approx(fmean(values) - reach, abs=0.1 * reach)
    assert found.high == pytest.approx(fmean(values) + reach, abs=0.1 * reach)


@pytest.mark.parametrize(("tasks", "least"), [(5, 0.90), (10, 0.925), (20, 0.93)])
def test_intervals_over_tasks_hold_about_as_often_as_they_say(tasks: int, least: float) -> None:
    """In 1,000 simulated batches of five trials per arm, whose tasks differ in both rates."""
    rng = random.Random(tasks)

    def rate(chance: float) -> float:
        return sum(rng.random() < chance for _ in range(5)) / 5

    held = 0
    for number in range(1_000):
        chances = [rng.uniform(0.1, 0.6) for _ in range(tasks)]
        values = [rate(c + rng.uniform(0.0, 0.4)) - rate(c) for c in chances]
        held += 0.2 in cluster_bootstrap(values, resamples=400, seed=number)

    # Three standard errors of a simulated share are 0.02.
    assert least <= held / 1_000 <= 0.98


def test_tasks_that_agree_leave_no_width() -> None:
    """The bootstrap knows no other tasks than these, which the page on statistics says."""
    interval = cluster_bootstrap([0.25] * LEAST_TASKS)

    assert (interval.low, interval.high) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("values", "more", "told"),
    [
        ([], {}, "there are 0 tasks"),
        ([0.1], {}, "there are 1 tasks"),
        ([0.1, 0.2], {"confidence": 1.0}, "out of range"),
        ([0.1, 0.2], {"resamples": 0}, "out of range"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(
    values: list[float], more: dict[str, float], told: str
) -> None:
    """One task shows nothing of how tasks differ."""
    with pytest.raises(ValueError, match=told):
        cluster_bootstrap(values, **more)
