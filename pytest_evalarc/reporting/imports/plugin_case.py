"""A case of `claude plugin eval`: prompt.md, case.yaml and graders/.

Format: code.claude.com, plugin evals. What prompt.md says goes before case.yaml, and the graders of
both count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.text import printable
from pytest_evalarc.reporting.imports.parts import (
    CASE,
    CASE_YAML,
    Parts,
    below,
    positive,
    read_text,
    shown,
    strings,
)
from pytest_evalarc.reporting.imports.yaml_text import front_matter, read_yaml

_TOLD = ("schema_version", "name", "description", "tags", "expected_outcome")
"""Keys of a case that are carried over, or say nothing at run time."""

_READ = (*_TOLD, "context", "execution", "graders", "plugins")
"""Keys of case.yaml that are looked at."""

Facts = Mapping[str, object]


def read_case(folder: Path, root: Path) -> Parts:
    """Return what a case says.

    Args:
        folder: The case's folder, with prompt.md, case.yaml or both.
        root: The project root, absolute; plugins are named from there.

    Raises:
        DocumentError: A file cannot be read, is no YAML, or says nothing that can be asked.
        UsageError: PyYAML is not installed, and a file needs it.
    """
    facts, prompt = _prompt_file(folder / CASE)
    document = _case_yaml(folder / CASE_YAML)
    execution = _table(document, "execution")
    parts = Parts(prompt=_prompt(folder, prompt, execution))
    parts.take_tags(facts.get("tags", document.get("tags")))
    _take_deadline(parts, folder, facts, execution)
    plugin = _plugin_of(folder)
    parts.plugin = below(plugin, root) if plugin else None
    if parts.plugin is None:
        parts.left_out.append("its plugin, which does not lie in this project: name it in plugins")
    for name, grader in _graders(folder, document):
        _take_grader(parts, name, grader, plugin)
    _take_context(parts, folder, plugin, _table(document, "context"))
    parts.left_out.extend(_of_a_run(facts, document, execution))
    _tell_files(parts, folder, _table(document, "context"))
    parts.left_out.sort()
    return parts


def _prompt_file(path: Path) -> tuple[Facts, str]:
    if not path.exists():
        return {}, ""
    return front_matter(read_text(path), where=str(path))


def _case_yaml(path: Path) -> Facts:
    return read_yaml(read_text(path), where=str(path)) if path.exists() else {}


def _table(document: Facts, key: str) -> Facts:
    found = document.get(key)
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


def _prompt(folder: Path, body: str, execution: Facts) -> str:
    if body.strip():
        return body
    found = execution.get("prompt")
    if not isinstance(found, str) or not found.strip():
        hint = f"write it into {CASE}, or as execution.prompt into {CASE_YAML}"
        raise DocumentError(str(folder), "has no prompt", hint)
    return f"{found.strip()}\n"


def _take_deadline(parts: Parts, folder: Path, facts: Facts, execution: Facts) -> None:
    for where, found in (
        (f"{folder / CASE}: timeout_seconds", facts.get("timeout_seconds")),
        (f"{folder / CASE_YAML}: execution.timeout_seconds", execution.get("timeout_seconds")),
    ):
        if found is None:
            continue
        parts.agent_s = positive(found)
        if parts.agent_s is None:
            problem = f"is {printable(str(found), limit=40)}, and no number of seconds"
            raise DocumentError(where, problem, "write a number above 0")
        return


def _of_a_run(facts: Facts, document: Facts, execution: Facts) -> Iterator[str]:
    """Yield a sentence for each key that says how to run, and not what is asked."""
    run = "which a run sets here and no task does"
    for key in facts.keys() - {*_TOLD, "timeout_seconds"}:
        yield f"{CASE}: {shown(key)}, {run}"
    for key in document.keys() - {*_READ}:
        yield f"{CASE_YAML}: {shown(key)}, {run}"
    for key in execution.keys() - {"prompt", "timeout_seconds"}:
        yield f"{CASE_YAML}: execution.{shown(key)}, {run}"
    for named in strings(document.get("plugins")):
        told = shown(named)
        yield f"{CASE_YAML}: plugin {told}: add its folder to plugins"


# Graders.


def _graders(folder: Path, document: Facts) -> Iterator[tuple[str, Facts]]:
    """Yield the graders of a case by name, those of case.yaml first."""
    found = document.get("graders")
    for number, grader in enumerate(found if isinstance(found, list) else (), start=1):
        if isinstance(grader, dict):
            yield str(grader.get("name", number)), {str(k): v for k, v in grader.items()}
    for path in sorted((folder / "graders").glob("*.md")):
        facts, _ = front_matter(read_text(path), where=str(path))
        # A text without front matter is a note between the graders.
        if facts:
            yield path.stem, facts


def _take_grader(parts: Parts, name: str, grader: Facts, plugin: Path | None) -> None:
    """Take a grader over that asks whether a skill was loaded; no other has a word here."""
    skills = _skills_asked_for(grader, _skills(plugin)) if parts.plugin else ()
    if skills and grader.get("max") == 0:
        parts.not_used += skills
    # Without a bound it need not be used, and without its name any of them will do.
    elif len(skills) == 1 and grader.get("min") != 0:
        parts.used += skills
    else:
        kind = grader.get("type", "of no type")
        told = f"grader {shown(name)} ({shown(str(kind))})"
        parts.left_out.append(f"{told}: write a hidden check for it in checks/")


def _skills_asked_for(grader: Facts, skills: tuple[str, ...]) -> tuple[str, ...]:
    if grader.get("type") != "tool_used" or grader.get("tool") != "Skill":
        return ()
    pattern = grader.get("input_match")
    if pattern is None:
        return skills
    named = re.split(r"[^\w-]+", str(pattern))
    return tuple(skill for skill in skills if skill in named)


def _skills(plugin: Path | None) -> tuple[str, ...]:
    found = plugin.glob("skills/*/SKILL.md") if plugin else ()
    return tuple(sorted(path.parent.name for path in found))


def _plugin_of(folder: Path) -> Path | None:
    """Return the nearest folder around a case that is a plugin's."""
    for parent in folder.absolute().parents:
        if any((parent / path).is_file() for path in (".claude-plugin/plugin.json", "plugin.json")):
            return parent
    return None


# What a run begins with.


def _take_context(parts: Parts, folder: Path, plugin: Path | None, context: Facts) -> None:
    """Put folders that the case may read into the starter, and tell what a script would make."""
    for entry in strings(context.get("add_dirs")):
        _take_readable(parts, folder, plugin, entry)
    script, history = context.get("scaffold_script"), context.get("history_file")
    if script is not None:
        told = shown(str(script))
        parts.left_out.append(f"context.scaffold_script {told}: put into starter/ what it makes")
    if history is not None:
        told = shown(str(history))
        problem = "an earlier conversation, and a trial here begins with the prompt"
        parts.left_out.append(f"context.history_file {told}: {problem}")


def _take_readable(parts: Parts, folder: Path, plugin: Path | None, entry: str) -> None:
    told = shown(entry)
    source = (folder / entry).resolve()
    homes = [home.resolve() for home in (folder, plugin) if home is not None]
    if not source.is_dir() or not any(source.is_relative_to(home) for home in homes):
        problem = "is no folder of the case or its plugin"
        parts.left_out.append(f"context.add_dirs {told}, which {problem}")
        return
    if folder.resolve().is_relative_to(source):
        parts.left_out.append(f"context.add_dirs {told}, which holds the graders as well")
        return
    name = PurePosixPath(*(part for part in PurePosixPath(entry).parts if part not in ("..", "/")))
    place = str(name) if name.parts else source.name
    parts.take_folder(source, place)
    if place != str(PurePosixPath(entry)):
        parts.left_out.append(f"context.add_dirs {told}: its files are at {place} of the workspace")


def _tell_files(parts: Parts, folder: Path, context: Facts) -> None:
    """Tell each entry of the case's folder that nothing has spoken of."""
    named = [str(context.get(key, "")) for key in ("scaffold_script", "history_file")]
    spoken = {PurePosixPath(path).parts[0] for path in named if PurePosixPath(path).parts}
    taken = {PurePosixPath(path).parts[0] for path in parts.starter}
    for entry in sorted(folder.iterdir()):
        if entry.name not in {CASE, CASE_YAML, "graders", "mocks", *spoken, *taken}:
            advice = "put into starter/ what its workspace begins with"
            parts.left_out.append(f"{shown(entry.name)}: {advice}")
    for name in ("mocks", "../mocks"):
        if (folder / name).is_dir():
            parts.left_out.append(f"{name}: answers of MCP servers, which are not played here")
