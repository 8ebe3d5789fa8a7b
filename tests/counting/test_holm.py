"""Tests of p-values that are adjusted to one another."""

from __future__ import annotations

import random

import pytest
from statsmodels.stats.multitest import multipletests

from pytest_evalarc.counting.holm import holm


def test_the_smallest_is_multiplied_most() -> None:
    """Aickin and Gensler (1996), doi:10.2105/AJPH.86.5.726, explain it by such steps."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_adjusted_p_values_are_those_of_another_implementation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ties and ones are among them, as exact tests give many."""
    # The other one searches the whole heap for garbage at every call.
    monkeypatch.setattr("gc.collect", lambda: 0)
    rng = random.Random(5)
    for number in range(1, 40):
        p_values = [round(rng.random() ** 3, 2) for _ in range(number)]
        theirs = multipletests(p_values, method="holm")[1]
        assert holm(p_values) == pytest.approx(list(theirs), rel=0, abs=1e-9)


def test_one_comparison_is_left_as_it_is_and_none_is_none() -> None:
    """There is nothing to correct for."""
    assert holm([0.03]) == (0.03,)
    assert holm([]) == ()


@pytest.mark.parametrize("p_value", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(p_value: float) -> None:
    """It would spoil the p-values of all others."""
    with pytest.raises(ValueError, match="does not lie within 0 and 1"):
        holm([0.5, p_value])
