"""`pytest-evalarc tasks`: the tasks of a folder, and the packs that a task can name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_evalarc.cli.project import DEFAULT_TASKS
from pytest_evalarc.cli.status import Status
from pytest_evalarc.cli.table import table
from pytest_evalarc.cli.tasks_listing import InvalidTask, KnownPack, Listing, ValidTask, list_tasks
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.registry.installed import installed

_TASKS = ("task", "kind", "graded by", "checks x dimensions", "mutants", "tags")
_PACKS = ("pack", "version", "domain", "cases x dimensions", "mutants", "languages")


def tasks(*, folder: Path | None, as_json: bool) -> Status:
    """Print the tasks of a folder and the packs that are known, and return the exit status.

    Args:
        folder: Where the tasks are; None is `evals/tasks` below the current folder.
        as_json: Whether one JSON document is printed rather than tables.

    Returns:
        `NO` when a task is not valid or a pack is broken, else `DONE`.

    Raises:
        UsageError: There is no such folder, or a plugin is broken.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(printable(str(folder)), "is no folder", "name a folder of tasks")
    path = Path(os.path.abspath(folder or DEFAULT_TASKS))  # noqa: PTH100 - links stay as named.
    listing = list_tasks(path, installed())
    if as_json:
        print(dumps(listing.to_json()).decode(), end="")
    else:
        for line in _lines(listing):
            print(printable(line, limit=10_000))
    return Status.NO if listing.invalid or listing.broken else Status.DONE


def _lines(listing: Listing) -> Iterator[str]:
    if listing.tasks:
        yield from table(_TASKS, [_task_cells(task) for task in listing.tasks])
    elif not listing.invalid:
        yield f"no tasks in {listing.folder}; pytest-evalarc init NAME makes one"
    for task in listing.invalid:
        yield _problems_line(task)
    if listing.invalid:
        yield "all problems, and what a conftest.py offers: pytest --evalarc-check-tasks"
    for name in listing.skipped:
        yield f"{name}: skipped, its task.toml belongs to another tool"
    yield ""
    yield from table(_PACKS, [_pack_cells(pack) for pack in listing.packs])
    for pack in listing.broken:
        yield pack.problem


def _problems_line(task: InvalidTask) -> str:
    count = len(task.problems)
    told = "1 problem:" if count == 1 else f"{count} problems, the first:"
    return f"{task.name}: {told} {task.problems[0]}"


def _task_cells(task: ValidTask) -> Sequence[str]:
    return (
        task.name,
        task.kind,
        f"{task.pack} in {task.language}" if task.pack else task.toolchain,
        f"{len(task.checks)} x {len(task.dimensions)}",
        str(len(task.mutants)),
        ", ".join(task.tags),
    )


def _pack_cells(pack: KnownPack) -> Sequence[str]:
    return (
        pack.name,
        pack.version,
        pack.domain,
        f"{len(pack.cases)} x {len(pack.dimensions)}",
        str(len(pack.mutants)),
        ", ".join(pack.languages),
    )
