"""Node ids on the command line: whether what they name is there."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from pytest_evalarc.errors import TaskProblems, UsageError, nearest
from pytest_evalarc.model.controls import REFERENCE, STARTER
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin.nodes import leaves, trial_name
from pytest_evalarc.plugin.session import EvalSession


def check_node_ids(evals: EvalSession) -> None:
    """Refuse a node id on the command line that selects nothing.

    Pytest would tell it too, but not the nearest name, and xdist calls it an internal error.

    Raises:
        UsageError: Names what is not there, and what is.
    """
    for argument, path, names in evals.node_ids_in_arguments():
        with contextlib.suppress(TaskProblems):
            task = evals.task(path.parent)
            for depth, name in enumerate(names):
                known = _names_below(evals, task, names[:depth])
                if name not in known:
                    raise UsageError(argument, f"there is no {name!r}", nearest(name, known))


def _names_below(  # noqa: PLR0911 - one line a place in the tree.
    evals: EvalSession, task: Task, names: Sequence[str]
) -> tuple[str, ...]:
    """Return what a node of a task is called below, given the names down to it."""
    if evals.work is not None:
        from pytest_evalarc.plugin.rework import names_below

        return names_below(evals.work, task, list(names))
    match names:
        case []:
            labels = (label.label for label in evals.clients_for(task.root / "task.toml"))
            return ("validate", *(["audit"] if task.has_solution else []), *labels)
        case ["audit"]:
            return (REFERENCE, STARTER, *(mutant.name for mutant in task.mutants))
        case ["audit", "reference"]:
            return tuple(check.id for check in task.checks)
        case [label]:
            return evals.plan_of(task, label).configurations if label != "validate" else ()
        case [label, configuration] if label != "audit":
            trials = evals.plan_of(task, label).trials
            chosen = (entry for entry in trials if entry.configuration == configuration)
            return tuple(trial_name(entry) for entry in chosen)
        case [label, configuration, _]:
            expected = evals.expectations(evals.plan_of(task, label), configuration)
            return tuple(leaf.name for leaf in leaves(task, expected))
    return ()
