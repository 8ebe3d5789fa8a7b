"""Tests of the one word for a difference, and of Fisher's exact test."""

from __future__ import annotations

import pytest
from scipy import stats

from pytest_evalarc.counting.rates import LEAST_TRIALS, fisher_exact, verdict
from pytest_evalarc.model.shown import Shown


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ((5, 5, 0, 5), Shown.HELPED),
        ((0, 5, 5, 5), Shown.HARMED),
        ((4, 5, 2, 5), Shown.NO_DIFFERENCE),
        ((56, 70, 48, 80), Shown.HELPED),
        ((4, 4, 0, 9), Shown.TOO_FEW),
        ((9, 9, 0, 4), Shown.TOO_FEW),
        ((0, 0, 0, 0), Shown.TOO_FEW),
    ],
)
def test_a_difference_has_one_word(counts: tuple[int, int, int, int], word: Shown) -> None:
    """And none is said of fewer than five trials, even if they could not differ more."""
    assert verdict(*counts) is word


def test_the_word_changes_at_the_stated_number_of_trials() -> None:
    """The page on statistics tells this number."""
    assert LEAST_TRIALS == 5
    assert verdict(5, 5, 0, 5) is not Shown.TOO_FEW


def test_the_words_are_what_a_reader_reads() -> None:
    """Documents keep them, with a line where a sentence has a space."""
    assert Shown.TOO_FEW.replace("_", " ") == "too few trials to tell"
    assert Shown.NO_DIFFERENCE.replace("_", " ") == "no difference shown"


def test_the_lady_who_tells_three_of_four_cups_may_be_guessing() -> None:
    """Fisher (1935): 3 of 4 against 1 of 4 gives 34/70; all four right gives 2/70."""
    assert fisher_exact(3, 4, 1, 4) == 34 / 70
    assert fisher_exact(4, 4, 0, 4) == 2 / 70


def test_fishers_test_is_that_of_another_implementation() -> None:
    """Over all tables of a few margins, and large ones."""
    for eligible, other_eligible in ((1, 1), (5, 5), (8, 3), (12, 20)):
        for one in range(eligible + 1):
            for other in range(other_eligible + 1):
                theirs = stats.fisher_exact(
                    [[one, eligible - one], [other, other_eligible - other]]
                )
                ours = fisher_exact(one, eligible, other, other_eligible)
                assert ours == pytest.approx(theirs[1], rel=0, abs=1e-9)
    large = stats.fisher_exact([[560, 440], [470, 530]])[1]
    assert fisher_exact(560, 1_000, 470, 1_000) == pytest.approx(large, rel=0, abs=1e-9)


@pytest.mark.parametrize("counts", [(1, 0, 1, 2), (3, 2, 1, 2), (1, 2, -1, 2), (1, 2, 0, 0)])
def test_what_is_no_count_of_successes_is_refused(counts: tuple[int, int, int, int]) -> None:
    """It would give a p-value all the same."""
    with pytest.raises(ValueError, match="is no count of successes"):
        fisher_exact(*counts)
