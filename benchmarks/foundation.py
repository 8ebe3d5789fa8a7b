"""Figures of the foundation: an idle plugin, trials, floods, many items and many results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import collection
import counting
import flood
import idle
import trials
from figures import Figure
from inspect_peer import inspect_trial
from processes import MIB, one

FIGURES = (
    *idle.FIGURES,
    *trials.FIGURES,
    *flood.FIGURES,
    *collection.FIGURES,
    *counting.FIGURES,
)


class Sizes(NamedTuple):
    """How much is measured of each figure."""

    idle_runs: int
    rounds: int
    samples: int
    sample_runs: int
    flood_bytes: int
    bare_runs: int
    items: int
    collections: int
    results: int


FULL = Sizes(
    idle_runs=40,
    rounds=5,
    samples=100,
    sample_runs=3,
    flood_bytes=1 << 30,
    bare_runs=40,
    items=10_000,
    collections=7,
    results=10_000,
)
QUICK = Sizes(
    idle_runs=6,
    rounds=2,
    samples=100,
    sample_runs=1,
    flood_bytes=128 * MIB,
    bare_runs=10,
    items=10_000,
    collections=1,
    results=1_000,
)


def foundation_figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Yield every figure, each as soon as it is known."""
    sizes = QUICK if quick else FULL
    yield from idle.idle_figures(folder / "idle", sizes.idle_runs)
    ran = trials.oracle_trials(folder / "trials", sizes.rounds)
    beside = inspect_trial(folder / "inspect", samples=sizes.samples, runs=sizes.sample_runs)
    yield from trials.trial_figures(ran, beside=beside)
    yield from trials.check_figures(ran, sizes.bare_runs)
    yield from flood.flood_figures(sizes.flood_bytes)
    yield from collection.collection_figures(folder / "collection", sizes.items, sizes.collections)
    batch = one(folder.glob("trials/results/*/*/*/plan.json")).parent
    yield from counting.counting_figures(folder / "batch", batch, sizes.results)
