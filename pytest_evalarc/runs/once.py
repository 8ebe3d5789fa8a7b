"""Produce a document once, whichever process asks first; the single mechanism of runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pytest_evalarc.files.atomic import write_atomic, write_model
from pytest_evalarc.files.lock import locked
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Model

M = TypeVar("M", bound=Model)


def once(
    path: Path,
    model: type[M],
    produce: Callable[[], M],
    *,
    lost: Callable[[BaseException | None], M] | None = None,
) -> M:
    """Return the document at a path, producing it first if it is not there.

    A lock keeps others waiting and an atomic file keeps them from seeing half of it, so it does not
    matter in which process or order the askers come.

    Args:
        path: The document.
        model: What it holds.
        produce: Makes it; called by at most one asker at a time.
        lost: For what must never be done twice: the document to keep when producing it was cut
            off, by the exception given, or by the death of a process (None). Without it, what was
            cut off is simply produced again.

    Raises:
        DocumentError: The document that is there cannot be read; it is never overwritten.
        BaseException: Whatever `produce` raised, after `lost` was written.
    """
    if path.exists():
        return read_model(path, model)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.name}.lock")):
        if path.exists():
            return read_model(path, model)
        if lost is None:
            document = produce()
            write_model(path, document)
            return document
        return _at_most_once(path, produce, lost)


def _at_most_once(
    path: Path, produce: Callable[[], M], lost: Callable[[BaseException | None], M]
) -> M:
    """Produce a document behind a mark that outlives this process, so nobody does it again."""
    begun = path.with_name(f".{path.name}.begun")
    died = begun.exists()
    if not died:
        write_atomic(begun, b"")
    try:
        document = lost(None) if died else produce()
        write_model(path, document)
    except BaseException as error:
        # Where not even this can be written the mark stays, and the next asker settles it.
        with contextlib.suppress(OSError):
            if not path.exists():
                write_model(path, lost(error))
            begun.unlink()
        raise
    begun.unlink(missing_ok=True)
    return document
