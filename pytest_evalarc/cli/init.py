"""`pytest-evalarc init`: a new task that is valid and whose audit passes, to be changed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_evalarc.cli.project import DEFAULT_TASKS, broken_pack, pack_info, project_root
from pytest_evalarc.cli.schemas import TASK_SCHEMA, task_schema_text
from pytest_evalarc.cli.status import Status
from pytest_evalarc.errors import EvalArcError, UsageError, nearest
from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import create_trees
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.registry.installed import installed
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.tasks.fields import NAME_HINT
from pytest_evalarc.tasks.load import TASK_FILE
from pytest_evalarc.tasks.names import is_reserved
from pytest_evalarc.tasks.problems import shown_path

SCAFFOLDS = Path(__file__).parent / "scaffolds"
LANGUAGES = ("python", "node", "rust")
PACK_LANGUAGE = "pack"
"""The word for a task that needs no language: a pack that ships grades it."""
FIRST_PACK = "durable-kv"
PAGE = "report.html"
"""In the commands that are printed, where the results are shown."""
PROMPT_FILE = "TASK.md"
"""In a candidate's workspace, what it is asked."""

SCHEMA_FOLDER = ".schema"
"""In the folder of tasks, what each new task.toml names for editors; hidden, so never collected."""

_PACK_TASK = """\
#:schema ../.schema/task.schema.json

# The pack brings prompt, starter, cases, reference and mutants.
kind = "capability"

[pack]
name = "{name}"
"""


def init(
    name: str,
    *,
    tasks: Path | None = None,
    language: str | None = None,
    pack: str | None = None,
    pack_language: str | None = None,
    workspace: Path | None = None,
) -> Status:
    """Make a task, or a pack task with a candidate's workspace, all or nothing; return `DONE`.

    The folder of tasks gets a schema of task.toml for editors, unless one is there.

    Args:
        name: The task's name, which is that of its folder.
        tasks: Where tasks are; made if it is not there. None is `evals/tasks` below the current
            folder.
        language: The scaffold's, one of `LANGUAGES`, or `PACK_LANGUAGE` in place of naming
            `FIRST_PACK`; None is the first.
        pack: A pack that grades the task, in place of a scaffold.
        pack_language: Of the pack's candidates; None is the pack's first.
        workspace: A new folder that gets the pack's prompt and starter.

    Raises:
        UsageError: A name is wrong, options do not go together, or something is there already.
        InfrastructureError: Something cannot be written.
    """
    if language == PACK_LANGUAGE and pack is None:
        language, pack = None, FIRST_PACK
    _check_combination(language, pack, pack_language, workspace)
    check_name(name)
    folder = _absolute(tasks or Path(DEFAULT_TASKS))
    task = folder / name
    known = installed()
    if pack is None:
        toolchain = language or LANGUAGES[0]
        trees = {task: _scaffold(toolchain)}
    else:
        candidates = _language_of(known, pack, pack_language)
        toolchain = pack_info(known, pack).languages[candidates].toolchain
        trees = {task: {TASK_FILE: _pack_task(pack, pack_language).encode()}}
        if workspace is not None:
            trees[_workspace(workspace, folder)] = _starter(known, pack, candidates)
    _check_free(task)
    schema = folder / SCHEMA_FOLDER
    if not os.path.lexists(schema):
        trees[schema] = {TASK_SCHEMA: task_schema_text().encode()}
    create_trees(trees)
    for path in trees:
        print(f"made {shown_path(path, Path.cwd())}")
    if schema not in trees and not _is_current(schema / TASK_SCHEMA):
        where = shown_path(schema, Path.cwd())
        print(f"kept {where}, whose {TASK_SCHEMA} is of another version; removed, it is made anew")
    own_workspace = None if workspace is None else _absolute(workspace)
    for line in (*_first_of_all(known, toolchain), *_next_steps(name, folder, own_workspace)):
        print(printable(line))
    return Status.DONE


def _check_combination(
    language: str | None, pack: str | None, pack_language: str | None, workspace: Path | None
) -> None:
    if pack is not None and language is not None:
        problem = "stands beside --pack, which has languages of its own"
        raise UsageError("--language", problem, "write --pack-language")
    if pack is None and pack_language is not None:
        raise UsageError("--pack-language", "stands without --pack", "write --language")
    if pack is None and workspace is not None:
        problem = "stands without --pack, which brings what a workspace holds"
        raise UsageError("--workspace", problem, "name the pack")


def check_name(name: str) -> None:
    """Refuse a name that no task can have.

    Raises:
        UsageError: Says why.
    """
    if not is_name(name):
        raise UsageError(f"name {printable(repr(name))}", "is none that a task can have", NAME_HINT)
    if is_reserved(name):
        raise UsageError(f"name {name!r}", "is reserved", "choose another one")


def _check_free(task: Path) -> None:
    """Refuse a task that is there, under this name or one that differs in case alone."""
    twins = [path for path in _inside(task.parent) if path.name.casefold() == task.name.casefold()]
    for twin in twins:
        where = shown_path(twin, Path.cwd())
        raise UsageError(where, "is there already", "choose another name, or move it away")


def _is_current(schema: Path) -> bool:
    try:
        return schema.read_bytes() == task_schema_text().encode()
    except OSError:
        return False


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir()) if os.path.lexists(folder) else []
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        hint = "name a folder of tasks with --tasks"
        raise UsageError(printable(str(folder)), problem, hint) from error


def _scaffold(language: str) -> Mapping[str, bytes]:
    """Return the files of the task that ships in a language, by their paths."""
    if language not in LANGUAGES:
        hint = nearest(language, (*LANGUAGES, PACK_LANGUAGE))
        raise UsageError(f"--language {printable(language)}", "there is no scaffold in it", hint)
    folder = SCAFFOLDS / language
    files = read_manifest(folder, skip=is_cache).files
    return {entry.path: (folder / entry.path).read_bytes() for entry in files}


def _pack_task(pack: str, language: str | None) -> str:
    text = _PACK_TASK.format(name=pack)
    return text if language is None else f'{text}language = "{language}"\n'


def _language_of(known: Registry, pack: str, language: str | None) -> str:
    languages = tuple(pack_info(known, pack).languages)
    if language is None:
        return languages[0]
    if language not in languages:
        where = f"--pack-language {printable(language)}"
        hint = nearest(language, languages)
        raise UsageError(where, f"the pack {pack} has no candidate in it", hint)
    return language


def _workspace(path: Path, tasks: Path) -> Path:
    """Return where a workspace is to be; it lies apart from the tasks, and nothing is there."""
    workspace = _absolute(path)
    where = f"--workspace {shown_path(workspace, Path.cwd())}"
    if os.path.lexists(workspace):
        raise UsageError(where, "is there already", "name a folder that is not")
    if tasks in (workspace, *workspace.parents) or workspace in tasks.parents:
        problem = f"does not lie apart from the tasks in {shown_path(tasks, Path.cwd())}"
        raise UsageError(where, problem, "name another folder")
    return workspace


def _starter(known: Registry, pack: str, language: str) -> Mapping[str, bytes]:
    """Return the files that a candidate of a pack begins with, and what it is asked."""
    try:
        files = known.packs.get(pack).control("starter", language)
    except EvalArcError:
        raise
    except Exception as error:
        raise broken_pack(pack, error) from error
    return {**files, PROMPT_FILE: pack_info(known, pack).prompt.encode()}


def _first_of_all(known: Registry, toolchain: str) -> Iterator[str]:
    """Yield what this machine lacks for a new task, and the command that mends it."""
    if toolchain not in known.toolchains.names:
        return
    missing = known.toolchains.get(toolchain).missing()
    if missing is not None:
        problem, _, remedy = missing.partition("; ")
        yield f"run first, because {problem}:"
        yield f"  {remedy or 'pytest-evalarc doctor'}"


def _next_steps(name: str, tasks: Path, workspace: Path | None) -> Iterator[str]:
    """Yield commands for the shell: one that leads to a report, then its parts one by one."""
    # With `=`, or pytest would take a folder of that name for its root.
    words = [f"--evalarc-task={name}"]
    current = Path.cwd()
    if tasks != (project_root(current) or current) / DEFAULT_TASKS:
        words.append(f"--evalarc-tasks={shown_path(tasks, current)}")
    command = shlex.join([_pytest(current), *words])
    if workspace is None:
        yield "run next, to audit the checks and play the ideal session:"
        yield f"  {command} --evalarc-html={PAGE}"
    else:
        folder = shlex.quote(f"--evalarc-submission={shown_path(workspace, current)}")
        yield "run next, to score the workspace:"
        yield f"  {command} {folder} --evalarc-html={PAGE}"
    yield "or ask one thing at a time:"
    yield f"  {command} --evalarc-check-tasks  # is the task valid?"
    yield f"  {command} -k audit  # and can its checks be trusted?"


def _pytest(current: Path) -> str:
    """Return the pytest that this package is installed with: by its name where PATH finds it."""
    own = Path(sys.executable).with_name("pytest")
    found = shutil.which("pytest")
    if not own.is_file() or (found is not None and Path(found).samefile(own)):
        return "pytest"
    return shown_path(own, current)


def _absolute(path: Path) -> Path:
    """Return an absolute path without `..`, in which links stay as they were named."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolving would follow them.
