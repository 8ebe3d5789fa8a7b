"""Hostile things that a submission can leave in a folder."""

from __future__ import annotations

import os
from pathlib import Path


def make_deep(folder: Path, *, levels: int) -> None:
    """Make folders in each other, deeper than any path can name."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)


def make_sparse(path: Path, *, size: int, data_at: int | None = None) -> None:
    """Make a file of that apparent size in bytes, with one written byte at most."""
    with path.open("wb") as file:
        if data_at is not None:
            file.seek(data_at)
            file.write(b"x")
        file.truncate(size)
