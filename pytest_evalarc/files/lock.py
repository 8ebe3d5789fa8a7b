"""One holder at a time, across processes and threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of this path; wait for whoever holds it now.

    The operating system frees it when its holder dies, so a lock file that is merely there
    means nothing. It excludes other threads of this process too.

    Args:
        path: The lock file, in a folder that exists; never a file with content.
    """
    with FileLock(path):
        yield
