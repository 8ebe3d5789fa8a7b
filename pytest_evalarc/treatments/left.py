"""Files that a session could write, read as what they may be: anything."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path, PurePosixPath

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files.folder import READ, Folder
from pytest_evalarc.files.text import printable

_CHUNK = 1 << 20


def read_left(root: Path, path: str, *, limit: int) -> bytes | None:
    """Return a file that a session could write; None when nothing is there.

    No link is followed below the root, and what is no regular file is never opened, so that
    nothing that was planted there blocks, or hands out a file of the harness's own.

    Args:
        root: A folder that the session could not replace.
        path: POSIX path below it.
        limit: Bytes that the file may have.

    Raises:
        SubmissionError: Something else stands there, it is larger, or it cannot be read.
    """
    *folders, name = PurePosixPath(path).parts
    where = printable(path, limit=400)
    try:
        with Folder.at(root) as top, top.descend(tuple(folders)) as folder:
            if not stat.S_ISREG(folder.lstat(name).st_mode):
                raise SubmissionError(where, "is no regular file")
            descriptor = folder.open(name, READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SubmissionError(where, f"cannot be read: {error.strerror or error}") from error
    with FileIO(descriptor) as file:
        # The session is over, yet what was looked at and what was opened may still differ.
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SubmissionError(where, "is no regular file")
        return _bounded(file, where, limit)


def kind_of(root: Path, path: str) -> int | None:
    """Return the file type bits of a path below a root, no link followed; None: nothing there.

    Raises:
        SubmissionError: A folder above it cannot be entered, or is no folder.
    """
    *folders, name = PurePosixPath(path).parts
    try:
        with Folder.at(root) as top, top.descend(tuple(folders)) as folder:
            return stat.S_IFMT(folder.lstat(name).st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        where = printable(path, limit=400)
        raise SubmissionError(where, f"cannot be read: {error.strerror or error}") from error


def names_in(root: Path, path: str) -> tuple[str, ...]:
    """Return the names in a folder that a session could write, sorted; none when it is no folder.

    No link is followed.
    """
    try:
        with (
            Folder.at(root) as top,
            top.descend(PurePosixPath(path).parts) as folder,
        ):
            return tuple(sorted(name for name, _ in folder.scan()))
    except OSError:
        return ()


def _bounded(file: FileIO, where: str, limit: int) -> bytes:
    data = bytearray()
    try:
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > limit:
                raise SubmissionError(where, f"has more than {limit} bytes")
    except OSError as error:
        raise SubmissionError(where, f"cannot be read: {error.strerror or error}") from error
    return bytes(data)
