"""Read what the trials of a batch add up to from what lies in their result folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_evalarc.counting.benchmark import count_each
from pytest_evalarc.counting.recount import require_agreement
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.runs.budget import kept_back
from pytest_evalarc.runs.shards import kept_shard


def read_benchmark(folder: Path) -> Benchmark:
    """Return what the results in a folder add up to; a function of its files alone.

    Args:
        folder: Holds plan.json and a folder for each trial.

    Raises:
        DocumentError: A document cannot be read, does not belong to the plan, or says otherwise
            than its own rows.
    """
    plan = read_model(folder / "plan.json", PlanDoc)
    return count_each(
        plan,
        read_results(folder, plan),
        kept_back=kept_back(folder, plan),
        shard=kept_shard(folder),
    )


def read_results(folder: Path, plan: PlanDoc) -> Iterator[tuple[str, TrialResult]]:
    """Yield the results that are there, one at a time: a batch may have thousands.

    Raises:
        DocumentError: A result cannot be read, or says otherwise than its own rows.
    """
    for entry in plan.trials:
        path = folder / entry.folder / "result.json"
        if path.exists():
            result = read_model(path, TrialResult)
            require_agreement(result, where=str(path))
            yield entry.folder, result
