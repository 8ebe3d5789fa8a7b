"""`pytest-evalarc verify`: whether documents agree with their own rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.recount import Disagreement, EditedError
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.text import printable
from pytest_evalarc.reporting.verify import verify

_FIELDS_TOLD = 20


def run_verify(reports: Iterable[Path]) -> Status:
    """Print of each document whether it agrees; one that does not keeps none from being looked at.

    Returns:
        The gravest status: refused for a document that could not be verified, then no for one
        that disagrees.
    """
    return max(_verified(path) for path in reports)


def _verified(path: Path) -> Status:
    try:
        found = verify(path)
    except EvalArcError as error:
        print(f"pytest-evalarc: {printable(str(error))}", file=sys.stderr)
        return Status.NO if isinstance(error, EditedError) else Status.REFUSED
    for line in _lines(found):
        print(printable(f"{path}: {line}"))
    return Status.NO if found else Status.DONE


def _lines(found: tuple[Disagreement, ...]) -> Iterable[str]:
    if not found:
        return ("agrees with its rows",)
    more = len(found) - _FIELDS_TOLD
    lines = [str(disagreement) for disagreement in found[:_FIELDS_TOLD]]
    return [*lines, f"and {more} more fields"] if more > 0 else lines
