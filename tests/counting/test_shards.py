"""Tests of which part of a plan belongs to which shard."""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.counting.shards import dealt_rounds, own_trials, shard_of_task
from pytest_evalarc.model.planned import Shard

PAIR = ("without-skills", "with-skills")


def test_a_round_is_always_dealt_to_the_same_shard() -> None:
    """Machines that never meet must agree, whatever Python or release they run."""
    dealt = dealt_rounds("fix-parser", "codex", range(1, 9), 3)

    assert [dealt[number] for number in range(1, 9)] == [2, 3, 1, 1, 2, 3, 2, 3]
    assert [shard_of_task(name, 3) for name in ("fix-parser", "store", "slugs")] == [2, 1, 2]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("rounds", [1, 2, 7, 20])
def test_shares_are_whole_rounds_that_differ_by_one_at_most(rounds: int, of: int) -> None:
    """A machine with twice the work would make all others wait, and a torn pair is no pair."""
    trials = planned_trials(PAIR, rounds)
    shares = [
        own_trials(trials, Shard(number=number, of=of), task="t", client="c")
        for number in range(1, of + 1)
    ]

    sizes = [len({trial.round for trial in share}) for share in shares]
    assert sum(sizes) == rounds
    assert max(sizes) - min(sizes) <= 1
    assert all(len(share) == 2 * size for share, size in zip(shares, sizes, strict=True))
    assert sorted(trial.folder for share in shares for trial in share) == sorted(
        trial.folder for trial in trials
    )


def test_a_share_keeps_the_order_of_the_plan() -> None:
    """Configurations alternate between rounds, and on each machine they still do."""
    trials = planned_trials(PAIR, 9)

    share = own_trials(trials, Shard(number=2, of=3), task="t", client="c")

    assert list(share) == [trial for trial in trials if trial in share]


def test_no_shard_has_only_rounds_that_begin_with_the_same_configuration() -> None:
    """Dealt by their numbers, one of two machines would always run the baseline first."""
    dealt = dealt_rounds("t", "c", range(1, 41), 2)

    first = {number % 2 for number, shard in dealt.items() if shard == 1}
    assert first == {0, 1}


def test_many_small_plans_are_spread_over_the_shards() -> None:
    """Were every plan dealt from the first shard on, the last ones would have nothing to do."""
    found = Counter(dealt_rounds(f"task-{n}", "c", [1], 8)[1] for n in range(400))
    audits = Counter(shard_of_task(f"task-{n}", 8) for n in range(400))

    for counts in (found, audits):
        assert set(counts) == set(range(1, 9))
        assert max(counts.values()) < 2 * min(counts.values())


def test_the_order_of_the_rounds_does_not_matter() -> None:
    """They are names, and a plan that lists them otherwise is dealt alike."""
    assert dealt_rounds("t", "c", [3, 1, 2], 2) == dealt_rounds("t", "c", [1, 2, 3], 2)
