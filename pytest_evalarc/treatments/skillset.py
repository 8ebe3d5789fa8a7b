"""The skills of a treatment's plugins: what each is called, and how it is copied and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.errors import EvalArcError, SetupError, SubmissionError
from pytest_evalarc.files.manifest import EntryType, Manifest, is_cache, read_manifest
from pytest_evalarc.files.text import in_line
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import Plugin
from pytest_evalarc.tasks.plugins import front_matter, skills_of


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One skill of a plugin."""

    name: str
    """Its folder's name, by which tasks and results call it."""
    root: Path
    plugin: str
    place: str
    """Where it lies in its plugin, as a POSIX path; `.` for a plugin that is one skill."""
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
            skills[name] = Skill(
                name=name,
                root=root,
                plugin=plugin.name,
                place=root.relative_to(plugin.root).as_posix(),
                title=title_of(root / "SKILL.md") or name,
            )
    return skills


def names_of(skill: Skill, among: Mapping[str, Skill], *, prefix: str = "") -> frozenset[str]:
    """Return what a client may be told to load one skill by.

    Args:
        skill: The skill.
        among: All skills that are offered beside it, by name.
        prefix: What the client may put before it, as `house:`; its bare names stay known.
    """
    titles = [other.title for other in among.values()]
    bare = {skill.name}
    # What two skills call themselves tells neither.
    if titles.count(skill.title) == 1 and among.get(skill.title, skill) is skill:
        bare.add(skill.title)
    return frozenset({*bare, *(f"{prefix}{name}" for name in (skill.name, skill.title))})


def title_of(file: Path) -> str | None:
    """Return the name that a Markdown file's front matter gives; None when it gives none."""
    return (front_matter(file) or {}).get("name") or None


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
                in_line(str(source / entry.path), limit=400),
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


def is_mark(path: str) -> bool:
    """Whether a path of an installed skill is what a sync adds to it, or a cache."""
    return path in (".symposium", ".gitignore") or is_cache(path)


def _require_name(skill: str, plugin: str) -> None:
    if not is_name(skill):
        raise SetupError(
            f"plugin {plugin}",
            f"holds a skill whose folder is no name: {in_line(skill, limit=100)}",
            "letters, digits, `-`, `_` and `+` make a name",
        )
