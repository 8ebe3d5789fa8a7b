"""Files that are there whole or not at all, whatever dies meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pytest_evalarc.files.strict import document_bytes

if TYPE_CHECKING:
    from pytest_evalarc.model.base import Model


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that every reader sees the old content or the new, never a part.

    Args:
        path: The file; its folder must exist. A link at this path is replaced, not followed.
        data: The whole content.

    Raises:
        OSError: The file could not be written, as on a full disk; it names the file, and nothing
            is left behind.
    """
    is_written = False
    try:
        while not is_written:
            is_written = _write(path.with_name(f".{secrets.token_hex(8)}.tmp"), data, path)
        _sync_folder(path.parent)
    except OSError as error:
        # What a descriptor alone was asked names no file, and the others one that nobody knows.
        error.filename, error.filename2 = str(path), None
        raise


def write_model(path: Path, model: Model) -> None:
    """Write a document atomically, as its plain JSON.

    Raises:
        OSError: The file could not be written; nothing is left behind.
    """
    write_atomic(path, document_bytes(model))


def is_begun(name: str) -> bool:
    """Return whether a file of this name is one that is being written, or that was died over."""
    return re.fullmatch(r"\.[0-9a-f]{16}\.tmp", name) is not None


def sweep(folder: Path) -> None:
    """Remove the files in a folder that processes died over while they wrote them.

    What is being written now stays. Nothing below the folder is looked at.

    Args:
        folder: The folder; one that is not there or cannot be read has nothing to be removed.
    """
    with contextlib.suppress(OSError):
        for path in [path for path in folder.iterdir() if is_begun(path.name)]:
            with contextlib.suppress(OSError):
                _remove_abandoned(path)


def _write(temporary: Path, data: bytes, path: Path) -> bool:
    """Write a new file and let it take the place of another; False when it was swept away first."""
    try:
        with temporary.open("xb") as file:
            if not _claim(file):
                return False
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            # Whoever closes it gives it up. Windows renames no open file, and nobody sweeps there.
            if os.name != "nt":
                temporary.replace(path)
        if os.name == "nt":
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return True


def _claim(file: BinaryIO) -> bool:
    """Hold a file that is being written, for as long as it is open; whether it is still there."""
    if os.name == "nt":
        return True
    import fcntl

    # A file system without locks has none for whoever sweeps either, and keeps what is there.
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    return os.fstat(file.fileno()).st_nlink > 0


def _remove_abandoned(path: Path) -> None:
    """Remove a file that nobody holds.

    Raises:
        OSError: Somebody does, or it is no regular file.
    """
    if os.name == "nt":
        return
    import fcntl

    if not stat.S_ISREG(path.lstat().st_mode):
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    # A rename is durable only once its folder is; Windows has no such call and needs none.
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
