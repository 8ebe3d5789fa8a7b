"""Proof, before a client starts, that a trial holds nothing but what was planned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from pytest_evalarc.clients.protocol import Needs, Watched
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.snapshot import ABSENT, snapshot

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

CARGO_AGENTS = "cargo-agents"
"""Symposium's program, by the name under which its hooks call it."""


def require_fresh(
    layout: RunLayout, needs: Needs, *, treated: bool, env: Mapping[str, str]
) -> None:
    """Prove of a trial that nothing reaches its session which nobody planned.

    Args:
        layout: The trial's folders.
        needs: What the client looks for, and where.
        treated: Whether a treatment is put in place afterwards.
        env: The environment of the session to come, without the client's credentials.

    Raises:
        SetupError: Something is already there; names it.
    """
    require_bare_machine(needs.places.machine)
    require_untouched_home(layout.home)
    require_no_skills(layout.project, needs.skill_folder)
    require_no_entries(layout, needs.places.watched)
    if not treated:
        require_unreachable(CARGO_AGENTS, env.get("PATH", ""), cwd=layout.project)


def require_bare_machine(places: tuple[Path, ...]) -> None:
    """Refuse a machine that configures a client for every user: it would configure both arms.

    Args:
        places: What the client reads there; each must be absent, or an empty folder.

    Raises:
        SetupError: Something is there, or cannot be looked into; names it.
    """
    for place in places:
        try:
            found = _what_is_at(place)
        except OSError as error:
            found = f"cannot be looked into: {error.strerror or error}"
        if found:
            raise SetupError(
                printable(str(place), limit=400),
                found,
                "it reaches every session of the client on this machine: move it away",
            )


def require_no_entries(layout: RunLayout, watched: tuple[Watched, ...]) -> None:
    """Refuse hooks, servers and plugins that a fresh trial has been given by someone.

    Raises:
        SetupError: An entry is there, or cannot be read; names its file and key.
    """
    for place, state in snapshot(layout, watched).items():
        if state != ABSENT:
            raise SetupError(
                printable(f"{layout.root}/{place}", limit=400),
                "is there before anything was put in place",
                "a trial starts without hooks, servers and plugins of its own",
            )


def require_unreachable(program: str, path: str, *, cwd: Path) -> None:
    """Refuse a PATH that leads to a program of a treatment, were it by a link.

    Args:
        program: The bare name under which hooks call it.
        path: The session's PATH.
        cwd: Where the session starts; an empty or relative folder of PATH is meant from there.

    Raises:
        SetupError: It is there; names where, and where that leads.
    """
    for folder in path.split(os.pathsep) if path else ():
        found = cwd / folder / program
        if os.path.lexists(found):
            real = Path(os.path.realpath(found))
            leads = "" if real == found else f", and leads to {printable(str(real), limit=400)}"
            raise SetupError(
                printable(str(found), limit=400),
                f"would be found by a session that must not have it{leads}",
                "take it out of that folder, or the folder off PATH",
            )


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


def _what_is_at(place: Path) -> str:
    """Return what stands in the way, or an empty string.

    Raises:
        OSError: It cannot be told.
    """
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if place.is_symlink() or not place.is_dir():
        return "is configuration of the whole machine"
    names = sorted(os.listdir(place))
    return f"holds {printable(names[0], limit=100)}" if names else ""
