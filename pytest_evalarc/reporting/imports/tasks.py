"""Tasks out of other programs' cases: what carries over, and what is left to an author.

Formats: `claude plugin eval` (code.claude.com, plugin evals), skill-creator's evals.json
(anthropics/skills), and Harbor's task folders (harborframework.com, tasks).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.tasks.load import TASK_FILE
from pytest_evalarc.tasks.toml import read_toml

PROMPT_FILE = "prompt.md"
CASE, EVALS, HARBOR = "prompt.md", "evals.json", "instruction.md"
"""The file that each form is known by."""

_KNOWN = (
    f"name a `claude plugin eval` case with {CASE}, an {EVALS} of the skill-creator, "
    f"or a Harbor task with {HARBOR}"
)
_CASE_KEYS = ("name", "description", "tags", "timeout_seconds", "expected_outcome")
"""Of a case's front matter: what is carried over, or says nothing at run time."""


@dataclass(frozen=True, kw_only=True)
class TaskDraft:
    """A task that is not written yet."""

    name: str
    files: Mapping[str, bytes]
    """By path below the task's folder, its task.toml among them."""
    left_out: tuple[str, ...]
    """A sentence for each thing of the source that is not in the task."""


@dataclass(kw_only=True)
class _Parts:
    """What a source says, as far as a task has a word for it."""

    prompt: str
    plugin: str | None = None
    used: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    agent_s: float | None = None
    grading_s: float | None = None
    memory_mib: int | None = None
    cpus: float | None = None
    starter: dict[str, bytes] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def draft_tasks(source: Path, name: str, *, root: Path) -> tuple[TaskDraft, ...]:
    """Return the tasks that a source becomes.

    Args:
        source: A case's or a task's folder, or an evals.json.
        name: The task's name; of several tasks each has its own id after it.
        root: The project root, absolute; plugins are named from there.

    Raises:
        DocumentError: A file cannot be read, or is not of its form.
        TaskError: A Harbor task.toml is no TOML.
        UsageError: The source is of no known form.
    """
    if source.is_file() and source.suffix == ".json":
        return tuple(_evals(source, name, root))
    if (source / HARBOR).is_file():
        return (_drafted(name, _harbor(source)),)
    if (source / CASE).is_file():
        return (_drafted(name, _case(source, root)),)
    raise UsageError(str(source), "is no case that is known here", _KNOWN)


# A case of `claude plugin eval`.


def _case(folder: Path, root: Path) -> _Parts:
    facts, prompt = front_matter(_text(folder / CASE))
    parts = _Parts(prompt=prompt, tags=_tags(facts.get("tags", "")))
    if "timeout_seconds" in facts:
        parts.agent_s = _seconds(facts["timeout_seconds"], where=f"{folder / CASE}")
    for key in facts.keys() - {*_CASE_KEYS}:
        parts.left_out.append(f"{CASE}: {key}, which a run sets here and no task does")
    plugin = _plugin_of(folder)
    parts.plugin = _below(plugin, root) if plugin else None
    if parts.plugin is None:
        parts.left_out.append("its plugin, which does not lie in this project: name it in plugins")
    for path in sorted((folder / "graders").glob("*.md")):
        _grade(parts, path, plugin)
    known = {CASE, "graders"}
    for entry in sorted(folder.iterdir()):
        if entry.name not in known:
            parts.left_out.append(f"{entry.name}: put into starter/ what its workspace begins with")
    parts.left_out.sort()
    return parts


def _grade(parts: _Parts, path: Path, plugin: Path | None) -> None:
    """Take a grader over that asks whether a skill was loaded; no other has a word here."""
    facts, _ = front_matter(_text(path))
    pattern = facts.get("input_match", "")
    skills = [skill for skill in _skills(plugin) if skill in re.split(r"[^\w-]+", pattern)]
    if parts.plugin and facts.get("tool") == "Skill" and len(skills) == 1:
        if facts.get("max") == "0":
            parts.not_used += (skills[0],)
        else:
            parts.used += (skills[0],)
        return
    kind = facts.get("type", "of no type")
    parts.left_out.append(f"grader {path.stem} ({kind}): write a hidden check for it in checks/")


def _skills(plugin: Path | None) -> list[str]:
    found = plugin.glob("skills/*/SKILL.md") if plugin else ()
    return sorted(path.parent.name for path in found)


def _plugin_of(folder: Path) -> Path | None:
    """Return the nearest folder around a case that is a plugin's."""
    for parent in folder.absolute().parents:
        if any((parent / path).is_file() for path in (".claude-plugin/plugin.json", "plugin.json")):
            return parent
    return None


def front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """Return the keys between two lines of `---` at the start of a text, and what follows.

    Values are taken as they stand, without their quotes: lines that are indented belong to the key
    before them, and say no more than that it is there.
    """
    lines = text.splitlines()
    if (
        not lines
        or lines[0].rstrip() != "---"
        or "---" not in (line.rstrip() for line in lines[1:])
    ):
        return {}, text
    end = next(number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---")
    facts = {}
    for line in lines[1:end]:
        key, colon, value = line.partition(":")
        if colon and key == key.strip() and not key.startswith("#"):
            facts[key] = _unquoted(value.strip())
    return facts, "\n".join(lines[end + 1 :]).strip() + "\n"


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def _tags(value: str) -> tuple[str, ...]:
    words = (_unquoted(word.strip()) for word in value.strip("[]").split(","))
    return tuple(word for word in words if is_name(word))


# The skill-creator's evals.json.


def _evals(path: Path, name: str, root: Path) -> Iterator[TaskDraft]:
    document = loads(_bytes(path), where=str(path))
    evals = document.get("evals") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(evals, list) or not evals:
        raise DocumentError(f"{path}: evals", "is no list of evals", _KNOWN)
    skill = path.absolute().parent.parent
    for number, entry in enumerate(evals, start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("prompt"), str):
            raise DocumentError(f"{path}: evals.{number - 1}", "has no prompt", "write one")
        parts = _eval(entry, skill, root, skill_name=document.get("skill_name"))
        own = name if len(evals) == 1 else f"{name}-{entry.get('id', number)}"
        yield _drafted(own, parts)


def _eval(
    entry: Mapping[str, JsonValue], skill: Path, root: Path, *, skill_name: JsonValue
) -> _Parts:
    parts = _Parts(prompt=f"{entry['prompt']}\n")
    plugin = skill.parent.parent if skill.parent.name == "skills" else None
    parts.plugin = _below(plugin, root) if plugin else None
    if parts.plugin is None:
        problem = "which lies in no plugin of this project: name one in plugins and expected.used"
        parts.left_out.append(f"skill {printable(str(skill_name), limit=100)}, {problem}")
    else:
        parts.used = (skill.name,)
    for file in _strings(entry.get("files")):
        source = (skill / file).resolve()
        if source.is_file() and source.is_relative_to(skill.resolve()):
            parts.starter[source.name] = _bytes(source)
        else:
            parts.left_out.append(f"file {printable(file, limit=200)}, which is not in the skill")
    statements = (*_strings(entry.get("expectations")), *_strings(entry.get("assertions")))
    if isinstance(entry.get("expected_output"), str):
        statements = (f"{entry['expected_output']}", *statements)
    for statement in statements:
        told = printable(statement, limit=200)
        parts.left_out.append(f"expectation {told!r}: write a hidden check for it in checks/")
    return parts


def _strings(value: JsonValue) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


# Harbor's task folders.


def _harbor(folder: Path) -> _Parts:
    parts = _Parts(prompt=_text(folder / HARBOR))
    path = folder / TASK_FILE
    if path.is_file():
        data = read_toml(path, where=str(path)).data
        parts.agent_s = _positive(data, "agent", "timeout_sec")
        parts.grading_s = _positive(data, "verifier", "timeout_sec")
        memory = _positive(data, "environment", "memory_mb")
        parts.memory_mib = int(memory) if memory else None
        parts.cpus = _positive(data, "environment", "cpus")
        tags = data.get("metadata", {}).get("tags", ())
        parts.tags = tuple(tag for tag in tags if isinstance(tag, str) and is_name(tag))
    advice = {
        "environment": "put into starter/ what its image holds; tasks here build none",
        "solution": "write its outcome, as files, into solution/",
        "tests": "write a hidden check for each of its tests in checks/",
    }
    for entry in sorted(folder.iterdir()):
        if entry.name not in (HARBOR, TASK_FILE):
            more = advice.get(entry.name, "nothing here has a place for it")
            parts.left_out.append(f"{entry.name}: {more}")
    return parts


def _positive(data: Mapping[str, object], table: str, key: str) -> float | None:
    found = data.get(table)
    value = found.get(key) if isinstance(found, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 < value < math.inf else None


# The task.


def _drafted(name: str, parts: _Parts) -> TaskDraft:
    files = {
        TASK_FILE: "\n".join((*_task_lines(parts), "")).encode(),
        PROMPT_FILE: parts.prompt.encode(),
        **{f"starter/{path}": data for path, data in parts.starter.items()},
    }
    if not parts.starter:
        files["starter/README.md"] = b"# A project\n"
    return TaskDraft(name=name, files=files, left_out=tuple(parts.left_out))


def _task_lines(parts: _Parts) -> Iterator[str]:
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


def _below(folder: Path, root: Path) -> str | None:
    """Return a folder's path from the project root; None for one that does not lie in it."""
    whole = folder.absolute()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else None


def _seconds(value: str, *, where: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        problem = f"is {printable(value, limit=40)}, and no number of seconds"
        raise DocumentError(f"{where}: timeout_seconds", problem, "write a number above 0")
    return seconds


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(str(path), "is not UTF-8", "save it as plain UTF-8") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, _KNOWN) from error
