"""How a document of results is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_atomic, write_model
from pytest_evalarc.model.base import Model


def write_whole(path: Path, document: Model) -> Path:
    """Write a document whole and return its path.

    Raises:
        DocumentError: It cannot be written, as on a full disk.
    """
    with _told(path):
        write_model(path, document)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a text whole, as UTF-8, and return its path.

    Raises:
        DocumentError: It cannot be written, as on a full disk.
    """
    return write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> Path:
    """Write what another program reads, whole, and return its path.

    Raises:
        DocumentError: It cannot be written, as on a full disk.
    """
    with _told(path):
        write_atomic(path, data)
    return path


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise DocumentError(str(path), problem) from error
