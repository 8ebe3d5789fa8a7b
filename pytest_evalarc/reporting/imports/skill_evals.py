"""The evals.json and the trigger evals of the skill-creator.

Format: anthropics/skills, skill-creator, references/schemas.md. Files in use also hold the list
alone, name one input `input_file`, and call statements `assertions` or `expected_behaviors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.reporting.imports.parts import (
    KNOWN_FORMS,
    Parts,
    below,
    read_bytes,
    shown,
    strings,
)

_STATEMENTS = (
    "expected_output",
    "expected",
    "expectations",
    "assertions",
    "expected_behaviors",
)
"""Keys of an eval that say what a judge would look for: a text, a list of texts, or of objects."""

_TEXTS = ("text", "description", "assertion", "name")
"""Keys of a statement that is an object, of which the first one that is there says it."""

_READ = (
    *_STATEMENTS,
    "id",
    "name",
    "prompt",
    "query",
    "should_trigger",
    "files",
    "input_file",
    "description",
)


def read_evals(path: Path, name: str, root: Path) -> Iterator[tuple[str, Parts]]:
    """Yield the tasks' names with what each eval says.

    Args:
        path: The JSON file, as `<skill>/evals/evals.json`.
        name: Of the only task; several have the eval's id after it, or its number where the id
            is no name.
        root: The project root, absolute; plugins are named from there.

    Raises:
        DocumentError: It cannot be read, or an eval has no prompt.
    """
    document = loads(read_bytes(path), where=str(path))
    evals = document.get("evals") if isinstance(document, dict) else document
    if not isinstance(evals, list) or not evals:
        raise DocumentError(f"{path}: evals", "is no list of evals", KNOWN_FORMS)
    skill_name = document.get("skill_name") if isinstance(document, dict) else None
    for number, entry in enumerate(evals, start=1):
        prompt = _prompt(entry)
        if not isinstance(entry, dict) or prompt is None:
            where = f"{path}: evals.{number - 1}"
            raise DocumentError(where, "has no prompt", "write one")
        parts = _eval(entry, prompt, path.absolute(), root, skill_name=skill_name)
        own = str(entry.get("id", number))
        suffix = own if is_name(own) else str(number)
        yield name if len(evals) == 1 else f"{name}-{suffix}", parts


def _prompt(entry: JsonValue) -> str | None:
    """Return what is asked: a trigger eval calls it the query."""
    found = entry.get("prompt", entry.get("query")) if isinstance(entry, dict) else None
    return found if isinstance(found, str) and found.strip() else None


def _eval(
    entry: Mapping[str, JsonValue], prompt: str, path: Path, root: Path, *, skill_name: JsonValue
) -> Parts:
    parts = Parts(prompt=f"{prompt}\n")
    skill = path.parent.parent
    _take_skill(parts, entry, skill, root, skill_name=skill_name)
    one = entry.get("input_file")
    for file in (*strings(entry.get("files")), *([one] if isinstance(one, str) else ())):
        _take_file(parts, file, path)
    for statement in _statements(entry):
        told = shown(statement)
        parts.left_out.append(f"expectation {told!r}: write a hidden check for it in checks/")
    for key in entry:
        if key not in _READ:
            parts.left_out.append(f"{shown(key)}, for which a task has no word")
    return parts


def _take_skill(
    parts: Parts, entry: Mapping[str, JsonValue], skill: Path, root: Path, *, skill_name: JsonValue
) -> None:
    """Expect the skill to be used, unless the eval says that it must not be."""
    plugin = skill.parent.parent if skill.parent.name == "skills" else None
    parts.plugin = below(plugin, root) if plugin else None
    if parts.plugin is None:
        told = shown(str(skill_name or skill.name))
        problem = "which lies in no plugin of this project: name one in plugins and expected.used"
        parts.left_out.append(f"skill {told}, {problem}")
    elif entry.get("should_trigger") is False:
        parts.not_used = (skill.name,)
    else:
        parts.used = (skill.name,)


def _take_file(parts: Parts, file: str, path: Path) -> None:
    """Put an input beside the prompt, by its own name; it is named from the skill or from evals."""
    told = shown(file)
    skill = path.parent.parent
    sources = [(home / file).resolve() for home in (skill, path.parent)]
    known = [found for found in sources if found.exists() and found.is_relative_to(skill.resolve())]
    if not known:
        parts.left_out.append(f"file {told}, which is not in the skill")
    elif path.resolve().is_relative_to(known[0]):
        parts.left_out.append(f"file {told}, which holds the expectations as well")
    elif known[0].is_dir():
        parts.take_folder(known[0], known[0].name)
    elif known[0].name in parts.starter:
        parts.left_out.append(f"file {told}, beside which another one has the same name")
    else:
        parts.starter[known[0].name] = read_bytes(known[0])


def _statements(entry: Mapping[str, JsonValue]) -> Iterator[str]:
    for key in _STATEMENTS:
        value = entry.get(key)
        for statement in value if isinstance(value, list) else [value]:
            text = _text_of(statement)
            if text:
                yield text


def _text_of(statement: JsonValue) -> str:
    if isinstance(statement, dict):
        return next((_text_of(statement[key]) for key in _TEXTS if key in statement), "")
    return statement if isinstance(statement, str) else ""
