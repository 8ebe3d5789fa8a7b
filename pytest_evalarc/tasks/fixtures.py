"""Fixtures: folders that a task depends on, copied beside its project."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_evalarc.errors import nearest
from pytest_evalarc.model.task import Plugin
from pytest_evalarc.tasks.fields import Table, described
from pytest_evalarc.tasks.plugins import plugins_in
from pytest_evalarc.tasks.problems import Problems, shown_path
from pytest_evalarc.tasks.trees import read_tree

_SKILL_FOLDERS = ("skills", ".agents/skills")


def read_fixtures(top: Table, folder: Path, *, root: Path) -> tuple[Plugin, ...]:
    """Return the fixtures that a task names, each checked as a tree.

    Args:
        top: The task's task.toml.
        folder: Where fixtures are.
        root: The project root, above which no Cargo workspace is looked for.
    """
    known = {fixture.name: fixture for fixture in plugins_in(folder)}
    found = []
    for name in top.names("fixtures"):
        if name not in known:
            problem = f"names {described(name)}, which is not in {shown_path(folder, root)}"
            top.tell("fixtures", problem, nearest(name, tuple(known)) or "add the folder")
            continue
        found.append(known[name])
        _check_fixture(known[name].root, top.problems, root)
    return tuple(found)


def _check_fixture(fixture: Path, problems: Problems, root: Path) -> None:
    read_tree(fixture, problems, caches=True)
    for name in _SKILL_FOLDERS:
        if (fixture / name).is_dir():
            hint = "move it into a plugin: a fixture offers no skill"
            problems.at_path(fixture / name, "is a skill folder inside a fixture", hint)
    workspace = _workspace_of(fixture, root)
    if workspace is not None:
        problem = f"belongs to the Cargo workspace of {shown_path(workspace, root)}"
        problems.at_path(fixture, problem, "leave it out of `members`, or add it to `exclude`")


def _workspace_of(fixture: Path, root: Path) -> Path | None:
    """Return the Cargo.toml whose workspace a crate is a member of, or None."""
    own = _cargo(fixture / "Cargo.toml")
    if own is None or "workspace" in own:
        return None
    named = own.get("package", {}).get("workspace")
    if isinstance(named, str):
        return fixture / named / "Cargo.toml"
    for parent in fixture.parents:
        if not parent.is_relative_to(root):
            return None
        workspace = (_cargo(parent / "Cargo.toml") or {}).get("workspace")
        if isinstance(workspace, dict):
            return parent / "Cargo.toml" if _is_member(fixture, parent, workspace) else None
    return None


def _is_member(fixture: Path, base: Path, workspace: dict[str, Any]) -> bool:
    parts = fixture.relative_to(base).parts
    excluded = (Path(path).parts for path in workspace.get("exclude", []))
    if any(parts[: len(prefix)] == prefix for prefix in excluded):
        return False
    members = (Path(path).parts for path in workspace.get("members", []))
    return any(
        len(globs) == len(parts) and all(map(fnmatchcase, parts, globs)) for globs in members
    )


def _cargo(path: Path) -> dict[str, Any] | None:
    """Return a Cargo.toml; None where there is none, and nothing where cargo is to complain."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
