"""How cost grows with trials, with checks and with what a candidate prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from figures import Figure, Known, require
from flood import flood
from processes import MIB, PYTEST, timed
from small_task import write_small_task
from trials import documents

COUNTS = (1, 10, 50)
"""Of trials, and of checks in a task."""
FLOODS_MIB = (1, 64, 1024)

TRIALS = {count: Known(f"oracle trials, {count}, whole session", "s") for count in COUNTS}
ONE_MORE_TRIAL = Known("  one more trial, beyond 10 : up to 10", "ratio")
CHECKS = {count: Known(f"checks of a trial, {count}, whole session", "s") for count in COUNTS}
ONE_MORE_CHECK = Known("  one more check, beyond 10 : up to 10", "ratio")
FLOODS = {size: Known(f"flood of {size} MiB, growth of peak memory", "MiB") for size in FLOODS_MIB}
FLOOD_TIMES = {size: Known(f"  flood of {size} MiB, wall time", "s") for size in FLOODS_MIB}
FIGURES = (
    *TRIALS.values(),
    ONE_MORE_TRIAL,
    *CHECKS.values(),
    ONE_MORE_CHECK,
    *(known for size in FLOODS_MIB for known in (FLOODS[size], FLOOD_TIMES[size])),
)


def growth_figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Yield every figure, each the median of runs in turns."""
    runs = 1 if quick else 3
    yield from trial_growth(folder / "trials", runs)
    yield from check_growth(folder / "checks", runs)
    yield from flood_growth(runs)


def trial_growth(folder: Path, runs: int) -> Iterator[Figure]:
    """Yield what sessions with more and more trials of one check take, one after the other."""
    project = small_project(folder / "project", checks=1)

    def session_s(run: int, count: int) -> float:
        return oracle_session_s(project, folder / f"run-{run}-{count}", trials=count)

    spent_s = medians(session_s, runs)
    for count, known in TRIALS.items():
        yield known.of(spent_s[count], f"{spent_s[count] / count:.2f} s a trial")
    yield one_more(ONE_MORE_TRIAL, spent_s)


def check_growth(folder: Path, runs: int) -> Iterator[Figure]:
    """Yield what sessions with one trial of more and more checks take, cores shared by checks."""
    projects = {count: small_project(folder / f"of-{count}", checks=count) for count in COUNTS}

    def session_s(run: int, count: int) -> float:
        return oracle_session_s(projects[count], folder / f"run-{run}-{count}", trials=1)

    spent_s = medians(session_s, runs)
    for count, known in CHECKS.items():
        yield known.of(spent_s[count], f"{spent_s[count] / count:.2f} s a check")
    yield one_more(ONE_MORE_CHECK, spent_s)


def small_project(project: Path, *, checks: int) -> Path:
    """Return a project with a task of so many checks, which the oracle can solve."""
    write_small_task(project / "evals" / "tasks" / "small", checks=checks, solved=True)
    (project / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return project


def oracle_session_s(project: Path, folder: Path, *, trials: int) -> float:
    """Return the wall seconds of a pytest that runs so many trials one after the other."""
    argv = [*PYTEST, "-p", "no:xdist", "-p", "no:hypothesispytest", "-m", "evalarc_trial", "evals"]
    argv += ["--evalarc-trials", str(trials), "--evalarc-results", str(folder / "results")]
    wall_s = timed([*argv, "--evalarc-root", str(folder / "root")], project)
    ran = len(documents(folder / "results"))
    require(ran == trials, f"{ran} of {trials} oracle trials ran")
    return wall_s


def medians(session_s: Callable[[int, int], float], runs: int) -> dict[int, float]:
    """Return the median seconds of sessions by their count, measured in turns."""
    rows = [{count: session_s(run, count) for count in COUNTS} for run in range(runs)]
    return {count: statistics.median(row[count] for row in rows) for count in COUNTS}


def one_more(known: Known, spent_s: Mapping[int, float]) -> Figure:
    """Return whether one more is as cheap among many as among few, where 1 is linear growth."""
    few, some, many = COUNTS
    early_s = (spent_s[some] - spent_s[few]) / (some - few)
    late_s = (spent_s[many] - spent_s[some]) / (many - some)
    return known.of(late_s / early_s, f"{late_s * 1000:.0f} ms and {early_s * 1000:.0f} ms")


def flood_growth(runs: int) -> Iterator[Figure]:
    """Yield what a candidate that prints more and more does to the harness, and for how long."""
    for size in FLOODS_MIB:
        seen = [flood(size * MIB) for _ in range(runs)]
        yield FLOODS[size].of(statistics.median(one["growth_mib"] for one in seen))
        yield FLOOD_TIMES[size].of(statistics.median(one["wall_time_s"] for one in seen))
