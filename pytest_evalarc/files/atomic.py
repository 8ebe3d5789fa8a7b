"""Files that are there whole or not at all, whatever dies meanwhile."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.files.strict import document_bytes

if TYPE_CHECKING:
    from pytest_evalarc.model.base import Model


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that every reader sees the old content or the new, never a part.

    Args:
        path: The file; its folder must exist. A link at this path is replaced, not followed.
        data: The whole content.

    Raises:
        OSError: The file could not be written, as on a full disk; nothing is left behind.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def write_model(path: Path, model: Model) -> None:
    """Write a document atomically, as its plain JSON.

    Raises:
        OSError: The file could not be written; nothing is left behind.
    """
    write_atomic(path, document_bytes(model))


def _sync_folder(folder: Path) -> None:
    # A rename is durable only once its folder is; Windows has no such call and needs none.
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
