"""What a trial costs beyond the client's session and the commands that are graded."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import sched_getaffinity
from pathlib import Path
from typing import Any, NamedTuple

from figures import Figure, Known, require
from processes import PYTEST, ROOT, median_ms, timed

TASK = "settings-durability"
STAGES = ("prepare", "session", "keep", "grade", "remove", "other")
"""Of a trial; `other` is what stands in no stage, as writing the result."""

OWN = Known("oracle trial, own wall time, median", "ms", at_most=150)
FIRST = Known("oracle trial, own wall time, first", "ms")
LATER = Known("oracle trial, own wall time, max after it", "ms")
SHARE = Known("oracle trial, own wall time : commands", "ratio")
IN_STAGE = {stage: Known(f"  of it in {stage}, median", "ms") for stage in STAGES}
CHECK = Known("hidden check, wall time, median", "ms")
CHECK_BARE = Known("hidden check : python -I -S -c pass", "ratio")
CHECK_PYTEST = Known("hidden check : the same with import pytest", "ratio")
FIGURES = (OWN, FIRST, LATER, SHARE, *IN_STAGE.values(), CHECK, CHECK_BARE, CHECK_PYTEST)


class Trial(NamedTuple):
    """One finished trial in seconds: the whole item, what is not ours, and our stages."""

    item_s: float
    session_s: float
    commands_s: float
    stages_s: dict[str, float]
    check_times_s: tuple[float, ...]

    @property
    def ours_s(self) -> float:
        """Wall time beyond the client's session and the graded commands."""
        return self.item_s - self.session_s - self.commands_s

    @property
    def split_s(self) -> dict[str, float]:
        """Our own seconds by stage."""
        ours = dict(self.stages_s)
        ours["session"] -= self.session_s
        ours["grade"] -= self.commands_s
        ours["other"] = self.item_s - sum(self.stages_s.values())
        require(set(ours) == set(STAGES), f"a trial has the stages {', '.join(sorted(ours))}")
        return ours


def oracle_trials(folder: Path, rounds: int) -> list[Trial]:
    """Run the rounds of a task with pytest itself, and return the trials in the order they ran."""
    folder.mkdir()
    report, results = folder / "report.xml", folder / "results"
    argv = [*PYTEST, "-p", "no:xdist", "-m", "evalarc_trial", "--evalarc-task", TASK]
    argv += ["--evalarc-trials", str(rounds)]
    argv += ["--evalarc-results", str(results), "--evalarc-root", str(folder / "root")]
    timed([*argv, *timed_items(report)], ROOT)
    return finished_trials(results, report)


def timed_items(report: Path) -> tuple[str, ...]:
    """Return the options by which pytest writes how long each item took."""
    return ("--junitxml", str(report), "-o", "junit_duration_report=call")


def finished_trials(results: Path, report: Path) -> list[Trial]:
    """Return the trials in the order they ran."""
    times_s = item_times_s(report)
    found = [json.loads(path.read_bytes()) for path in documents(results)]
    return [_trial(document, times_s) for document in sorted(found, key=_started)]


def documents(results: Path) -> list[Path]:
    """Return every result.json there is, each once."""
    paths = results.glob("*/*/*/trial-*/result.json")
    return [path for path in paths if path.parent.parent.name != "latest"]


def item_times_s(report: Path) -> dict[tuple[str, int], float]:
    """Return the seconds of each `run` item by configuration and trial."""
    times_s = {}
    for case in ET.parse(report).iter("testcase"):
        if case.get("name") == "run":
            *_, configuration, trial = case.get("classname", "").split(".")
            number = int(trial.removeprefix("trial-"))
            times_s[configuration, number] = float(case.get("time", "nan"))
    return times_s


def _started(document: dict[str, Any]) -> str:
    started: str = document["started_at"]
    return started


def _trial(document: dict[str, Any], times_s: dict[tuple[str, int], float]) -> Trial:
    require(document["outcome"] == "succeeded", f"a trial did not succeed: {document['cause']}")
    grading = document["gradings"][-1]
    return Trial(
        item_s=times_s[document["mode"], document["trial"]],
        session_s=document["elapsed_secs"],
        commands_s=grading["command_time_s"],
        stages_s=document["stages_secs"],
        check_times_s=tuple(row["wall_time_s"] for row in grading["rows"]),
    )


def trial_figures(trials: Sequence[Trial], *, beside: str) -> Iterator[Figure]:
    """Yield what a trial costs beyond its session and its graded commands."""
    ours = [trial.ours_s * 1000 for trial in trials]
    note = f"{len(trials)} trials; commands {median_ms(t.commands_s for t in trials):.0f} ms"
    yield OWN.of(statistics.median(ours), note, beside=beside)
    yield FIRST.of(ours[0], "the first trial stages the tools and proves the sandbox for all")
    yield LATER.of(max(ours[1:]))
    yield SHARE.of(statistics.median(trial.ours_s / trial.commands_s for trial in trials))
    for stage, known in IN_STAGE.items():
        yield known.of(median_ms(trial.split_s[stage] for trial in trials))


def check_figures(trials: Sequence[Trial], runs: int) -> Iterator[Figure]:
    """Yield what a hidden check costs, against an interpreter that does nothing."""
    check = median_ms(spent for trial in trials for spent in trial.check_times_s)
    bare = bare_ms("pass", runs)
    pytest = bare_ms(f"import sys; sys.path.append({site_packages()!r}); import pytest", runs)
    yield CHECK.of(check)
    yield CHECK_BARE.of(check / bare, beside=f"the interpreter: {bare:.0f} ms")
    yield CHECK_PYTEST.of(check / pytest, beside=f"the interpreter: {pytest:.0f} ms")


def site_packages() -> str:
    """Return the folder that pytest is installed in."""
    import pytest

    return str(Path(pytest.__file__).parent.parent)


def bare_ms(source: str, runs: int) -> float:
    """Return the median wall milliseconds of an interpreter, as many at once as checks run."""

    def run_one(_: int) -> float:
        started_s = time.monotonic()
        subprocess.run([sys.executable, "-I", "-S", "-c", source], check=True)
        return time.monotonic() - started_s

    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        return median_ms(pool.map(run_one, range(runs)))
