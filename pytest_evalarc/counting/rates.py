"""The difference of two success rates: the one word for it, and how chance would make it."""

from __future__ import annotations

import math

from pytest_evalarc.counting.intervals import newcombe_difference
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.shown import Shown

LEAST_TRIALS = 5
"""Eligible trials of each configuration below which nothing is said of their difference."""


def verdict(succeeded: int, eligible: int, other_succeeded: int, other_eligible: int) -> Shown:
    """Return what a treatment's trials show against those of its baseline.

    A difference is shown when Newcombe's 95 % interval of it leaves 0 out.

    Args:
        succeeded: Successes with the treatment; 0 <= succeeded <= eligible.
        eligible: Trials that count with the treatment; at least 0.
        other_succeeded: Successes of the baseline.
        other_eligible: Trials of the baseline that count.

    Returns:
        `too_few_trials_to_tell` unless each side has at least 5 trials that count.

    Raises:
        ValueError: A count is out of range.
    """
    if min(eligible, other_eligible) < LEAST_TRIALS:
        return Shown.TOO_FEW
    return verdict_of(newcombe_difference(succeeded, eligible, other_succeeded, other_eligible))


def fisher_exact(succeeded: int, eligible: int, other_succeeded: int, other_eligible: int) -> float:
    """Return the two-sided p-value of Fisher's exact test for two independent rates.

    It is more cautious than Newcombe's interval: it never calls a difference too often, however
    few the trials and however small the level, which comparing many tasks needs.

    Args:
        succeeded: Successes of the first group; 0 <= succeeded <= eligible.
        eligible: Trials of the first group; at least 1.
        other_succeeded: Successes of the other group.
        other_eligible: Trials of the other group; at least 1.

    Returns:
        Within (0, 1]: how likely a table as unlikely as this one is, given its margins.

    Raises:
        ValueError: A count is out of range.

    Source: Fisher (1935), The Design of Experiments, chapter 2, whose lady tells 3 of 4 cups:
    3/4 against 1/4 gives 0.486. Two-sided by the sum of small probabilities.
    """
    for part, whole in ((succeeded, eligible), (other_succeeded, other_eligible)):
        if whole < 1 or not 0 <= part <= whole:
            raise ValueError(f"{part} of {whole} is no count of successes")
    both = succeeded + other_succeeded
    first, last = max(0, both - other_eligible), min(both, eligible)
    # Whole numbers, so that tables of equal probability are equal.
    ways = math.comb(eligible, first) * math.comb(other_eligible, both - first)
    tables: list[int] = []
    for number in range(first, last + 1):
        tables.append(ways)
        ways *= (eligible - number) * (both - number)
        ways //= (number + 1) * (other_eligible - both + number + 1)
    seen = tables[succeeded - first]
    return sum(table for table in tables if table <= seen) / sum(tables)


def verdict_of(difference: Interval) -> Shown:
    """Return on which side of 0 an interval of treatment minus baseline lies, if on one."""
    if difference.low > 0:
        return Shown.HELPED
    return Shown.HARMED if difference.high < 0 else Shown.NO_DIFFERENCE
