"""Proof, before a client starts, that a trial holds nothing but what was planned."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.text import printable

CLIENT_CONFIG = (
    ".agents",
    ".claude",
    ".claude.json",
    ".codex",
    ".copilot",
    ".cursor",
    ".gemini",
    ".symposium",
)
"""Where agents keep configuration, skills, hooks and memory below a home folder."""


def require_untouched_home(home: Path) -> None:
    """Refuse a home that already configures a client: one arm would get what the other lacks.

    Raises:
        SetupError: Configuration is there; names it.
    """
    for name in CLIENT_CONFIG:
        if os.path.lexists(home / name):
            raise SetupError(
                str(home / name),
                "is client configuration that was there before the client started",
                "a trial's home starts without any",
            )


def require_no_skills(project: Path, skill_folder: str) -> None:
    """Refuse a project that already offers skills, or whose skill folder is elsewhere.

    Args:
        project: The trial's copy of the starter.
        skill_folder: Where the client looks for skills, as a POSIX path below the project.

    Raises:
        SetupError: The folder holds something, or it or a folder above it is not a folder.
    """
    folder = project
    for part in PurePosixPath(skill_folder).parts:
        folder = folder / part
        if not os.path.lexists(folder):
            return
        if folder.is_symlink() or not folder.is_dir():
            raise SetupError(str(folder), "is not a folder of its own", "make the starter plain")
    if found := sorted(os.listdir(folder)):
        raise SetupError(
            str(folder),
            f"must be empty before the client starts, and holds {printable(found[0], limit=100)}",
            "skills reach a trial through plugins, never through the starter",
        )
