"""Where a command puts the document that it made."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.base import Model
from pytest_evalarc.reporting.documents import write_whole


def put(document: Model, output: Path | None) -> None:
    """Write a document to a file, or print it.

    Raises:
        DocumentError: The file cannot be written.
    """
    if output is not None:
        write_whole(output, document)
        return
    # As bytes: a document is UTF-8 whatever the terminal is.
    sys.stdout.buffer.write(dumps(document.to_json()))
    sys.stdout.flush()


def require_other_files(inputs: Iterable[Path], outputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over what is read, or two documents into one file.

    Args:
        inputs: What is read.
        outputs: What is written, by option; None for an option that was not given.

    Raises:
        UsageError: Names the option.
    """
    taken = {os.path.realpath(path) for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        if os.path.realpath(path) in taken:
            raise UsageError(f"{option} {path}", "is another file of this call", "name a new one")
        taken.add(os.path.realpath(path))
