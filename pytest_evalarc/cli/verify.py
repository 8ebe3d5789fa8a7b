"""`pytest-evalarc verify`: whether documents agree with their own rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.recount import Disagreement, EditedError
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.text import printable
from pytest_evalarc.reporting.verify import documents_in, verify

_FIELDS_TOLD = 20


def run_verify(reports: Iterable[Path]) -> Status:
    """Print of each document whether it agrees; one that does not keeps none from being looked at.

    A folder stands for all documents below it; of those only what disagrees has a line of its own.

    Returns:
        The gravest status: refused for a document that could not be verified, then no for one
        that disagrees.
    """
    return max(_all_verified(path) if path.is_dir() else _verified(path) for path in reports)


def _all_verified(folder: Path) -> Status:
    try:
        documents = documents_in(folder)
    except EvalArcError as error:
        return _refused(error)
    statuses = [_verified(path, is_one_of_many=True) for path in documents]
    agreeing = statuses.count(Status.DONE)
    print(printable(f"{folder}: {agreeing} of {len(documents)} documents agree with their rows"))
    return max(statuses)


def _verified(path: Path, *, is_one_of_many: bool = False) -> Status:
    try:
        found = verify(path)
    except EvalArcError as error:
        return _refused(error)
    lines = _lines(found) if found or is_one_of_many else ["agrees with its rows"]
    for line in lines:
        print(printable(f"{path}: {line}"))
    return Status.NO if found else Status.DONE


def _refused(error: EvalArcError) -> Status:
    print(f"pytest-evalarc: {printable(str(error))}", file=sys.stderr)
    return Status.NO if isinstance(error, EditedError) else Status.REFUSED


def _lines(found: tuple[Disagreement, ...]) -> list[str]:
    more = len(found) - _FIELDS_TOLD
    lines = [str(disagreement) for disagreement in found[:_FIELDS_TOLD]]
    return [*lines, f"and {more} more fields"] if more > 0 else lines
