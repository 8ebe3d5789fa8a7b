"""What the harness adds to sessions of real agents, whose model is a server that plays scripts.

`python benchmarks/agents.py` needs the package with its tests, the command lines of both agents,
srt and a bubblewrap that works, and neither an account nor a network. It exits with 0 whatever the
figures are: a loaded machine is no defect. `--quick` measures less of each, `--client` one agent.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import psutil
from foundation import Figure, OracleTrial, item_times_s, show, write_small_task

ROOT = Path(__file__).resolve().parent.parent
# The helpers of the tests are found as they are in a test.
_helpers = ModuleType("tests")
_helpers.__path__ = [str(ROOT / "tests")]
sys.modules.setdefault("tests", _helpers)

from tests.model_server import ModelServer, Read, Run, Script, Write  # noqa: E402
from tests.model_server.tasks import solve  # noqa: E402
from tests.system.bare import BareClient  # noqa: E402
from tests.system.evaluation import TasksProject  # noqa: E402

TASK = "settings-durability"
SMALL = "small"
MIB = 1 << 20
CORES = 2
PARALLEL = 8
LAST_LINES = 30
WARM_UP = 5
"""Trials after which all is imported, and a harness that keeps nothing stays as large as it is."""


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
        if status:
            output.seek(0)
            last = "".join(output.readlines()[-LAST_LINES:])
            raise SystemExit(f"the trials of {client} did not run:\n{last}")
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


def documents(results: Path) -> list[Path]:
    """Return every result.json there is, each once."""
    paths = results.glob("*/*/*/trial-*/result.json")
    return [path for path in paths if path.parent.parent.name != "latest"]


# What a trial costs beyond the session and the graded commands.


def own_figures(folder: Path, server: ModelServer, client: str, sizes: Sizes) -> Iterator[Figure]:
    """Yield the wall time of trials that is neither the bare session's nor the checks'."""
    server.add("solve", solve(ROOT / "evals" / "tasks" / TASK))
    project = TasksProject(folder, server)
    report = folder / "report.xml"
    label = project.add_client(client, "solve")
    options = ("--junitxml", str(report), "-o", "junit_duration_report=call", "-p", "no:xdist")
    run(project, label, TASK, "--evalarc-trials", str(sizes.trials), *options)
    trials = finished_trials(project.results, report)
    bare_s = statistics.median(bare_times_s(folder, server, client, sizes.bare_runs))
    # The first one stages the tools and proves the sandbox for all.
    first, *later = trials
    ours = [trial.item_s - trial.commands_s - bare_s for trial in later]
    note = f"{len(later)} trials; a bare session {bare_s:.2f} s"
    yield Figure(f"{client}, own wall time, median", statistics.median(ours), "s", 1.5, note)
    yield Figure("  the first trial of the batch", first.item_s - first.commands_s - bare_s, "s")
    sessions = [trial.session_s for trial in later]
    inside = statistics.median(sessions)
    yield Figure("  of it around the session, by srt", inside - bare_s, "s")
    yield Figure("  a session : a bare one", inside / bare_s, "ratio")
    beyond = statistics.median(trial.ours_s for trial in later)
    yield Figure("  of it beyond the session", beyond, "s")
    for stage in later[0].split_s:
        spent = statistics.median(trial.split_s[stage] for trial in later)
        yield Figure(f"    in {stage}", spent, "s")


def finished_trials(results: Path, report: Path) -> list[OracleTrial]:
    """Return the trials in the order they ran."""
    times_s = item_times_s(report)
    found = [json.loads(path.read_bytes()) for path in documents(results)]
    return [_trial(document, times_s) for document in sorted(found, key=_started)]


def _started(document: dict[str, Any]) -> str:
    return document["started_at"]


def _trial(document: dict[str, Any], times_s: dict[tuple[str, int], float]) -> OracleTrial:
    if document["outcome"] != "succeeded":
        raise SystemExit(f"a trial did not succeed: {document['cause']}")
    return OracleTrial(
        item_s=times_s[document["mode"], document["trial"]],
        session_s=document["elapsed_secs"],
        commands_s=document["gradings"][-1]["command_time_s"],
        stages_s=document["stages_secs"],
        check_times_s=(),
    )


def bare_times_s(folder: Path, server: ModelServer, client: str, runs: int) -> Iterator[float]:
    """Yield the wall seconds of the same session without a sandbox and a harness."""
    for number in range(runs):
        place = folder / f"bare-{number}"
        place.mkdir()
        bare = BareClient(client, place, server)
        starter = ROOT / "evals" / "tasks" / TASK / "starter"
        shutil.copytree(starter, bare.project, dirs_exist_ok=True)
        session = bare.run("solve")
        if session.exit.status:
            raise SystemExit(f"a bare session of {client} failed: {session.stderr}")
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
    there = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(there)[:CORES]))
    try:
        options = ("--evalarc-trials", str(PARALLEL), "-n", str(PARALLEL))
        ran = run(project, client, SMALL, *options)
    finally:
        os.sched_setaffinity(0, there)
    note = f"{PARALLEL} at once on {CORES} cores, {ran.wall_s:.0f} s"
    unfinished = PARALLEL - succeeded(project.results)
    yield Figure(f"{client}, unfinished trials", unfinished, "trials", 0, note)


def memory_figures(folder: Path, server: ModelServer, client: str, trials: int) -> Iterator[Figure]:
    """Yield how much the harness grows over many trials."""
    project = small_project(folder, server, client)
    ran = run(project, client, SMALL, "--evalarc-trials", str(trials), "-p", "no:xdist")
    if succeeded(project.results) != trials:
        raise SystemExit(f"not every one of {trials} trials of {client} succeeded")
    early = max(size for count, size in ran.peaks_mib if count <= WARM_UP)
    late = max(size for count, size in ran.peaks_mib if count > trials - WARM_UP)
    note = f"{trials} trials in {ran.wall_s:.0f} s; {late:.0f} MiB at the end"
    yield Figure(f"{client}, growth of the harness", late - early, "MiB", 8, note)


def succeeded(results: Path) -> int:
    """Return how many trials there are that a session ended well in, and that passed."""
    found = [json.loads(path.read_bytes()) for path in documents(results)]
    return sum(result["outcome"] == "succeeded" for result in found)


# The table.


def measured(clients: Sequence[str], sizes: Sizes) -> Iterator[Figure]:
    """Yield every figure, each as soon as it is known."""
    with tempfile.TemporaryDirectory(prefix="evalarc-benchmark-") as name:
        folder = Path(name).resolve()
        for client in clients:
            with ModelServer() as server:
                own = folder / client
                own.mkdir()
                yield from own_figures(own, server, client, sizes)
                yield from parallel_figures(folder / f"{client}-parallel", server, client)
                flat = folder / f"{client}-flat"
                yield from memory_figures(flat, server, client, sizes.flat_trials)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure less of each figure")
    parser.add_argument("--client", choices=("claude", "codex"), help="default: both")
    given = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}", end=", ")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    clients = (given.client,) if given.client else ("claude", "codex")
    sizes = QUICK if given.quick else FULL
    show(measured(clients, sizes), lambda line: print(line, flush=True))
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
