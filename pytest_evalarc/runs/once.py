"""Produce a document once, whichever process asks first; the single mechanism of runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pytest_evalarc.errors import DocumentError
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
    given_up: threading.Event | None = None,
    turn: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
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
        given_up: Set when there is no more time to wait for another asker.
        turn: Waits until it may be produced, and is held meanwhile. Whatever it raises leaves the
            document as never begun.

    Raises:
        DocumentError: The document that is there cannot be read, and then it is never
            overwritten; or none can be written, as on a full disk.
        GivenUp: Another asker is at it, and the waiting was given up.
        BaseException: Whatever `produce` raised, after `lost` was written.
    """
    if path.exists():
        return read_model(path, model)
    with contextlib.ExitStack() as held:
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(lock_of(path), given_up=given_up))
        if path.exists():
            return read_model(path, model)
        if lost is None:
            held.enter_context(turn())
            document = produce()
            with _told(path):
                write_model(path, document)
            return document
        if not mark_of(path).exists():
            held.enter_context(turn())
        return _at_most_once(path, produce, lost)


def lock_of(path: Path) -> Path:
    """Return the lock that is held while a document is produced."""
    return path.with_name(f".{path.name}.lock")


def mark_of(path: Path) -> Path:
    """Return the mark of a document that was begun and must never be begun again."""
    return path.with_name(f".{path.name}.begun")


def _at_most_once(
    path: Path, produce: Callable[[], M], lost: Callable[[BaseException | None], M]
) -> M:
    """Produce a document behind a mark that outlives this process, so nobody does it again."""
    begun = mark_of(path)
    died = begun.exists()
    if not died:
        with _told(begun):
            write_atomic(begun, b"")
    try:
        document = lost(None) if died else produce()
        with _told(path):
            write_model(path, document)
    except BaseException as error:
        # Where not even this can be written the mark stays, and the next asker settles it.
        with contextlib.suppress(OSError):
            if not path.exists():
                write_model(path, lost(error))
            begun.unlink()
        raise
    # The document is there and decides from now on, so a mark that cannot be removed harms nobody.
    with contextlib.suppress(OSError):
        begun.unlink()
    return document


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell as a sentence that nothing can be written there; what is produced tells its own."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise DocumentError(str(path), problem, "free that folder, or name another") from error
