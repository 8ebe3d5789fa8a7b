"""What is compared within pairs: the same trial of two configurations, the same task of many."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist, fmean

from pytest_evalarc.counting.intervals import CONFIDENCE, Interval, student_quantile

RESAMPLES = 10_000
SEED = 1979
"""Whatever the tasks, one seed: who computes an interval again gets the same bounds."""

LEAST_TASKS = 5
"""Tasks below which no interval over tasks is given: even expanded, it would be too narrow."""


def mcnemar_exact(only_treated: int, only_baseline: int) -> float:
    """Return the two-sided p-value of McNemar's exact test on matched trials.

    Pairs that ended alike say nothing; of those that did not, each side wins with a chance of one
    half when there is no difference.

    Args:
        only_treated: Pairs in which the treated trial alone succeeded; at least 0.
        only_baseline: Pairs in which the baseline trial alone succeeded; at least 0.

    Returns:
        Within [0, 1]: twice the smaller binomial tail, and 1 where no pair differs.

    Raises:
        ValueError: A count is negative.

    Source: McNemar (1947), doi:10.1007/BF02295996; exact by the sign test. Conover (1999),
    Practical Nonparametric Statistics, section 3.5: 4 against 21 pairs.
    """
    if only_treated < 0 or only_baseline < 0:
        raise ValueError(f"pairs are {only_treated} and {only_baseline}, but counts start at 0")
    pairs = only_treated + only_baseline
    fewer = min(only_treated, only_baseline)
    tail = ways = 1
    for number in range(fewer):
        ways = ways * (pairs - number) // (number + 1)
        tail += ways
    # Whole numbers as long as possible: a power of two may be beyond any float.
    return min(1.0, 2 * tail / 2**pairs) if 2 * tail < 2**pairs else 1.0


def cluster_bootstrap(
    values: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Return the expanded percentile bootstrap interval of a mean over tasks.

    Trials of one task resemble one another, so whole tasks are drawn, with replacement, and each
    weighs the same however many trials it had. Plain percentiles are too narrow when tasks are
    few; here they are taken further out, so that of normal differences they are the t interval.

    Args:
        values: shape (n_tasks,), of each task its success rate, or treatment minus baseline
            within the task, each within [-1, 1]; at least 2 tasks.
        confidence: Two-sided coverage, between 0 and 1 exclusive.
        resamples: How often all tasks are drawn; at least 1.
        seed: Of the draws: the same seed gives the same bounds, in whatever order tasks come.

    Returns:
        Bounds of the mean, both within the range of the values.

    Raises:
        ValueError: There are fewer than 2 tasks, or a number is out of range.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapter 13; whole
    clusters: Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8;
    expanded percentiles: Hesterberg (2015), doi:10.1080/00031305.2015.1089789, section 5.3.
    """
    if len(values) < 2:
        raise ValueError(f"there are {len(values)} tasks, but a bootstrap needs at least 2")
    if not 0.0 < confidence < 1.0 or resamples < 1:
        raise ValueError(f"confidence is {confidence} and resamples {resamples}: out of range")
    draw = random.Random(seed)
    tasks = sorted(values)
    means = sorted(fmean(draw.choices(tasks, k=len(tasks))) for _ in range(resamples))
    tail = _expanded_tail(confidence, len(tasks))
    return Interval(_quantile(means, tail), _quantile(means, 1 - tail))


def _expanded_tail(confidence: float, tasks: int) -> float:
    """Return the share of means to leave out at each end; less than usual when tasks are few."""
    further = math.sqrt(tasks / (tasks - 1)) * student_quantile(confidence, tasks - 1)
    return NormalDist().cdf(-further)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile, interpolated between neighbours (Hyndman and Fan's type 7)."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
