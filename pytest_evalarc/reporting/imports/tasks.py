"""Tasks out of other programs' cases: what carries over, and what is left to an author."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.reporting.imports.harbor_task import read_harbor
from pytest_evalarc.reporting.imports.parts import CASE, CASE_YAML, HARBOR, KNOWN_FORMS, Parts
from pytest_evalarc.reporting.imports.plugin_case import read_case
from pytest_evalarc.reporting.imports.skill_evals import read_evals
from pytest_evalarc.tasks.load import TASK_FILE

PROMPT_FILE = "prompt.md"


@dataclass(frozen=True, kw_only=True)
class TaskDraft:
    """A task that is not written yet."""

    name: str
    files: Mapping[str, bytes]
    """By path below the task's folder, its task.toml among them."""
    left_out: tuple[str, ...]
    """A sentence for each thing of the source that is not in the task."""


def draft_tasks(source: Path, name: str, *, root: Path) -> tuple[TaskDraft, ...]:
    """Return the tasks that a source becomes.

    Args:
        source: A case's or a task's folder, or an evals.json.
        name: The task's name; of several tasks each has its own id after it.
        root: The project root, absolute; plugins are named from there.

    Raises:
        DocumentError: A file cannot be read, or is not of its form.
        TaskError: A Harbor task.toml is no TOML.
        UsageError: The source is of no known form, or PyYAML is needed and not installed.
    """
    if source.is_file() and source.suffix == ".json":
        return tuple(_drafted(own, parts) for own, parts in read_evals(source, name, root))
    if (source / HARBOR).is_file():
        return (_drafted(name, read_harbor(source)),)
    if (source / CASE).is_file() or (source / CASE_YAML).is_file():
        return (_drafted(name, read_case(source, root)),)
    raise UsageError(str(source), "is no case that is known here", KNOWN_FORMS)


def _drafted(name: str, parts: Parts) -> TaskDraft:
    files = {
        TASK_FILE: "\n".join((*_task_lines(parts), "")).encode(),
        PROMPT_FILE: parts.prompt.encode(),
        **{f"starter/{path}": data for path, data in parts.starter.items()},
    }
    if not parts.starter:
        files["starter/README.md"] = b"# A project\n"
    return TaskDraft(name=name, files=files, left_out=tuple(parts.left_out))


def _task_lines(parts: Parts) -> Iterator[str]:
    """Yield the lines of a task.toml; TOML's strings are written as JSON writes its own."""
    yield 'kind = "capability"'
    yield f"prompt_file = {json.dumps(PROMPT_FILE)}"
    yield 'toolchain = "python"'
    if parts.plugin is not None:
        yield f"plugins = {_list([parts.plugin])}"
    if parts.tags:
        yield f"tags = {_list(parts.tags)}"
    yield from _table_lines("deadlines", agent=parts.agent_s, grading=parts.grading_s)
    yield from _table_lines("limits", memory_mib=parts.memory_mib, cpus=parts.cpus)
    if parts.used or parts.not_used:
        yield ""
        yield "[expected]"
        if parts.used:
            yield f"used = {_list(dict.fromkeys(parts.used))}"
        if parts.not_used:
            yield f"not_used = {_list(dict.fromkeys(parts.not_used))}"


def _table_lines(name: str, **values: float | None) -> Iterator[str]:
    known = {key: value for key, value in values.items() if value is not None}
    if known:
        yield ""
        yield f"[{name}]"
        for key, value in known.items():
            yield f"{key} = {value:g}"


def _list(words: Iterable[str]) -> str:
    return json.dumps(list(words), ensure_ascii=False)
