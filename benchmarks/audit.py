"""How long an audit of durable-kv takes, beside EvalArc 0.22.0 in the same environment.

A clean virtual environment has both programs in it. They audit the same pack with seeds 17, 41
and 97 in turns, and ratios of medians are told. Ours runs in bubblewrap and theirs without a
sandbox. Ours is then confined to one core and to two, in turns.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from figures import Figure, Known, MissingError, require
from processes import BARE_ENVIRONMENT, ROOT, clean_python, on_cores

THEIRS = "evalarc==0.22.0"
PEER = "EvalArc 0.22.0"
SEEDS = ("17", "41", "97")

FULL = Known("full audit in bubblewrap : EvalArc", "ratio", at_most=0.6)
FAST = Known("fast audit in bubblewrap : EvalArc", "ratio", at_most=0.2)
CPU = Known("own CPU : the candidates' CPU", "ratio", at_most=0.1)
MEMORY = Known("peak memory : EvalArc", "ratio", at_most=2)
CORES = Known("full audit, one core : two cores", "ratio", at_least=1.7)
FIGURES = (FULL, FAST, CPU, MEMORY, CORES)

RUNNER = """\
import json, resource, runpy, sys
target, module, *sys.argv[1:] = sys.argv[1:]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
except SystemExit as error:
    status = error.code
else:
    status = 0
own = resource.getrusage(resource.RUSAGE_SELF)
theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
facts = {
    "status": int(status or 0),
    "own_cpu_s": own.ru_utime + own.ru_stime,
    "candidates_cpu_s": theirs.ru_utime + theirs.ru_stime,
    # What getrusage tells begins with the size of the process that started this one.
    "peak_mib": next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
    / 1024,
}
open(target, "w").write(json.dumps(facts))
"""
"""Runs a module as `python -m` would, and writes what its process used."""

TASK = """\
kind = "capability"

[pack]
name = "durable-kv"
"""


class Usage(NamedTuple):
    """What one audit took: of its own process, and of the processes that it waited for."""

    wall_s: float
    own_cpu_s: float
    candidates_cpu_s: float
    peak_mib: float


class Bench:
    """A clean environment with both programs, and a project to audit in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = clean_python(folder / "venv", THEIRS, str(ROOT))
        self.project = folder / "project"
        task = self.project / "evals/tasks/durable-kv"
        task.mkdir(parents=True)
        (task / "task.toml").write_text(TASK, "utf-8")
        (folder / "runner.py").write_text(RUNNER, "utf-8")

    def ours(self, mode: str) -> Usage:
        """Audit with this package, every control in bubblewrap."""
        shutil.rmtree(self.project / "results", ignore_errors=True)
        usage = self._run(
            "pytest",
            (
                *("evals", "-k", "audit", "-q", "-p", "no:cacheprovider"),
                *(f"--evalarc-audit={mode}", "--evalarc-batch=measured"),
            ),
        )
        report = self.project / "results/durable-kv/audit/measured/audit.json"
        audit = json.loads(report.read_bytes())
        require(audit["passed"] and audit["killed"] == 8, f"our audit is {audit['killed']} of 8")
        require(audit["reference"]["isolation"]["sandbox"] == "bwrap", "ours had no sandbox")
        return usage

    def theirs(self) -> Usage:
        """Audit with EvalArc, which trusts every control."""
        output = self.folder / "theirs"
        shutil.rmtree(output, ignore_errors=True)
        usage = self._run(
            "evalarc",
            (
                *("audit", "--task", "durable-kv", "--backend", "local", "--trust-local"),
                *("--seeds", *SEEDS, "--output", str(output)),
            ),
        )
        audit = json.loads(next(output.rglob("audit.json")).read_bytes())
        require(audit["killed"] == 8, f"their audit is {audit['killed']} of 8")
        return usage

    def _run(self, module: str, arguments: Sequence[str]) -> Usage:
        target = self.folder / "usage.json"
        target.unlink(missing_ok=True)
        argv = [str(self.python), str(self.folder / "runner.py"), str(target), module, *arguments]
        started_s = time.monotonic()
        done = subprocess.run(
            argv,
            cwd=self.project,
            env=BARE_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        wall_s = time.monotonic() - started_s
        require(target.exists(), f"{module} broke: {done.stderr}")
        facts = json.loads(target.read_text("utf-8"))
        require(facts.pop("status") == 0, f"{module} failed: {done.stdout}{done.stderr}")
        return Usage(wall_s=wall_s, **facts)


def audit_figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Yield every figure, each the median of runs in turns."""
    rounds = 1 if quick else 3
    bench = Bench(folder)
    yield from peer_figures(bench, rounds)
    yield cores_figure(bench, rounds)


def peer_figures(bench: Bench, rounds: int) -> Iterator[Figure]:
    """Yield our audit against theirs."""
    theirs, full, fast = [], [], []
    for _ in range(rounds):
        theirs.append(bench.theirs())
        full.append(bench.ours("full"))
        fast.append(bench.ours("fast"))
    base_s, full_s, fast_s = (median(runs, "wall_s") for runs in (theirs, full, fast))
    beside = f"{PEER}, no sandbox: {base_s:.1f} s"
    yield FULL.of(full_s / base_s, f"{full_s:.1f} s", beside=beside)
    yield FAST.of(fast_s / base_s, f"{fast_s:.1f} s", beside=beside)
    # Processes below a sandbox are not the harness's own to count, and EvalArc's are: it puts the
    # same cases to nine controls, and we to nine, and a third of them to two more.
    own_s, candidates_s = median(full, "own_cpu_s"), median(theirs, "candidates_cpu_s")
    beside = f"{PEER}, candidates: {candidates_s:.1f} s"
    yield CPU.of(own_s / candidates_s, f"{own_s:.2f} s", beside=beside)
    ours_mib, theirs_mib = median(full, "peak_mib"), median(theirs, "peak_mib")
    beside = f"{PEER}: {theirs_mib:.0f} MiB"
    yield MEMORY.of(ours_mib / theirs_mib, f"{ours_mib:.0f} MiB", beside=beside)


def cores_figure(bench: Bench, rounds: int) -> Figure:
    """Return how much sooner an audit ends that has a second core."""
    single, double = [], []
    try:
        for _ in range(rounds):
            single.append(confined(bench, 1))
            double.append(confined(bench, 2))
    except MissingError as reason:
        return CORES.left_out(str(reason))
    single_s, double_s = median(single, "wall_s"), median(double, "wall_s")
    return CORES.of(single_s / double_s, f"{single_s:.1f} s and {double_s:.1f} s")


def confined(bench: Bench, cores: int) -> Usage:
    """Audit in full on so many cores, as many cases at once."""
    with on_cores(cores):
        return bench.ours("full")


def median(runs: Sequence[Usage], name: str) -> float:
    """Return the median of one field."""
    values: list[float] = [getattr(run, name) for run in runs]
    return statistics.median(values)
