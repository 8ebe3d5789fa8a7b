"""`pytest-evalarc import`: tasks out of the cases of other programs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from pytest_evalarc.cli.init import check_name
from pytest_evalarc.cli.project import pack_info, project_root
from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import TaskProblems, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import create_trees
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.reporting.imports.tasks import TaskDraft, draft_tasks
from pytest_evalarc.tasks.load import load_task
from pytest_evalarc.tasks.problems import shown_path


def import_tasks(source: Path, *, into: Path) -> Status:
    """Make the tasks that a source becomes, all or nothing, and print what is left to an author.

    Args:
        source: A `claude plugin eval` case, an evals.json of the skill-creator, or a Harbor task.
        into: The folder of the new task, as `evals/tasks/NAME`; of several tasks each has its own
            id after that name.

    Raises:
        UsageError: The source is of no known form, a name is none, or something is there already.
        DocumentError: A file of the source cannot be read.
        InfrastructureError: Something cannot be written.
    """
    current = Path.cwd()
    root = project_root(current) or current
    folder = Path(os.path.abspath(into))  # noqa: PTH100 - resolving would follow links.
    drafts = draft_tasks(source, folder.name, root=root)
    trees = {}
    for draft in drafts:
        check_name(draft.name)
        path = folder.with_name(draft.name)
        if path in trees or os.path.lexists(path):
            where = shown_path(path, current)
            raise UsageError(where, "is there already", "name another folder with --into")
        trees[path] = draft.files
    create_trees(trees)
    for draft in drafts:
        _tell(draft, folder.with_name(draft.name), root=root)
    return Status.DONE


def _tell(draft: TaskDraft, path: Path, *, root: Path) -> None:
    """Print what was made, what the source says beyond it, and what the task still lacks."""
    shown = shown_path(path, Path.cwd())
    print(printable(f"made {shown}"))
    for sentence in draft.left_out:
        print(printable(f"  not carried over: {sentence}"))
    for problem in _problems(path, root=root):
        print(printable(f"  left to you: {problem}"))


def _problems(path: Path, *, root: Path) -> tuple[str, ...]:
    known = installed()
    packs = {name: partial(pack_info, known, name) for name in known.packs.names}
    try:
        load_task(path, root=root, toolchains=known.toolchains.names, packs=packs)
    except TaskProblems as found:
        return tuple(str(problem) for problem in found.problems)
    return ()
