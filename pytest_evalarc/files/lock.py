"""One holder at a time, across processes and threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

LOOK_S = 0.2
"""How often a waiter looks whether it shall wait any longer."""


class GivenUp(KeyboardInterrupt):
    """Another holder has the lock, and the waiting for it was given up."""


@contextmanager
def locked(path: Path, *, given_up: threading.Event | None = None) -> Iterator[None]:
    """Hold the lock of this path; wait for whoever holds it now.

    The operating system frees it when its holder dies, so a lock file that is merely there
    means nothing. It excludes other threads of this process too.

    Args:
        path: The lock file, in a folder that exists; never a file with content.
        given_up: Set when there is no more time to wait; what is held then stays held.

    Raises:
        GivenUp: The lock is held, and the waiting was given up.
    """
    # Asyncio comes with it, which is much for a process that only collects.
    from filelock import FileLock

    # Whoever ends the block may be another thread than the one that began it.
    lock = FileLock(path, thread_local=False)
    _acquire(lock, given_up)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock of this path unless somebody does already; yield whether it is held now.

    Args:
        path: The lock file, in a folder that exists; never a file with content.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    with suppress(Timeout):
        lock.acquire(timeout=0)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def _acquire(lock: FileLock, given_up: threading.Event | None) -> None:
    if given_up is None:
        lock.acquire()
        return
    from filelock import Timeout

    while not lock.is_locked:
        try:
            lock.acquire(timeout=LOOK_S)
        except Timeout:
            if given_up.is_set():
                raise GivenUp("the waiting was given up") from None
