from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.counting.recount import EditedError
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.trajectory import Checkpoint
from pytest_evalarc.reporting.evaluations import read_checkpoints, read_evaluation_file
from tests.documents import evaluation


def entry(**changes: Any) -> Any:
    return {"elapsed_seconds": 120, "evaluation": evaluation().to_json(), **changes}


def write(folder: Path, value: Any) -> Path:
    path = folder / "checkpoints.json"
    path.write_bytes(dumps(value))
    return path


def test_checkpoints_are_read_as_they_were_evaluated(tmp_path: Path) -> None:
    """The evaluations are whole documents of ours."""
    path = write(tmp_path, [entry(), entry(elapsed_seconds=300.5)])

    assert read_checkpoints(path) == (
        Checkpoint(elapsed_seconds=120, evaluation=evaluation()),
        Checkpoint(elapsed_seconds=300.5, evaluation=evaluation()),
    )
    assert read_checkpoints(write(tmp_path, [])) == ()


def with_evaluation(**changes: Any) -> Any:
    return entry(evaluation={**entry()["evaluation"], **changes})


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({}, ": is no JSON array"),
        ([1], ": checkpoint 1: the document: Input should be an object"),
        ([entry(note="a")], ": checkpoint 1: note: Extra inputs are not permitted"),
        ([{"elapsed_seconds": 1}], ": checkpoint 1: evaluation: Field required"),
        ([entry(), entry(elapsed_seconds="1")], ": checkpoint 2: elapsed_seconds: Input should be"),
        ([entry(elapsed_seconds=True)], ": checkpoint 1: elapsed_seconds: Input should be"),
        (
            [with_evaluation(schema_version="evalarc.evaluation.v2")],
            ": checkpoint 1: evaluation: schema_version: has schema version 'evalarc.evaluation.v2",
        ),
        (
            [with_evaluation(score=0.5)],
            ": checkpoint 1: evaluation: score: says 0.5, but its rows give 1.0; it was edited",
        ),
        ([with_evaluation(score=1.5)], ": checkpoint 1: evaluation.score: Input should be less"),
        ([with_evaluation(resolved=1)], ": checkpoint 1: evaluation.resolved: Input should be"),
    ],
)
def test_what_is_no_list_of_checkpoints_is_refused(
    tmp_path: Path, value: Any, sentence: str
) -> None:
    """The message must lead to the very entry."""
    path = write(tmp_path, value)

    with pytest.raises(DocumentError) as caught:
        read_checkpoints(path)

    assert str(caught.value).startswith(f"{path}{sentence}")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """It is one sentence, and not a traceback."""
    with pytest.raises(DocumentError, match=r"none\.json: cannot be read"):
        read_checkpoints(tmp_path / "none.json")


def test_an_evaluation_that_was_edited_is_not_compared(tmp_path: Path) -> None:
    """Two scores are compared only if both follow from their rows."""
    path = tmp_path / "evaluation.json"
    write_model(path, evaluation("adds.sums"))
    assert read_evaluation_file(path) == evaluation("adds.sums")
    path.write_bytes(dumps({**json.loads(path.read_bytes()), "resolved": True}))

    with pytest.raises(EditedError) as caught:
        read_evaluation_file(path)

    assert str(caught.value) == (
        f"{path}: resolved: says true, but its rows give false; it was edited: restore it"
    )
