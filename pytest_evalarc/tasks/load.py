"""A task folder, read whole: a valid task, or every problem in it at once."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from pytest_evalarc.errors import SubmissionError, TaskError, TaskProblems, nearest
from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.files.text import in_line
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import (
    LEAST_CPUS,
    MOST_CPUS,
    MOST_MIB,
    MOST_PROCESSES,
    MOST_SECONDS,
    Deadlines,
    Limits,
    PackRef,
    Plugin,
    Task,
    TaskBrief,
)
from pytest_evalarc.tasks.expected import read_expected, read_plugins
from pytest_evalarc.tasks.fields import NAME_HINT, Table, described
from pytest_evalarc.tasks.fixtures import read_fixtures
from pytest_evalarc.tasks.graded import Graded, graded_by_pack, read_graded
from pytest_evalarc.tasks.keys import DEADLINES, KINDS, LIMITS, PACK, TASK
from pytest_evalarc.tasks.names import is_pytest_mark, is_reserved
from pytest_evalarc.tasks.problems import Problems, shown_path
from pytest_evalarc.tasks.toml import MOST_PROMPT_BYTES, TomlDocument, read_bounded, read_toml
from pytest_evalarc.tasks.trees import (
    normalised,
    relative_flaw,
)

TASK_FILE = "task.toml"
NO_PACKS: Mapping[str, Callable[[], PackInfo]] = MappingProxyType({})

_FOREIGN_TABLES = ("metadata", "verifier", "environment", "agent", "task", "steps")


def load_task(
    folder: Path,
    *,
    root: Path,
    toolchains: Collection[str],
    packs: Mapping[str, Callable[[], PackInfo]] = NO_PACKS,
) -> Task:
    """Return the task of a folder.

    Args:
        folder: The task's folder; `fixtures/` and `plugins/` lie beside the folder it is in.
        root: The project root, which messages name paths from and plugin paths start at.
        toolchains: The names that `toolchain` may have.
        packs: What each pack is, by name; only that of the task is asked for.

    Raises:
        TaskProblems: Every problem of the task, each with its file and line.
    """
    document = _read_document(folder / TASK_FILE, root)
    problems = Problems(document, path=folder / TASK_FILE, root=root)
    top = Table(problems, document.data)
    top.refuse_unknown(TASK)
    _check_folder_name(folder, problems)

    siblings = folder.parent.parent
    kind = _read_kind(top)
    pack, info = _read_pack(top, packs)
    prompt = _read_prompt(top, folder, info)
    deadlines = _read_deadlines(top)
    limits = _read_limits(top, info.limits if info else Limits())
    plugins = read_plugins(top, siblings / "plugins", root=root)
    expected = read_expected(top, plugins, siblings / "plugins")
    fixtures = read_fixtures(top, siblings / "fixtures", root=root)
    if pack is not None:
        graded = graded_by_pack(top, folder, pack, info, deadlines=deadlines)
    else:
        graded = read_graded(
            top, folder, root=root, toolchains=toolchains, deadlines=deadlines, expected=expected
        )
    version = top.text("version", "0.1.0")
    fmt_check = top.flag("fmt_check")
    tags = _read_tags(top)
    sha256 = _hash_or_tell(
        problems, folder, fixtures=fixtures, plugins=plugins, code=info.code if info else None
    )
    if problems.found:
        raise TaskProblems(tuple(problems.found))
    brief = TaskBrief(
        name=folder.name,
        prompt=prompt,
        agent_deadline_s=deadlines.agent,
        plugins=tuple(plugin.name for plugin in plugins),
    )
    return Task(
        brief=brief,
        kind=cast("Literal['capability', 'regression']", kind),
        version=version,
        root=folder,
        toolchain=graded.toolchain,
        pack=pack,
        editable=graded.editable,
        fixtures=fixtures,
        plugins=plugins,
        fmt_check=fmt_check,
        tags=tags,
        weights=dict(graded.weights),
        deadlines=deadlines,
        limits=limits,
        expected=expected,
        checks=graded.checks,
        mutants=graded.mutants,
        has_solution=graded.has_solution,
        sha256=sha256,
        lines=_lines(document, graded),
    )


def _read_document(path: Path, root: Path) -> TomlDocument:
    try:
        return read_toml(path, where=shown_path(path, root))
    except TaskError as error:
        raise TaskProblems((error,)) from error


def is_foreign(folder: Path) -> bool:
    """Whether the folder's task.toml belongs to another tool, as Harbor's, and is to be skipped.

    It has a table that only they have, and neither a kind nor a prompt; a file that is not TOML
    is ours to complain about.
    """
    try:
        data = tomllib.loads(read_bounded(folder / TASK_FILE).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    if not data.keys().isdisjoint(("kind", "prompt", "prompt_file")):
        return False
    return any(isinstance(data.get(name), (dict, list)) for name in _FOREIGN_TABLES)


def prompt_warnings(task: Task) -> tuple[str, ...]:
    """Return a sentence for each word of the prompt that names the treatment.

    A client without the treatment would be asked for what it cannot have, which helps neither
    configuration and makes them differ by more than the treatment.
    """
    where = f"{task.root / TASK_FILE}:{task.lines.get('prompt', 1)} prompt"
    names = dict.fromkeys(("symposium", "cargo-agents", *task.brief.plugins))
    return tuple(
        f"{where}: names {described(name)}, a part of the treatment; ask for the result alone"
        for name in names
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", task.brief.prompt, re.IGNORECASE)
    )


def content_hash(
    folder: Path,
    *,
    fixtures: Iterable[Plugin] = (),
    plugins: Iterable[Plugin] = (),
    code: Path | None = None,
) -> str:
    """Return the digest of all that a task is made of, what tools leave behind left out.

    Args:
        folder: The task's folder.
        fixtures: The fixtures it names.
        plugins: The plugins it names.
        code: For a pack task, the folder with the pack's code.

    Raises:
        SubmissionError: A folder is too large or cannot be read.
    """
    parts = {"task": folder}
    parts |= {f"fixture {fixture.name}": fixture.root for fixture in fixtures}
    parts |= {f"plugin {plugin.name}": plugin.root for plugin in plugins}
    if code is not None:
        parts["pack"] = code
    digest = hashlib.sha256()
    for label, root in sorted(parts.items()):
        digest.update(f"{label}\0{read_manifest(root, skip=is_cache).sha256}\0".encode())
    return digest.hexdigest()


def _check_folder_name(folder: Path, problems: Problems) -> None:
    if not is_name(folder.name):
        problems.at_path(folder, "has a name that is none here", NAME_HINT)
    elif is_reserved(folder.name):
        problems.at_path(folder, "has a name that is reserved", "rename the folder")
    if folder.is_symlink():
        hint = "put the folder itself there: what a link leads to can change unseen"
        problems.at_path(folder, "is a symbolic link", hint)
    for other in sorted(folder.parent.iterdir()):
        is_twin = other.name != folder.name and other.name.casefold() == folder.name.casefold()
        if is_twin and (other / TASK_FILE).exists():
            problems.at_path(folder, f"collides with the task {other.name}", "rename one")


def _read_kind(top: Table) -> str | None:
    needed = top.require("kind", f"write one of {', '.join(KINDS)}")
    return top.choice("kind", KINDS) if needed else None


def _read_prompt(top: Table, folder: Path, pack: PackInfo | None) -> str:
    if pack is not None and "prompt" not in top and "prompt_file" not in top:
        return pack.prompt
    if ("prompt" in top) == ("prompt_file" in top):
        problem = "stands beside prompt_file" if "prompt" in top else "is missing"
        top.tell("prompt", problem, "write exactly one of prompt and prompt_file")
        return ""
    if "prompt" in top:
        return top.text("prompt")
    name = top.text("prompt_file")
    if not name:
        return ""
    path = folder / normalised(name)
    flaw = relative_flaw(name)
    if not flaw and not path.is_file():
        flaw = "is no file of the task"
    if not flaw and not path.resolve().is_relative_to(folder.resolve()):
        flaw = "leads out of the task"
    try:
        prompt = (
            ""
            if flaw
            else read_bounded(path, most=MOST_PROMPT_BYTES).decode("utf-8").replace("\r\n", "\n")
        )
    except UnicodeDecodeError:
        flaw, prompt = "cannot be read as UTF-8", ""
    except OSError as error:
        flaw, prompt = f"cannot be read: {error.strerror}", ""
    if not flaw and not prompt.strip():
        flaw = "has nothing in it"
    if flaw:
        hint = "name a text file of the task's folder"
        top.tell("prompt_file", f"is {described(name)}, which {flaw}", hint)
    return prompt


def _read_deadlines(top: Table) -> Deadlines:
    table = top.table("deadlines")
    defaults = asdict(Deadlines())
    table.refuse_unknown(DEADLINES)
    return Deadlines(
        **{
            name: table.number(name, default, most=MOST_SECONDS)
            for name, default in defaults.items()
        }
    )


def _read_limits(top: Table, defaults: Limits) -> Limits:
    table = top.table("limits")
    table.refuse_unknown(LIMITS)
    return Limits(
        memory_mib=table.integer("memory_mib", defaults.memory_mib, most=MOST_MIB),
        processes=table.integer("processes", defaults.processes, most=MOST_PROCESSES),
        cpus=table.number("cpus", defaults.cpus, least=LEAST_CPUS, most=MOST_CPUS),
        tmp_mib=table.integer("tmp_mib", defaults.tmp_mib, most=MOST_MIB),
        output_mib=table.integer("output_mib", defaults.output_mib, most=MOST_MIB),
        disk_mib=table.integer("disk_mib", defaults.disk_mib, most=MOST_MIB),
    )


def _read_tags(top: Table) -> tuple[str, ...]:
    tags = top.names("tags")
    for tag in tags:
        if is_pytest_mark(tag):
            problem = f"names {described(tag)}, which pytest gives another meaning"
            top.tell("tags", problem, "choose another word")
    return tags


def _read_pack(
    top: Table, packs: Mapping[str, Callable[[], PackInfo]]
) -> tuple[PackRef | None, PackInfo | None]:
    """Return what `[pack]` says, and the pack that it names; None for what is not there."""
    if "pack" not in top:
        return None, None
    table = top.table("pack")
    table.refuse_unknown(PACK)
    name = table.name("name", "") if table.require("name", "name the pack") else ""
    if name and name not in packs:
        problem = f"is {described(name)}, which is no pack"
        table.tell("name", problem, nearest(name, tuple(packs)))
    info = packs[name]() if name in packs else None
    languages = tuple(info.languages) if info else ()
    language = table.name("language", languages[0] if languages else "python")
    if info is not None and language not in languages:
        problem = f"is {described(language)}, in which the pack has no candidate"
        table.tell("language", problem, nearest(language, languages))
    # Only a valid task keeps it, so a name that was told may stand as any other.
    ref = PackRef(
        name=name or "unnamed",
        seeds=table.integers("seeds", PackRef.seeds),
        language=language or "unnamed",
        version=info.version if info else "",
        domain=info.domain if info else "",
        split=info.split if info else "public-development",
    )
    return ref, info


def _hash_or_tell(
    problems: Problems,
    folder: Path,
    *,
    fixtures: Iterable[Plugin],
    plugins: Iterable[Plugin],
    code: Path | None,
) -> str:
    # A task with problems has no digest, and what was told already is not told twice.
    if problems.found:
        return ""
    try:
        return content_hash(folder, fixtures=fixtures, plugins=plugins, code=code)
    except SubmissionError as error:
        problem = f"{in_line(error.where, limit=400)} {error.problem}"
        problems.at_path(folder, problem, error.hint or "make it smaller")
        return ""


def _lines(document: TomlDocument, graded: Graded) -> dict[str, int]:
    prompt = "prompt" if "prompt" in document.data else "prompt_file"
    lines = {"": 1, "prompt": document.line((prompt,))}
    lines |= {name: document.line((name,)) for name in ("expected", "mutants")}
    for check in graded.checks:
        lines[f"checks.{check.id}"] = document.line(("checks", check.id))
    for place, mutant in enumerate(graded.mutants):
        lines[f"mutants.{mutant.name}"] = document.line(("mutants", place))
    return lines
