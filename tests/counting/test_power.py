"""Tests of what a plan can show."""

from __future__ import annotations

import functools
import itertools
import math
import re
from pathlib import Path

import pytest
from scipy.stats import binom

from pytest_evalarc.counting.intervals import newcombe_difference
from pytest_evalarc.counting.power import power_sentence, smallest_difference


def power(trials: int, difference: float, *, baseline_rate: float | None = None) -> float:
    """Return the chance that the interval lies above 0, over every pair of counts."""
    counts = range(trials + 1)
    rate = 0.5 - difference / 2 if baseline_rate is None else baseline_rate
    baseline = binom.pmf(counts, trials, rate)
    treated = binom.pmf(counts, trials, min(1.0, rate + difference))
    return sum(baseline[b] * treated[t] for b, t in shown(trials))


@functools.cache
def shown(trials: int) -> list[tuple[int, int]]:
    """Return every pair of counts whose interval lies above 0, each looked at on its own."""
    pairs = itertools.combinations(range(trials + 1), 2)
    return [(b, t) for b, t in pairs if newcombe_difference(t, trials, b, trials).low > 0]


@pytest.mark.parametrize("trials", [5, 6, 8, 10, 13, 20, 30, 50])
def test_the_difference_is_shown_with_the_stated_power_and_no_smaller_one_is(trials: int) -> None:
    """By brute force over all outcomes: at it at least 0.8, a thousandth below it less."""
    found = smallest_difference(trials)

    assert found is not None
    assert power(trials, found) >= 0.8 > power(trials, found - 0.001)


def test_the_page_on_statistics_tells_these_differences() -> None:
    """They are what a reader plans by."""
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text("utf-8")
    told = re.findall(r"^\| (\d+) \| (0\.\d{3}) \|$", page, re.MULTILINE)

    assert len(told) == 6
    for trials, difference in told:
        assert smallest_difference(int(trials)) == float(difference)


def test_the_approximation_takes_over_without_a_step() -> None:
    """It is that of Fleiss, Levin and Paik: n = (z/d)**2 * (1 - d**2) / 2 for each arm."""
    exact, rough = smallest_difference(2_000), smallest_difference(2_001)

    assert exact == rough == 0.045
    z = 1.959963984540054 + 0.8416212335729143
    for trials in (5_000, 100_000):
        found = smallest_difference(trials)
        assert found == pytest.approx(z / math.sqrt(2 * trials + z * z), abs=0.001)


def test_so_few_trials_show_nothing() -> None:
    """No verdict is given below five, so no difference can be shown."""
    assert [smallest_difference(trials) for trials in (1, 2, 3, 4)] == [None] * 4
    with pytest.raises(ValueError, match="a plan needs at least 1"):
        smallest_difference(0)


def test_a_plan_is_told_in_one_line() -> None:
    """Before money is spent, not after."""
    assert power_sentence(1) == (
        "1 trial for each configuration is too few to tell a difference; plan at least 5"
    )
    assert power_sentence(10) == (
        "10 trials for each configuration are likely to show a difference of success rates of "
        "0.60 or more, and not a smaller one (power 0.8, level 0.05)"
    )


@pytest.mark.parametrize("trials", [5, 10, 20, 50])
def test_a_difference_is_hardest_to_show_around_one_half(trials: int) -> None:
    """So whatever the rates turn out to be, a plan shows no less than it was told to."""
    found = smallest_difference(trials)
    assert found is not None

    for step in range(21):
        assert power(trials, found, baseline_rate=(1 - found) * step / 20) >= 0.8
