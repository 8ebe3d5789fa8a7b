"""Add to a file that other programs add to as well."""

from __future__ import annotations

import os
from pathlib import Path


def append_text(path: Path, text: str) -> None:
    """Add a text at the end of a file, as UTF-8; what stands there already is left as it is.

    Args:
        path: The file; made if it is not there. Its folder must exist.
        text: What to add, in one write.

    Raises:
        OSError: It could not be written.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    with open(descriptor, "ab") as file:  # noqa: PTH123 - a descriptor has no path.
        file.write(text.encode())
