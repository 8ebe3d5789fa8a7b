"""How a document of results is written."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.model.base import Model


def write_whole(path: Path, document: Model) -> Path:
    """Write a document whole and return its path.

    Raises:
        DocumentError: It cannot be written, as on a full disk.
    """
    try:
        write_model(path, document)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise DocumentError(str(path), problem) from error
    return path
