"""What the harness adds to sessions of real agents, whose model is a server that plays scripts.

It needs the package with its tests, the command lines of both agents, srt and a bubblewrap that
works, and neither an account nor a network.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import helpers  # noqa: F401 - what lets the next ones be found.
import psutil
from figures import Figure, Known, require
from processes import MIB, ROOT, on_cores
from small_task import write_small_task
from trials import STAGES, TASK, documents, finished_trials, timed_items

from tests.model_server import ModelServer, Read, Run, Script, Write
from tests.model_server.tasks import solve
from tests.system.bare import BareClient
from tests.system.evaluation import TasksProject

CLIENTS = ("claude", "codex")
SMALL = "small"
CORES = 2
PARALLEL = 8
LAST_LINES = 30
WARM_UP = 5
"""Trials after which all is imported, and a harness that keeps nothing stays as large as it is."""


class Wanted(NamedTuple):
    """The figures of one client."""

    own: Known
    first: Known
    around: Known
    bare: Known
    beyond: Known
    stages: dict[str, Known]
    unfinished: Known
    growth: Known

    @property
    def all(self) -> Iterator[Known]:
        """Yield them in the order of the table."""
        yield from (self.own, self.first, self.around, self.bare, self.beyond)
        yield from (*self.stages.values(), self.unfinished, self.growth)


def wanted(client: str) -> Wanted:
    """Return the figures of a client."""
    return Wanted(
        own=Known(f"{client}, own wall time, median", "s", at_most=1.5),
        first=Known(f"  {client}, the first trial of the batch", "s"),
        around=Known(f"  {client}, of it around the session, by srt", "s"),
        bare=Known(f"  {client}, a session : a bare one", "ratio"),
        beyond=Known(f"  {client}, of it beyond the session", "s"),
        stages={stage: Known(f"    {client}, in {stage}", "s") for stage in STAGES},
        unfinished=Known(f"{client}, unfinished trials", "trials", at_most=0),
        growth=Known(f"{client}, growth of the harness", "MiB", at_most=8),
    )


WANTED = {client: wanted(client) for client in CLIENTS}
FIGURES = tuple(known for each in WANTED.values() for known in each.all)


class Sizes(NamedTuple):
    """How much is measured of each figure."""

    trials: int
    bare_runs: int
    flat_trials: int


FULL = Sizes(trials=5, bare_runs=7, flat_trials=50)
QUICK = Sizes(trials=2, bare_runs=3, flat_trials=12)


class Ran(NamedTuple):
    """A pytest that has ended."""

    wall_s: float
    peaks_mib: list[tuple[int, float]]
    """Finished trials, and the resident size of the pytest process, at several moments."""


def run(project: TasksProject, client: str, task: str, *arguments: str) -> Ran:
    """Run the trials of a task, and watch the process that holds the harness."""
    argv = project.argv("-q", "--evalarc-task", task, "--evalarc-client", client)
    started_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*argv, "-m", "evalarc_trial", *arguments],
            cwd=project.root,
            env=project.env,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        with sampled(process.pid, project.results) as samples:
            status = process.wait()
        output.seek(0)
        last = "".join(output.readlines()[-LAST_LINES:])
        require(not status, f"the trials of {client} did not run:\n{last}")
    return Ran(time.monotonic() - started_s, samples.taken)


class sampled:  # noqa: N801 - it reads as a clause of `with`.
    """Takes the resident size of a process again and again while a block runs."""

    def __init__(self, pid: int, results: Path) -> None:
        self.taken: list[tuple[int, float]] = []
        self._process = psutil.Process(pid)
        self._results = results
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> sampled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            try:
                size = self._process.memory_info().rss
            except psutil.Error:
                return
            self.taken.append((len(documents(self._results)), size / MIB))


# What a trial costs beyond the session and the graded commands.


def own_figures(folder: Path, server: ModelServer, client: str, sizes: Sizes) -> Iterator[Figure]:
    """Yield the wall time of trials that is neither the bare session's nor the checks'."""
    server.add("solve", solve(ROOT / "evals" / "tasks" / TASK))
    project = TasksProject(folder, server)
    report = folder / "report.xml"
    label = project.add_client(client, "solve")
    options = (*timed_items(report), "-p", "no:xdist")
    run(project, label, TASK, "--evalarc-trials", str(sizes.trials), *options)
    trials = finished_trials(project.results, report)
    bare_s = statistics.median(bare_times_s(folder, server, client, sizes.bare_runs))
    # The first one stages the tools and proves the sandbox for all.
    first, *later = trials
    ours = [trial.item_s - trial.commands_s - bare_s for trial in later]
    inside = statistics.median(trial.session_s for trial in later)
    known, beside = WANTED[client], f"a bare session: {bare_s:.2f} s"
    yield known.own.of(statistics.median(ours), f"{len(later)} trials", beside=beside)
    yield known.first.of(first.item_s - first.commands_s - bare_s)
    yield known.around.of(inside - bare_s)
    yield known.bare.of(inside / bare_s, beside=beside)
    yield known.beyond.of(statistics.median(trial.ours_s for trial in later))
    for stage, in_stage in known.stages.items():
        yield in_stage.of(statistics.median(trial.split_s[stage] for trial in later))


def bare_times_s(folder: Path, server: ModelServer, client: str, runs: int) -> Iterator[float]:
    """Yield the wall seconds of the same session without a sandbox and a harness."""
    for number in range(runs):
        place = folder / f"bare-{number}"
        place.mkdir()
        bare = BareClient(client, place, server)
        starter = ROOT / "evals" / "tasks" / TASK / "starter"
        shutil.copytree(starter, bare.project, dirs_exist_ok=True)
        session = bare.run("solve")
        require(not session.exit.status, f"a bare session of {client} failed: {session.stderr}")
        yield session.exit.wall_time_s


# Many trials: at once, and one after the other.


def small_project(folder: Path, server: ModelServer, client: str) -> TasksProject:
    """Return a project with a task that is solved and graded in a moment."""
    folder.mkdir()
    server.add(SMALL, Script.of(Read("answer.py"), Write("answer.py", "value = 2\n"), Run("true")))
    project = TasksProject(folder, server)
    write_small_task(project.root / "evals" / "tasks" / SMALL)
    project.add_client(client, SMALL)
    return project


def parallel_figures(folder: Path, server: ModelServer, client: str) -> Iterator[Figure]:
    """Yield how many of eight trials that run at once on two cores do not finish."""
    project = small_project(folder, server, client)
    options = ("--evalarc-trials", str(PARALLEL), "-n", str(PARALLEL))
    with on_cores(CORES):
        ran = run(project, client, SMALL, *options)
    note = f"{PARALLEL} at once on {CORES} cores, {ran.wall_s:.0f} s"
    unfinished = PARALLEL - succeeded(project.results)
    yield WANTED[client].unfinished.of(unfinished, note)


def memory_figures(folder: Path, server: ModelServer, client: str, trials: int) -> Iterator[Figure]:
    """Yield how much the harness grows over many trials."""
    project = small_project(folder, server, client)
    ran = run(project, client, SMALL, "--evalarc-trials", str(trials), "-p", "no:xdist")
    passed = succeeded(project.results)
    require(passed == trials, f"{passed} of {trials} trials of {client} succeeded")
    early = max(size for count, size in ran.peaks_mib if count <= WARM_UP)
    late = max(size for count, size in ran.peaks_mib if count > trials - WARM_UP)
    note = f"{trials} trials in {ran.wall_s:.0f} s; {late:.0f} MiB at the end"
    yield WANTED[client].growth.of(late - early, note)


def succeeded(results: Path) -> int:
    """Return how many trials there are that a session ended well in, and that passed."""
    found = [json.loads(path.read_bytes()) for path in documents(results)]
    return sum(result["outcome"] == "succeeded" for result in found)


# All of them.


def missing() -> str | None:
    """Return what the machine lacks, in words that name no place on it, or None."""
    from pytest_evalarc.isolation import srt, toolset

    lacking = [name for name in (*CLIENTS, "srt") if toolset.missing(name)]
    if lacking:
        return f"not installed, or too old: {', '.join(lacking)}"
    return "srt cannot be started here" if srt.missing() else None


def agent_figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Yield every figure, each as soon as it is known."""
    sizes = QUICK if quick else FULL
    for client in CLIENTS:
        with ModelServer() as server:
            own = folder / client
            own.mkdir()
            yield from own_figures(own, server, client, sizes)
            yield from parallel_figures(folder / f"{client}-parallel", server, client)
            flat = folder / f"{client}-flat"
            yield from memory_figures(flat, server, client, sizes.flat_trials)
