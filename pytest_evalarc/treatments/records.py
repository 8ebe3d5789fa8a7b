"""What hooks recorded of themselves, in a folder that the agent can write too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.treatments.left import read_left

MOST_BYTES = 64 << 20
"""Of all records of a session: each may hold what a tool was given and what it answered."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """The records of a session's hooks; supporting evidence, and never proof by itself."""

    runs: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    """By event, whether each recorded run succeeded, in the order of the file."""
    flaw: str = ""
    """Why they cannot be relied on, as a sentence; empty when they can be read whole."""


def read_records(
    root: Path, path: str, as_run: Callable[[dict[str, JsonValue]], tuple[str, bool]]
) -> Records:
    """Return what a file of JSON lines records; one that is not there records nothing.

    Args:
        root: A folder that the session could not replace.
        path: The file, as a POSIX path below it.
        as_run: Returns event and success of one record, or raises ValueError or KeyError.
    """
    try:
        data = read_left(root, path, limit=MOST_BYTES)
    except EvalArcError as error:
        return Records(flaw=str(error))
    runs: dict[str, tuple[bool, ...]] = {}
    lines = (data or b"").split(b"\n")
    torn = lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            record = loads(line, where=path)
            if not isinstance(record, dict):
                raise ValueError("no object")
            event, succeeded = as_run(record)
        except (EvalArcError, ValueError, KeyError, TypeError):
            return Records(runs=runs, flaw=f"{path}: line {number} is no record of a hook")
        runs[event] = (*runs.get(event, ()), succeeded)
    return Records(runs=runs, flaw=f"{path}: its last line is torn" if torn else "")
