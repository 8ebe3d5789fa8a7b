"""The plugins of a project, and the skills that they offer."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import Plugin

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"^([A-Za-z][\w-]*):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_HEAD_BYTES = 1 << 16


def plugins_in(folder: Path) -> tuple[Plugin, ...]:
    """Return the plugins of a folder such as `evals/plugins`, by name; none when it is missing.

    A folder whose name is no name of ours cannot be named by a task, and is left out.
    """
    if not folder.is_dir():
        return ()
    return tuple(
        Plugin(name=path.name, root=path)
        for path in sorted(folder.iterdir())
        if path.is_dir() and is_name(path.name)
    )


def skills_of(plugin: Plugin) -> dict[str, Path]:
    """Return the skill folders of a plugin by skill name, sorted.

    A skill is a folder of `skills/` that holds a `SKILL.md`. A plugin folder that holds one
    itself is a single skill, as it lies in a project.
    """
    if (plugin.root / "SKILL.md").is_file():
        return {plugin.name: plugin.root}
    folder = plugin.root / "skills"
    if not folder.is_dir():
        return {}
    return {path.name: path for path in sorted(folder.iterdir()) if (path / "SKILL.md").is_file()}


def front_matter(file: Path) -> dict[str, str] | None:
    """Return what stands at the top of a Markdown file between two lines of three dashes.

    Args:
        file: As a SKILL.md.

    Returns:
        The text after each key of the first level, without quotes; a value on lines of its own is
        empty. None when there is no such part, or the file cannot be read.
    """
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    matter = _FRONT_MATTER.match(head.removeprefix("\ufeff").replace("\r\n", "\n"))
    return {key: value.strip("'\"") for key, value in _KEY.findall(matter[1])} if matter else None
