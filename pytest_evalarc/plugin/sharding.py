"""One shard of a session: which items are run here, and what is said of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evalarc.counting.shards import shard_of_task
from pytest_evalarc.errors import EvalArcError, UsageError

if TYPE_CHECKING:
    from pytest_evalarc.model.planned import Shard
    from pytest_evalarc.model.task import Task
    from pytest_evalarc.plugin.session import EvalSession, TrialHandle
    from pytest_evalarc.runs.plan import Plan

OPTION = "--evalarc-shard"


@dataclass(frozen=True, kw_only=True)
class Share:
    """What was selected on a machine that runs one shard, and what of it is run there."""

    own: Sequence[pytest.Item]
    others: Sequence[pytest.Item]
    """Items of other shards."""
    plans: Sequence[tuple[Task, Plan]]
    """Every plan that a selected item is of, whichever shard the item belongs to."""
    audits: Sequence[Task]
    """Tasks that are audited here."""


def check_shard(evals: EvalSession) -> None:
    """Refuse a shard that nothing could be merged with, and what is not split.

    Raises:
        UsageError: One sentence.
    """
    shard = evals.request.shard
    if shard is None:
        return
    for name in ("submission", "regrade"):
        if evals.options.was_given(name):
            problem = f"cannot be combined with --evalarc-{name}, which is not split"
            raise UsageError(f"{OPTION} {shard}", problem, "leave one of them out")
    if evals.options.text("batch") is None:
        problem = "needs the name of the batch that all shards are of"
        raise UsageError(f"{OPTION} {shard}", problem, "give each the same --evalarc-batch")


def hold_shard(evals: EvalSession) -> None:
    """Say which shard the folder of results holds, and refuse to mix it with anything else.

    Raises:
        UsageError: The folder holds another shard of the batch, or this session asks for all of a
            batch of which the folder holds a shard.
        DocumentError: What says so cannot be read or written.
    """
    from pytest_evalarc.runs.folders import shard_path

    folders, shard = evals.folders, evals.request.shard
    if shard is not None:
        from pytest_evalarc.runs.shards import open_shard

        open_shard(folders, shard)
    elif evals.work is None and shard_path(folders.results, folders.batch).exists():
        from pytest_evalarc.runs.shards import refuse_shard

        refuse_shard(folders)


def share_of(items: Sequence[pytest.Item], evals: EvalSession, shard: Shard) -> Share:
    """Return what of the selected items belongs to a shard.

    Items of a trial belong to the shard of its round, all else of a task to the shard that audits
    it. What is neither, as an ordinary test of the project, is run everywhere.
    """
    own: list[pytest.Item] = []
    others: list[pytest.Item] = []
    plans: dict[int, tuple[Task, Plan]] = {}
    audits: dict[Path, Task] = {}
    for item in items:
        handle, folder = _trial_of(item), _task_of(item)
        if handle is not None:
            plans.setdefault(id(handle.plan), (handle.task, handle.plan))
            is_own = handle.entry in handle.plan.own
        elif folder is not None:
            is_own = shard_of_task(folder.name, shard.of) == shard.number
            if is_own and _is_audit(item):
                audits.setdefault(folder, evals.task(folder))
        else:
            is_own = True
        (own if is_own else others).append(item)
    return Share(own=own, others=others, plans=tuple(plans.values()), audits=tuple(audits.values()))


def _trial_of(item: pytest.Item) -> TrialHandle | None:
    """Return the trial that an item is part of, or that an ordinary test looks at."""
    from pytest_evalarc.plugin.nodes import EvalItem
    from pytest_evalarc.plugin.session import TrialHandle

    found = item.trial if isinstance(item, EvalItem) else _parameter(item, "evalarc_trial")
    return found if isinstance(found, TrialHandle) else None


def _task_of(item: pytest.Item) -> Path | None:
    """Return the folder of the task that an item is of, or that an ordinary test looks at."""
    from pytest_evalarc.plugin.nodes import EvalItem

    found = item.path.parent if isinstance(item, EvalItem) else _parameter(item, "evalarc_task")
    return found if isinstance(found, Path) else None


def _parameter(item: pytest.Item, name: str) -> Any:
    call = getattr(item, "callspec", None)
    return call.params.get(name) if call is not None else None


def _is_audit(item: pytest.Item) -> bool:
    from pytest_evalarc.plugin.nodes import EvalItem

    return isinstance(item, EvalItem) and item.leaf.kind == "audit"


def shard_line(evals: EvalSession, shard: Shard) -> str:
    """Return which share of the plan is run here, before anything is collected."""
    planned = own = audits = own_audits = 0
    for task in _asked_tasks(evals):
        if task.has_solution:
            audits += 1
            own_audits += shard_of_task(task.name, shard.of) == shard.number
        for label in evals.clients_for(task.root / "task.toml"):
            plan = evals.plan(task, label)
            planned += len(plan.trials)
            own += len(plan.own)
    told = f"{own} of {planned} planned trials and {own_audits} of {audits} audits"
    return f"shard {shard.number} of {shard.of} runs {told}; all others are deselected"


def _asked_tasks(evals: EvalSession) -> Iterator[Task]:
    """Yield the valid tasks that the options select and the arguments lead to."""
    from pytest_evalarc.plugin.expectations import selected_folders

    arguments = [evals.options.argument_path(argument) for argument in evals.config.args]
    for folder in selected_folders(evals):
        try:
            task = evals.task(folder)
        except EvalArcError:
            continue
        if any(_leads_to(path, folder) for path in arguments):
            yield task


def _leads_to(path: Path, folder: Path) -> bool:
    """Whether an argument collects items of a task: it, what it is in, or tests that look at it."""
    is_around = path == folder or path in folder.parents or folder in path.parents
    return is_around or path.suffix == ".py"
