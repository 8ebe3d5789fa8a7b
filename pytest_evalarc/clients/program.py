"""Programs of the host that clients are started from."""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.manifest import Entry, EntryType, Manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree


def find_program(name: str) -> Path:
    """Return where a program is on this host: an absolute path whose folders are no links.

    Its last part stays as it was found: some programs go by the name of a link to them.

    Args:
        name: A name on PATH, or an absolute path.

    Raises:
        SetupError: It is neither, or nothing there can be executed.
    """
    where = f"program {printable(name, limit=400)}"
    if os.sep in name and not Path(name).is_absolute():
        raise SetupError(where, "is a relative path", "write a name on PATH or an absolute path")
    found = shutil.which(name)
    if found is None:
        problem = "is not there, or cannot be executed" if os.sep in name else "is not on PATH"
        raise SetupError(where, problem, "install it, or write its absolute path")
    folder, last = os.path.split(os.path.abspath(found))  # noqa: PTH100 - no link is followed.
    return Path(os.path.realpath(folder), last)


def copy_program(program: Path, folder: Path) -> None:
    """Copy one program into a folder, alone: what lies beside it may be anybody's.

    Args:
        program: The program itself, links resolved.
        folder: Where the copy gets the same name; it is made when it is not there.

    Raises:
        SubmissionError: It cannot be read, or is replaced meanwhile.
        InfrastructureError: It cannot be copied.
    """
    size = program.stat().st_size
    entry = Entry(path=program.name, type=EntryType.FILE, mode=0o755, size=size)
    copy_tree(program.parent, Manifest((entry,)), folder)


def program_digest(path: Path) -> str:
    """Return the digest of a program's file, links followed.

    Raises:
        OSError: It cannot be read.
    """
    status = path.stat()
    # Agents update themselves: a file that was replaced is read again.
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache
def _digest(path: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
