"""Write what a batch shows over all of its tasks and clients, beside their folders of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_evalarc.counting.summary import summarize_batch
from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.reporting.batch import plan_kind
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.reporting.documents import write_whole
from pytest_evalarc.runs.folders import summary_path


def read_summary(results: Path, batch: str) -> Summary:
    """Return what a batch shows, computed again from its plans and results alone.

    Raises:
        DocumentError: A document cannot be read, does not belong to its plan, or says otherwise
            than its own rows.
        UsageError: The batch has no trials there.
    """
    benchmarks = [read_benchmark(folder) for folder in _trial_folders(results, batch)]
    if not benchmarks:
        hint = "name results/<batch>, where a task's trials are in results/<task>/<client>/<batch>"
        raise UsageError(str(results / batch), "is no batch with trials", hint)
    return summarize_batch(batch, benchmarks)


def write_summary(results: Path, batch: str) -> tuple[Summary, Path]:
    """Write what a batch shows, as `read_summary`, and return it with its path.

    Raises:
        DocumentError: As for `read_summary`, or it cannot be written.
        UsageError: The batch has no trials there.
    """
    return _written(results, read_summary(results, batch))


def write_summary_of(
    results: Path, batch: str, benchmarks: Sequence[Benchmark]
) -> tuple[Summary, Path]:
    """Write what a batch shows, from all of its benchmarks as they were just computed.

    Raises:
        DocumentError: It cannot be written, or a benchmark is of another batch.
    """
    return _written(results, summarize_batch(batch, benchmarks))


def _written(results: Path, summary: Summary) -> tuple[Summary, Path]:
    return summary, write_whole(summary_path(results, summary.batch), summary)


def _trial_folders(results: Path, batch: str) -> Iterator[Path]:
    for plan in sorted(results.glob(f"*/*/{batch}/plan.json")):
        if plan_kind(plan.parent) == "trials":
            yield plan.parent
