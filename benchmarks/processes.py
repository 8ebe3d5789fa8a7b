"""Processes to be measured, and clean environments for them to run in."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from figures import BrokenError, MissingError, require

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""Without a setting that keeps compiled modules from being stored, which no user has."""
BARE_ENVIRONMENT = {
    name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ
}
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
LAST_CHARACTERS = 2_000
LAUNCHER = """\
import json, os, subprocess, sys, time
started_s = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
wall_s, cpu_s = time.monotonic() - started_s, usage.ru_utime + usage.ru_stime
print(json.dumps([process.returncode, wall_s, cpu_s, usage.ru_maxrss / 1024]))
"""
"""Starts a process from a small one: the system counts the size of whoever starts it as its own."""


class Cost(NamedTuple):
    """What a process and its children took, and the peak resident size of the largest."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def cost(argv: Sequence[str], folder: Path) -> Cost:
    """Return what a process took that says nothing and succeeds.

    Raises:
        BrokenError: It failed.
    """
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, *argv]
    done = subprocess.run(
        launcher, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    status, *spent = json.loads(done.stdout)
    require(not status, f"{' '.join(argv)} ended with {status}:\n{done.stderr}")
    return Cost(*spent)


def timed(argv: Sequence[str | Path], folder: Path) -> float:
    """Return the wall seconds of a process that succeeds.

    Raises:
        BrokenError: It failed; the message has the end of what it printed.
    """
    started_s = time.monotonic()
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - started_s
    said = (done.stdout + done.stderr)[-LAST_CHARACTERS:]
    require(not done.returncode, f"{argv[0]} ended with {done.returncode}:\n{said}")
    return wall_s


def answer(script: str, *arguments: str | Path) -> dict[str, Any]:
    """Return the JSON object that a script beside this one prints in a process of its own."""
    argv = [sys.executable, Path(__file__).with_name(script), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    require(not done.returncode, f"{script} ended with {done.returncode}:\n{done.stderr}")
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def clean_python(folder: Path, *wanted: str) -> Path:
    """Return the interpreter of a new virtual environment that has these distributions.

    Raises:
        MissingError: They cannot be installed here.
    """
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    argv = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]
    done = subprocess.run(argv, env=BARE_ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"{wanted[0]} cannot be installed from the package index")
    return python


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep this process and all that it starts on so many of its cores.

    Raises:
        MissingError: There are fewer.
    """
    there = os.sched_getaffinity(0)
    if len(there) < count:
        raise MissingError(f"the machine offers {len(there)} of {count} cores")
    os.sched_setaffinity(0, set(sorted(there)[:count]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, there)


def median_ms(seconds: Iterable[float]) -> float:
    """Return the median in milliseconds."""
    return statistics.median(seconds) * 1000


def one(paths: Iterable[Path]) -> Path:
    """Return the only path there is, a link to it counted as the same.

    Raises:
        BrokenError: There is none, or there are several.
    """
    found = {path.resolve() for path in paths}
    if len(found) != 1:
        raise BrokenError(f"{len(found)} files are there, and one was to be")
    return found.pop()
