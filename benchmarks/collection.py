"""What collecting many items of evals costs, against as many plain test functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure, Known
from processes import PYTEST, Cost, cost
from small_task import ITEMS_OF_A_TRIAL, write_small_task

CPU = Known("collection, CPU, evals : functions", "ratio", at_most=0.6)
MEMORY = Known("collection, memory, evals : functions", "ratio", at_most=1)
GROWN_CPU = Known("  of what grows with the items, CPU", "ratio")
GROWN_MEMORY = Known("  of what grows with the items, memory", "ratio")
FIGURES = (CPU, MEMORY, GROWN_CPU, GROWN_MEMORY)

Pair = tuple[Cost, Cost]
"""Two sessions that are compared."""


def collection_figures(folder: Path, items: int, runs: int) -> Iterator[Figure]:
    """Yield what sessions that collect evals cost, against one module of plain test functions."""
    write_projects(folder, items)
    sessions = [session_pairs(folder, items) for _ in range(runs + 1)]
    del sessions[0]  # It compiled what the others read.
    whole = [(ours[1], plains[1]) for ours, plains in sessions]
    grown = [(growth(ours), growth(plains)) for ours, plains in sessions]
    plain_s = statistics.median(plains.cpu_s for _, plains in whole)
    plain_mib = statistics.median(plains.peak_mib for _, plains in whole)
    ours_mib = statistics.median(ours.peak_mib for ours, _ in whole)
    note = f"whole sessions of {items} items, median of {runs} pairs"
    yield CPU.of(cpu_ratio(whole), note, beside=f"plain functions: {plain_s:.2f} s")
    note, beside = f"{ours_mib:.0f} MiB", f"plain functions: {plain_mib:.0f} MiB"
    yield MEMORY.of(peak_ratio(whole), note, beside=beside)
    note = "beyond a session that collects one trial, or one function"
    yield GROWN_CPU.of(cpu_ratio(grown), note)
    yield GROWN_MEMORY.of(peak_ratio(grown))


def write_projects(folder: Path, items: int) -> None:
    """Write a project of evals and one of so many plain test functions."""
    plain, evals = folder / "plain", folder / "evals"
    write_small_task(evals / "evals" / "tasks" / "small")
    plain.mkdir()
    for project in (plain, evals):
        (project / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (plain / "test_one.py").write_text("def test_one():\n    pass\n", "utf-8")
    functions = "".join(f"def test_{number}():\n    pass\n" for number in range(items))
    (plain / "test_many.py").write_text(functions, "utf-8")


def session_pairs(folder: Path, items: int) -> tuple[Pair, Pair]:
    """Return what collecting little and much costs: of evals, and of functions right after."""
    plain, evals = folder / "plain", folder / "evals"
    trials = f"--evalarc-trials={items // ITEMS_OF_A_TRIAL}"
    few, many = ("evals", "--evalarc-trials=1"), ("evals", trials)
    ours = collection_cost(evals, few), collection_cost(evals, many)
    # Interleaved and compared by pairs, so that a machine that gets busier meets both alike.
    plains = collection_cost(plain, ("test_one.py",)), collection_cost(plain, ("test_many.py",))
    return ours, plains


def collection_cost(folder: Path, arguments: Sequence[str]) -> Cost:
    """Return what `pytest --collect-only -q` takes."""
    plugins = ("-p", "no:hypothesispytest", "-p", "no:randomly")
    return cost([*PYTEST, "--co", *plugins, *arguments], folder)


def growth(costs: Pair) -> Cost:
    """Return what the larger of two sessions took beyond the smaller."""
    small, large = costs
    return Cost(*(much - little for little, much in zip(small, large, strict=True)))


def cpu_ratio(pairs: Sequence[Pair]) -> float:
    """Return the median ratio of the seconds of pairs of processes."""
    return statistics.median(ours.cpu_s / theirs.cpu_s for ours, theirs in pairs)


def peak_ratio(pairs: Sequence[Pair]) -> float:
    """Return the median ratio of the peak sizes of pairs of processes."""
    return statistics.median(ours.peak_mib / theirs.peak_mib for ours, theirs in pairs)
