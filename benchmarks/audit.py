"""How long an audit of durable-kv takes, beside EvalArc 0.22.0 in the same environment.

`python benchmarks/audit.py` makes a clean virtual environment with both programs in it, lets them
audit the same pack with seeds 17, 41 and 97 in turns, and tells ratios of medians. Ours runs in
bubblewrap and theirs without a sandbox. It exits with 0 whatever the figures are: a loaded machine
is no defect. `--rounds 1` is the quickest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from foundation import Figure, show

ROOT = Path(__file__).resolve().parent.parent
THEIRS = "evalarc==0.22.0"
SEEDS = ("17", "41", "97")
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}

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
    "peak_mib": own.ru_maxrss / 1024,
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
        self.python = folder / "venv/bin/python"
        self.project = folder / "project"
        venv.create(folder / "venv", with_pip=True)
        pip = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, THEIRS, str(ROOT)], check=True, env=ENVIRONMENT)
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
        argv = [self.python, self.folder / "runner.py", target, module, *arguments]
        started_s = time.monotonic()
        done = subprocess.run(
            argv, cwd=self.project, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        wall_s = time.monotonic() - started_s
        require(target.exists(), f"{module} broke: {done.stderr}")
        facts = json.loads(target.read_text("utf-8"))
        require(facts.pop("status") == 0, f"{module} failed: {done.stdout}{done.stderr}")
        return Usage(wall_s=wall_s, **facts)


def require(condition: bool, problem: str) -> None:
    """Stop when what is measured is not what is meant."""
    if not condition:
        raise SystemExit(problem)


def audit_figures(folder: Path, rounds: int) -> Iterator[Figure]:
    """Yield our audit against theirs, each the median of runs in turns."""
    bench = Bench(folder)
    theirs, full, fast = [], [], []
    for _ in range(rounds):
        theirs.append(bench.theirs())
        full.append(bench.ours("full"))
        fast.append(bench.ours("fast"))
    base_s, full_s, fast_s = (median(runs, "wall_s") for runs in (theirs, full, fast))
    yield Figure("EvalArc 0.22.0, without a sandbox", base_s, "s")
    yield Figure("full audit in bubblewrap : EvalArc", full_s / base_s, "", 0.6, f"{full_s:.1f} s")
    yield Figure("fast audit in bubblewrap : EvalArc", fast_s / base_s, "", 0.2, f"{fast_s:.1f} s")
    # Processes below a sandbox are not the harness's own to count, and EvalArc's are: it puts the
    # same cases to nine controls, and we to nine, and a third of them to two more.
    own_s, candidates_s = median(full, "own_cpu_s"), median(theirs, "candidates_cpu_s")
    note = f"{own_s:.2f} s of {candidates_s:.1f} s"
    yield Figure("own CPU : the candidates' CPU", own_s / candidates_s, "", 0.1, note)
    ours_mib, theirs_mib = median(full, "peak_mib"), median(theirs, "peak_mib")
    note = f"{ours_mib:.0f} MiB and {theirs_mib:.0f} MiB"
    yield Figure("peak memory : EvalArc", ours_mib / theirs_mib, "", 2, note)


def median(runs: Sequence[Usage], name: str) -> float:
    """Return the median of one field."""
    return statistics.median(getattr(run, name) for run in runs)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="evalarc-benchmark-") as name:
        show(audit_figures(Path(name).resolve(), rounds), lambda line: print(line, flush=True))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
