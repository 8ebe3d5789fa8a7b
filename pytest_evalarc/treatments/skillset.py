"""The skills of a treatment's plugins: what each is called, and how it is copied and compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.errors import EvalArcError, SetupError, SubmissionError
from pytest_evalarc.files.manifest import EntryType, Manifest, is_cache, read_manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import Plugin
from pytest_evalarc.tasks.plugins import skills_of

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"^name:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_HEAD_BYTES = 64 << 10


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One skill of a plugin."""

    name: str
    """Its folder's name, by which tasks and results call it."""
    root: Path
    plugin: str
    title: str
    """The name that its SKILL.md gives it: its folder's, unless its author chose another."""


def skills_among(plugins: Sequence[Plugin]) -> dict[str, Skill]:
    """Return every skill of the plugins by its name.

    Raises:
        SetupError: A skill has no proper name, or two would share one folder.
    """
    skills: dict[str, Skill] = {}
    holders: dict[str, tuple[str, str]] = {}
    for plugin in plugins:
        for name, root in sorted(skills_of(plugin).items()):
            _require_name(name, plugin.name)
            # Names that differ in case alone are one folder on some file systems.
            other, holder = holders.setdefault(name.casefold(), (name, plugin.name))
            if (other, holder) != (name, plugin.name):
                raise SetupError(
                    f"plugins {holder} and {plugin.name}",
                    f"hold skills that share one folder: {other} and {name}",
                    "rename one of the skills",
                )
            title = title_of(root / "SKILL.md") or name
            skills[name] = Skill(name=name, root=root, plugin=plugin.name, title=title)
    return skills


def title_of(file: Path) -> str | None:
    """Return the name that a Markdown file's front matter gives; None when it gives none."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    matter = _FRONT_MATTER.match(head.replace("\r\n", "\n"))
    named = _NAME.search(matter[1]) if matter else None
    return named[1].strip("'\"") or None if named else None


def copied(source: Path, dest: Path, *, skip: Callable[[str], bool] = is_cache) -> Manifest:
    """Copy a folder of a plugin, and return what is in it.

    Links and special files are left out of the copy and not out of the answer, so that a
    comparison finds them missing.

    Raises:
        SetupError: It cannot be read or copied.
    """
    try:
        manifest = read_manifest(source, skip=skip)
        copy_tree(source, manifest, dest)
    except EvalArcError as error:
        raise SetupError(error.where, error.problem, error.hint) from error
    return manifest


def copied_whole(source: Path, dest: Path) -> Manifest:
    """Copy a plugin's folder, and return what is in it.

    Raises:
        SetupError: It cannot be read or copied, or holds what no copy would be the same with.
    """
    manifest = copied(source, dest)
    for entry in manifest.entries:
        if entry.type not in (EntryType.FILE, EntryType.DIR):
            raise SetupError(
                printable(str(source / entry.path), limit=400),
                "is a link or a special file, which no trial gets",
                "a plugin holds regular files and folders alone",
            )
    return manifest


def digest_of(skill: Path, *, skip: Callable[[str], bool] = is_cache) -> str:
    """Return the content digest of what stands at a path; empty when it is no readable folder."""
    try:
        return read_manifest(skill, skip=skip).sha256
    except SubmissionError:
        return ""


def _require_name(skill: str, plugin: str) -> None:
    if not is_name(skill):
        raise SetupError(
            f"plugin {plugin}",
            f"holds a skill whose folder is no name: {printable(skill, limit=100)}",
            "letters, digits, `-`, `_` and `+` make a name",
        )
