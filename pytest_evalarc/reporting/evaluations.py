"""Evaluations from wherever they were copied to, read for comparing them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pytest_evalarc.counting.recount import of_evaluation, refuse
from pytest_evalarc.errors import DocumentError, EvalArcError
from pytest_evalarc.files.strict import as_model, check_version, dumps, loads, read_model
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.trajectory import Checkpoint


def read_evaluation_file(path: Path) -> EvaluationDoc:
    """Return an evaluation.json that agrees with its own rows.

    Raises:
        DocumentError: It cannot be read, or says otherwise than its rows.
    """
    evaluation = read_model(path, EvaluationDoc)
    _require_own_rows(evaluation, where=str(path))
    return evaluation


def read_checkpoints(path: Path) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a JSON array of `elapsed_seconds` and `evaluation`.

    Raises:
        DocumentError: It cannot be read, is no such array, or an evaluation in it is none that
            agrees with its own rows.
    """
    try:
        value = loads(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, "name a file of checkpoints") from error
    if not isinstance(value, list):
        raise DocumentError(str(path), "is no JSON array", "list the checkpoints in one")
    return tuple(
        _checkpoint(dumps(entry), where=f"{path}: checkpoint {number}")
        for number, entry in enumerate(value, start=1)
    )


@contextlib.contextmanager
def told_of(where: str) -> Iterator[None]:
    """Say in every error of a block which document it is about."""
    try:
        yield
    except EvalArcError as error:
        raise type(error)(f"{where}: {error.where}", error.problem, error.hint) from error


def _checkpoint(data: bytes, *, where: str) -> Checkpoint:
    value = loads(data, where=where)
    evaluation = value.get("evaluation") if isinstance(value, dict) else None
    # A foreign version is told first: it is why nothing else would fit.
    if isinstance(evaluation, dict):
        check_version(evaluation, where=f"{where}: evaluation")
    checkpoint = as_model(data, Checkpoint, where=where)
    _require_own_rows(checkpoint.evaluation, where=f"{where}: evaluation")
    return checkpoint


def _require_own_rows(evaluation: EvaluationDoc, *, where: str) -> None:
    with told_of(where):
        found = next(of_evaluation(evaluation), None)
    if found is not None:
        refuse(found, where=where)
