"""Tests of pass@k and pass^k."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from pytest_evalarc.counting.passes import by_k, pass_at_k, pass_pow_k


def test_both_are_shares_of_all_sets_of_trials() -> None:
    """By their definition, over every number of trials up to seven."""
    for eligible in range(1, 8):
        for succeeded in range(eligible + 1):
            trials = [True] * succeeded + [False] * (eligible - succeeded)
            for k in range(1, eligible + 1):
                sets = list(combinations(trials, k))
                some, whole = sum(map(any, sets)), sum(map(all, sets))
                assert pass_at_k(eligible, succeeded, k) == float(Fraction(some, len(sets)))
                assert pass_pow_k(eligible, succeeded, k) == float(Fraction(whole, len(sets)))


def test_pass_at_k_is_that_of_the_published_code() -> None:
    """Chen et al. (2021), figure 3: one minus a product, which is stable for large numbers."""

    def published(n: int, c: int, k: int) -> float:
        if n - c < k:
            return 1.0
        product = 1.0
        for i in range(n - c + 1, n + 1):
            product *= 1 - k / i
        return 1.0 - product

    for n, c, k in ((200, 13, 1), (200, 13, 10), (200, 13, 100), (200, 199, 2), (50, 0, 50)):
        assert pass_at_k(n, c, k) == pytest.approx(published(n, c, k), rel=0, abs=1e-9)


def test_neither_is_biased() -> None:
    """Over all outcomes of six trials the mean estimate is the chance itself."""
    n, k, rate = 6, 3, Fraction(3, 10)
    chances = [binomial(n, c, rate) for c in range(n + 1)]

    some = sum(p * Fraction(pass_at_k(n, c, k)) for c, p in enumerate(chances))
    whole = sum(p * Fraction(pass_pow_k(n, c, k)) for c, p in enumerate(chances))

    assert float(some) == pytest.approx(float(1 - (1 - rate) ** k), rel=1e-12)
    assert float(whole) == pytest.approx(float(rate**k), rel=1e-12)


def binomial(n: int, c: int, rate: Fraction) -> Fraction:
    ways = sum(1 for _ in combinations(range(n), c))
    return ways * rate**c * (1 - rate) ** (n - c)


def test_documents_tell_every_small_k_and_all_trials() -> None:
    """A curve of ten thousand points would tell no more."""
    assert by_k(pass_at_k, 0, 0) == {}
    assert by_k(pass_pow_k, 3, 2) == {1: 2 / 3, 2: 1 / 3, 3: 0.0}
    assert list(by_k(pass_at_k, 10, 2)) == [*range(1, 11)]
    assert by_k(pass_at_k, 10_000, 1)[10_000] == 1.0
    assert list(by_k(pass_at_k, 10_000, 1)) == [*range(1, 11), 10_000]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((0, 0, 1), "eligible is 0"),
        ((3, 4, 1), "succeeded is 4"),
        ((3, -1, 1), "succeeded is -1"),
        ((3, 1, 0), "k is 0"),
        ((3, 1, 4), "k is 4"),
    ],
)
def test_more_trials_than_were_run_say_nothing(numbers: tuple[int, int, int], told: str) -> None:
    """A pass@10 from five trials would be made up."""
    for estimate in (pass_at_k, pass_pow_k):
        with pytest.raises(ValueError, match=told):
            estimate(*numbers)
