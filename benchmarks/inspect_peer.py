"""What one sample costs Inspect AI in its local sandbox, which isolates nothing."""

from __future__ import annotations

import statistics
from pathlib import Path

from figures import MissingError
from processes import clean_python, timed

DISTRIBUTION = "inspect-ai"
FEW = 10
SCRIPT = """\
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver


@solver
def nothing():
    async def solve(state, generate):
        return state

    return solve


@scorer(metrics=[accuracy()])
def correct():
    async def score(state, target):
        return Score(value="C")

    return score


epochs, logs = int(sys.argv[1]), sys.argv[2]
(log,) = eval(
    Task(dataset=[Sample(input="Do it.")], solver=nothing(), scorer=correct(), sandbox="local"),
    model="mockllm/model",
    epochs=epochs,
    max_samples=1,
    display="none",
    log_samples=False,
    log_realtime=False,
    log_dir=logs,
)
if log.status != "success" or log.results.completed_samples != epochs:
    sys.exit(f"Inspect AI ended with {log.status}")
"""
"""Evaluates a task whose solver and scorer do nothing, one sample at a time and with few logs."""


def inspect_trial(folder: Path, *, samples: int, runs: int) -> str:
    """Return as text what a sample takes beyond start-up, or why that cannot be told."""
    try:
        python = clean_python(folder / "venv", DISTRIBUTION)
    except MissingError as reason:
        return f"Inspect AI left out: {reason}"
    (folder / "sample.py").write_text(SCRIPT, "utf-8")
    session_s(python, folder, 1)  # It compiled what the others read.
    spent_s = statistics.median(sample_s(python, folder, samples) for _ in range(runs))
    return told(version(folder), spent_s)


def told(installed: str, spent_s: float) -> str:
    """Return the seconds of a sample as text, where noise can be larger than what is measured."""
    spent = f"{spent_s * 1000:.0f} ms" if spent_s > 0 else "below the noise of this run"
    return f"Inspect AI {installed}, no isolation: {spent}"


def sample_s(python: Path, folder: Path, samples: int) -> float:
    """Return the wall seconds of a sample: the difference of two runs, so without start-up."""
    few_s = session_s(python, folder, FEW)
    return (session_s(python, folder, FEW + samples) - few_s) / samples


def session_s(python: Path, folder: Path, epochs: int) -> float:
    """Return the wall seconds of a whole run with so many samples."""
    return timed([python, folder / "sample.py", str(epochs), folder / "logs"], folder)


def version(folder: Path) -> str:
    """Return the version that was installed, which no pin holds back."""
    found = next(folder.glob("venv/lib/python*/site-packages/inspect_ai-*.dist-info"))
    return found.name.removeprefix("inspect_ai-").removesuffix(".dist-info")
