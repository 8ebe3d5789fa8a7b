"""`pytest-evalarc transcript`: what was said and done in a trial."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pytest_evalarc.cli.project import DEFAULT_TASKS, evaluated_task
from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.reporting.atif import trajectory_document
from pytest_evalarc.reporting.documents import write_text
from pytest_evalarc.reporting.transcripts import (
    KeptTrial,
    Style,
    read_kept_trial,
    session_lines,
)

PRINTED = Path("-")
"""What stands for standard output in place of a file."""
_CODES = {"title": "1", "quiet": "2", "bad": "31"}


def run_transcript(folder: Path, *, tasks: Path | None, atif: Path | None, full: bool) -> Status:
    """Print the session of a trial, or write it as a trajectory.

    Args:
        folder: The trial's result folder.
        tasks: Where the tasks are, of which only the prompt is taken; None is `evals/tasks` below
            the current folder.
        atif: Where the trajectory goes, `-` for standard output; None prints the session.
        full: Whether results of tools are shown whole.

    Raises:
        DocumentError: The folder is none of a trial, has no session, or a file cannot be written.
        UsageError: Nobody offers the client of the trial.
    """
    registry = installed()
    kept = read_kept_trial(folder, registry.clients.get)
    prompt = _prompt(kept.plan, registry, tasks or Path(DEFAULT_TASKS))
    if atif is not None:
        _put(_trajectory(kept, folder, prompt), atif)
    else:
        _print(kept, prompt, full=full)
    return Status.DONE


def _print(kept: KeptTrial, prompt: str | None, *, full: bool) -> None:
    width = shutil.get_terminal_size().columns
    try:
        for line in session_lines(kept, prompt=prompt, width=width, full=full, style=_style()):
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough; what is left would be refused again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _put(document: bytes, file: Path) -> None:
    if file != PRINTED:
        write_text(file, document.decode())
        return
    # As bytes: a document is UTF-8 whatever the terminal is.
    sys.stdout.buffer.write(document)
    sys.stdout.flush()


def _trajectory(kept: KeptTrial, folder: Path, prompt: str | None) -> bytes:
    if kept.result is None:
        raise DocumentError(str(folder), f"cannot be written as a trajectory: {kept.warnings[0]}")
    return trajectory_document(kept.transcript, kept.result, prompt)


def _prompt(plan: PlanDoc, registry: Registry, tasks: Path) -> str | None:
    """Return what the agent was asked; None where the task is gone, or is another by now."""
    task = evaluated_task(plan.task, registry, tasks)
    return task.brief.prompt if task is not None else None


def _style() -> Style:
    """Return colours for a terminal that shows some, and none for a file or a pipe."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return lambda text, _: text
    return lambda text, word: f"\x1b[{_CODES[word]}m{text}\x1b[0m" if word in _CODES else text
