"""What the commands on tasks know of the project around them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from pytest_evalarc.errors import EvalArcError, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.model.task import Task, TaskRef
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.tasks.load import load_task

DEFAULT_TASKS = "evals/tasks"
_ROOT_FILES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg", "setup.py"),
)
"""What pytest looks for to find the root of a project."""


def project_root(start: Path) -> Path | None:
    """Return the nearest folder, from an absolute one upwards, that is a project's root."""
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in _ROOT_FILES):
            return folder
    return None


def evaluated_task(ref: TaskRef, registry: Registry, tasks: Path) -> Task | None:
    """Return the task that documents name; None where it is gone, or is another by now.

    Args:
        ref: How the documents name it.
        registry: Knows toolchains and packs.
        tasks: The folder of tasks.
    """
    # Links stay as they are named, as for pytest.
    folder = Path(os.path.abspath(tasks / ref.name))  # noqa: PTH100
    try:
        task = load_task(
            folder,
            root=project_root(folder) or folder.parent,
            toolchains=registry.toolchains.names,
            packs={name: partial(pack_info, registry, name) for name in registry.packs.names},
        )
    except (EvalArcError, OSError):
        return None
    return task if task.ref.content_hash == ref.content_hash else None


def pack_info(registry: Registry, name: str) -> PackInfo:
    """Return what a pack is.

    Raises:
        UsageError: There is none of that name, or its own code fails.
    """
    try:
        return registry.packs.get(name).info
    except EvalArcError:
        raise
    except Exception as error:
        raise broken_pack(name, error) from error


def broken_pack(name: str, error: Exception) -> UsageError:
    """Return the sentence for a pack whose own code has failed."""
    problem = f"fails: {type(error).__name__}: {printable(str(error), limit=400)}"
    return UsageError(f"pack {name!r}", problem, "mend it, or uninstall what offers it")
