"""The program of `codex`: what of an installation a session runs from."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.clients.program import copy_program
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.manifest import TreeLimits, read_manifest
from pytest_evalarc.files.tree import copy_tree

PROGRAM = Path("bin", "codex")
"""The program in a package."""

_PACKAGE = "codex-package.json"
"""Stands in a package beside `bin`, and says where its other programs are."""
_VOICE = "codex-resources/voice"
_LIMITS = TreeLimits(bytes=4 << 30)


def stage(program: Path, folder: Path) -> None:
    """Copy a program into a folder, where `staged_in` finds it.

    A package keeps its order: the client looks for the host of its scripts, for its search
    program and for its sandbox in the folders beside its own.

    Args:
        program: The program, links resolved.
        folder: An empty folder.

    Raises:
        SubmissionError: Something of it cannot be read.
        InfrastructureError: It cannot be copied.
    """
    package = program.parent.parent
    if program == package / PROGRAM and (package / _PACKAGE).is_file():
        copy_tree(package, read_manifest(package, limits=_LIMITS, skip=_is_left_out), folder)
        return
    copy_program(program, folder / PROGRAM.parent)


def staged_in(folder: Path) -> Path:
    """Return the program of a folder that was staged.

    Raises:
        SetupError: There is none.
    """
    programs = folder / PROGRAM.parent
    found = sorted(programs.iterdir()) if programs.is_dir() else []
    if folder / PROGRAM in found:
        return folder / PROGRAM
    if len(found) != 1:
        hint = "start a new batch, which stages it anew"
        raise SetupError(str(folder), "does not hold the program of codex", hint)
    return found[0]


def _is_left_out(path: str) -> bool:
    """Whether a part of a package is none that a session without a person needs: its voice."""
    return path == _VOICE
