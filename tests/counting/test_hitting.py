"""Tests of smallest hitting sets."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evalarc.counting.hitting import minimum_hitting_sets

NAMES = tuple("abcdefg")


def by_brute_force(targets):
    """All smallest hitting sets, by trying every set of names."""
    for size in range(len(NAMES) + 1):
        hits = [
            names
            for names in combinations(NAMES, size)
            if all(set(names) & set(target) for target in targets)
        ]
        if hits:
            return tuple(hits)
    return ()


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from(NAMES), min_size=1), max_size=9))
def test_it_finds_exactly_the_sets_that_trying_all_finds(targets) -> None:
    """Grouping, dropped supersets and bounds are shortcuts: none may lose or add a set."""
    found = minimum_hitting_sets(targets, NAMES)

    assert found.sets == by_brute_force(targets)
    assert found.complete


def test_with_nothing_to_hit_the_empty_set_is_the_smallest() -> None:
    """When no fault is detected, no case is needed to keep that score."""
    assert minimum_hitting_sets([], NAMES) == (((),), True)


def test_a_long_list_is_cut_and_says_so() -> None:
    """Three faults with eight interchangeable detectors each have 512 answers."""
    names = [f"c{index}" for index in range(24)]

    found = minimum_hitting_sets([names[:8], names[8:16], names[16:]], names)

    assert len(set(found.sets)) == 100
    assert all(len(chosen) == 3 for chosen in found.sets)
    assert not found.complete


def test_a_search_that_runs_out_of_steps_lists_nothing_unproven() -> None:
    """A set of a size that was not shown to be smallest would be a wrong claim."""
    targets = [set(pair) for pair in combinations(NAMES, 2)]

    assert minimum_hitting_sets(targets, NAMES, steps=3) == ((), False)


def test_sixty_cases_and_forty_faults_stay_within_the_default_steps() -> None:
    """The bound on steps is for the worst case; an ordinary large audit is answered in full."""
    names = [f"c{index}" for index in range(60)]
    dice = random.Random(0)
    targets = [dice.sample(names, dice.randint(8, 12)) for _ in range(40)]

    found = minimum_hitting_sets(targets, names)

    assert found.complete
    assert {len(chosen) for chosen in found.sets} == {6}
    assert all(set(chosen) & set(target) for chosen in found.sets for target in targets)
