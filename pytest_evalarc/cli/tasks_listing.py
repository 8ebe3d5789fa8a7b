"""What is in a folder of tasks, and which packs there are, as one document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_evalarc.cli.project import pack_info, project_root
from pytest_evalarc.errors import TaskProblems, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import SCHEMA_VERSION, Model
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.model.task import Task
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.tasks.load import TASK_FILE, is_foreign, load_task


class ValidTask(Model):
    """A task that can be run."""

    name: str
    kind: str
    version: str
    content_hash: str
    toolchain: str
    """For a pack task, the one of its language."""
    pack: str | None
    language: str | None
    """Of the pack; null without one."""
    checks: tuple[str, ...]
    dimensions: tuple[str, ...]
    mutants: tuple[str, ...]
    tags: tuple[str, ...]


class InvalidTask(Model):
    """A task that breaks a rule."""

    name: str
    problems: tuple[str, ...]
    """One sentence each; at least one."""


class KnownPack(Model):
    """A pack that a task can name."""

    name: str
    version: str
    domain: str
    cases: tuple[str, ...]
    dimensions: tuple[str, ...]
    mutants: tuple[str, ...]
    """Declared faults."""
    languages: tuple[str, ...]
    """The first is the default."""


class BrokenPack(Model):
    """A pack whose own code fails."""

    name: str
    problem: str
    """One sentence."""


class Listing(Model):
    """What `pytest-evalarc tasks --json` prints."""

    schema_version: str = SCHEMA_VERSION
    folder: str
    tasks: tuple[ValidTask, ...]
    invalid: tuple[InvalidTask, ...]
    skipped: tuple[str, ...]
    """Folders whose task.toml belongs to another tool."""
    packs: tuple[KnownPack, ...]
    broken: tuple[BrokenPack, ...]
    """Packs whose own code fails; a task that names one is not valid."""


def list_tasks(folder: Path, registry: Registry) -> Listing:
    """Return what a folder of tasks holds, each list sorted by name but that of packs.

    Args:
        folder: An absolute path; a folder that is not there holds nothing.
        registry: Which toolchains and packs a task may name.

    Raises:
        UsageError: The folder cannot be read.
    """
    root = project_root(folder.parent) or folder.parent.parent
    infos = {name: _info_of(registry, name) for name in registry.packs.names}
    tasks: list[ValidTask] = []
    invalid: list[InvalidTask] = []
    skipped: list[str] = []
    for path in _task_folders(folder):
        name = printable(path.name, limit=400)
        if is_foreign(path):
            skipped.append(name)
            continue
        try:
            task = load_task(path, root=root, toolchains=registry.toolchains.names, packs=infos)
        except TaskProblems as problems:
            invalid.append(InvalidTask(name=name, problems=tuple(map(str, problems.problems))))
        except UsageError as error:
            # The pack that it names is broken, so nobody knows what else is wrong with it.
            invalid.append(InvalidTask(name=name, problems=(str(error),)))
        else:
            tasks.append(_valid(task))
    packs, broken = _packs(infos)
    return Listing(
        folder=printable(str(folder), limit=4000),
        tasks=tuple(tasks),
        invalid=tuple(invalid),
        skipped=tuple(skipped),
        packs=packs,
        broken=broken,
    )


def _packs(
    infos: Mapping[str, Callable[[], PackInfo]],
) -> tuple[tuple[KnownPack, ...], tuple[BrokenPack, ...]]:
    """Return the packs that can be used, and those that cannot: one that fails hides no other."""
    known: list[KnownPack] = []
    broken: list[BrokenPack] = []
    for name, info in infos.items():
        try:
            known.append(_known(info()))
        except UsageError as error:
            broken.append(BrokenPack(name=name, problem=str(error)))
    return tuple(known), tuple(broken)


def _info_of(registry: Registry, name: str) -> Callable[[], PackInfo]:
    return lambda: pack_info(registry, name)


def _task_folders(folder: Path) -> list[Path]:
    """Return the folders that pytest collects as tasks; it stays out of hidden ones."""
    try:
        found = sorted(folder.iterdir()) if folder.exists() else []
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise UsageError(printable(str(folder)), problem, "name a folder of tasks") from error
    return [
        path for path in found if not path.name.startswith(".") and (path / TASK_FILE).is_file()
    ]


def _valid(task: Task) -> ValidTask:
    return ValidTask(
        name=task.name,
        kind=task.kind,
        version=task.version,
        content_hash=task.sha256,
        toolchain=task.toolchain,
        pack=task.pack.name if task.pack else None,
        language=task.pack.language if task.pack else None,
        checks=tuple(check.id for check in task.checks),
        dimensions=task.dimensions,
        mutants=tuple(mutant.name for mutant in task.mutants),
        tags=task.tags,
    )


def _known(info: PackInfo) -> KnownPack:
    return KnownPack(
        name=info.name,
        version=info.version,
        domain=info.domain,
        cases=tuple(info.cases),
        dimensions=tuple(info.weights),
        mutants=tuple(mutant.name for mutant in info.mutants),
        languages=tuple(info.languages),
    )
