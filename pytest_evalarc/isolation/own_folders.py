"""Folders of one harness process that sandboxes are shown; none outlives it for long."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from pytest_evalarc.files.tree import remove_tree

_PREFIX = "pytest-evalarc-"


def make_own_folder(kind: str) -> Path:
    """Make a folder below the system's temporary one, by whose name its owner can be told.

    Raises:
        OSError: It cannot be made.
    """
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-{os.getpid()}-"))


def remove_own_folder(folder: Path) -> None:
    """Remove a folder, as far as that is possible."""
    with contextlib.suppress(OSError):
        remove_tree(folder)


def remove_abandoned(kind: str) -> None:
    """Remove the folders of harness processes that are gone; they cannot do it any more."""
    prefix = f"{_PREFIX}{kind}-"
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        owner = folder.name.removeprefix(prefix).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            remove_own_folder(folder)
