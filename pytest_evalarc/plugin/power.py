"""What the trials asked for can show, told before they are paid for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.counting.power import power_sentence
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.plugin.expectations import selected_folders
from pytest_evalarc.runs.plan import configurations

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession, TrialHandle


def power_of_session(evals: EvalSession) -> list[str]:
    """Return what the trials of a session can show, before any of them is collected.

    Empty where no task that the arguments and options select has two configurations to compare,
    and where nothing is run: a candidate, and a batch that is graded again.
    """
    if evals.work is not None or not any(_is_compared(evals, f) for f in selected_folders(evals)):
        return []
    return [power_sentence(evals.request.trials)]


def power_of_trials(handles: Iterable[TrialHandle]) -> list[str]:
    """Return what collected trials can show, a sentence for each number of trials."""
    plans = (handle.plan for handle in handles)
    numbers = {plan.request.trials for plan in plans if len(plan.configurations) > 1}
    return [power_sentence(trials) for trials in sorted(numbers)]


def _is_compared(evals: EvalSession, folder: Path) -> bool:
    """Whether a task's trials are asked for in two configurations; not of one that is wrong."""
    if not any(_are_related(folder, argument) for argument in _arguments(evals)):
        return False
    try:
        task = evals.task(folder)
        has_clients = bool(evals.clients_for(folder / "task.toml"))
    except (EvalArcError, OSError):
        return False
    return has_clients and len(configurations(task, evals.request)) > 1


def _arguments(evals: EvalSession) -> Iterator[Path]:
    return (evals.options.argument_path(argument) for argument in evals.config.args)


def _are_related(folder: Path, argument: Path) -> bool:
    """Whether an argument of pytest leads to a task's folder, or into it."""
    return folder == argument or argument in folder.parents or folder in argument.parents
