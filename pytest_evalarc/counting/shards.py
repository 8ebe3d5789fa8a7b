"""Which part of a plan belongs to which shard: a function of names and of the number of shards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from pytest_evalarc.model.planned import PlannedTrial, Shard


def dealt_rounds(task: str, client: str, rounds: Iterable[int], of: int) -> Mapping[int, int]:
    """Return the number of the shard that each round of a task and client belongs to.

    A round is dealt as a whole, so that trials which are compared as a pair, and their order, stay
    on one machine. Rounds are dealt in the order of their digests: by their numbers, two shards
    would have all odd rounds and all even ones, and with them one order of the configurations each.

    Args:
        task: The task's name.
        client: The client's label.
        rounds: Numbers of all rounds of the plan, in any order.
        of: How many shards there are; at least 1.

    Returns:
        By round, a number within 1 and `of`. The shards' shares differ by one round at most, and
        which of them get one more depends on the names, so that many small plans are spread.
    """
    first = _digest(task, client) % of
    ordered = sorted(set(rounds), key=lambda number: _digest(task, client, f"round-{number}"))
    return {number: (first + place) % of + 1 for place, number in enumerate(ordered)}


def own_trials(
    trials: Sequence[PlannedTrial], shard: Shard | None, *, task: str, client: str
) -> tuple[PlannedTrial, ...]:
    """Return the trials of a plan that belong to a shard, in their order; to None belong all."""
    if shard is None:
        return tuple(trials)
    dealt = dealt_rounds(task, client, (trial.round for trial in trials), shard.of)
    return tuple(trial for trial in trials if dealt[trial.round] == shard.number)


def shard_of_task(task: str, of: int) -> int:
    """Return the number of the shard that validates and audits a task, within 1 and `of`.

    It follows from the task's own name, so a further task moves no other one.
    """
    return _digest(task, "audit") % of + 1


def _digest(*names: str) -> int:
    # No name holds a slash, so no two lists of names spell the same text.
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest(), "big")
