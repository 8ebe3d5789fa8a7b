from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import DocumentError, InfrastructureError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.grading.submission import keep, read_submission
from pytest_evalarc.model.candidate import CandidateDoc, CandidatePlan, EvaluationDoc
from pytest_evalarc.reporting.batch import write_document, write_documents
from pytest_evalarc.reporting.candidates import read_evaluation
from pytest_evalarc.runs.candidate import candidate_digest, make_candidate_plan, run_candidate
from pytest_evalarc.runs.once import once
from tests.evals import SOLUTION, Evals
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a candidate that is right."""
    (tmp_path / "mine/app").mkdir(parents=True)
    (tmp_path / "mine/app/__init__.py").write_text(SOLUTION)
    return tmp_path / "mine"


def judge(evals: Evals, source: Path) -> Path:
    """Judge a folder as the plugin does, and return where that is kept."""
    folder = evals.batch.folders.candidate(evals.task.name)
    digest = candidate_digest(evals.task, source)
    plan = make_candidate_plan(
        evals.task, evals.request, sandbox=evals.request.sandbox, candidate_sha256=digest
    )
    once(folder / "plan.json", CandidatePlan, lambda: plan)
    once(
        folder / "grading.json",
        CandidateDoc,
        lambda: run_candidate(evals.task, source, evals.batch, folder, candidate_sha256=digest),
    )
    return folder


def test_a_candidate_is_graded_with_the_toolchain_that_trials_have(
    make: Make, source: Path
) -> None:
    """One grader serves trials, controls and candidates alike."""
    evaluation = read_evaluation(judge(make(is_plain=False), source))

    assert (evaluation.valid, evaluation.resolved, evaluation.score) == (True, True, 1.0)
    assert {step.name: step.status for step in evaluation.steps}["build"] == "pass"
    assert evaluation.edits_outside_editable == ("README.md",)
    assert evaluation.candidate_sha256 == read_submission(source).sha256


def test_a_step_that_fails_leaves_a_candidate_unresolved(make: Make, source: Path) -> None:
    """What does not build passes no check."""
    (source / "app/__init__.py").write_text("def total(:\n")

    evaluation = read_evaluation(judge(make(is_plain=False), source))

    assert (evaluation.valid, evaluation.resolved, evaluation.score) == (True, False, 0.0)
    assert {row.status for row in evaluation.cases} == {"not_run"}


def test_the_document_begins_with_its_version(make: Make, source: Path) -> None:
    """A reader looks there first."""
    folder = judge(make(), source)

    _, path = write_document(folder)

    assert list(json.loads(path.read_bytes()))[:2] == ["schema_version", "batch"]
    assert path.read_bytes() == dumps(read_evaluation(folder).to_json())


def test_a_snapshot_that_a_dead_process_began_is_made_anew(make: Make, source: Path) -> None:
    """Half of a copy must neither be graded nor stand in the way."""
    evals = make()
    folder = evals.batch.folders.candidate(evals.task.name)
    for path in ("submission/app/__init__.py", "submission/half", "grading/adds.log"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("torn")

    evaluation = read_evaluation(judge(evals, source))

    assert evaluation.resolved
    assert (folder / "submission/app/__init__.py").read_text() == SOLUTION
    assert not (folder / "submission/half").exists()
    assert not (folder / "grading/adds.log").exists()


def test_a_folder_that_changes_after_it_was_planned_is_invalid(
    make: Make, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could say which of the two was judged."""
    monkeypatch.setattr("tests.runs.test_candidate.candidate_digest", lambda *_: "0" * 64)

    evaluation = read_evaluation(judge(make(), source))

    assert (evaluation.valid, evaluation.resolved, evaluation.score) == (True, False, 0.0)
    assert "mine: changed after it was planned" in evaluation.cases[0].detail


def test_a_folder_that_changes_while_it_is_copied_is_invalid(
    make: Make, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that saves a file of the same size leaves no other trace."""

    def keep_another(submission: Any, folder: Path) -> Any:
        (source / "app/__init__.py").write_text(SOLUTION.replace("sum", "max"))
        return keep(submission, folder)

    monkeypatch.setattr("pytest_evalarc.runs.evidence.keep", keep_another)

    evaluation = read_evaluation(judge(make(), source))

    assert (evaluation.valid, evaluation.resolved) == (True, False)
    assert "mine: changed while it was copied" in evaluation.cases[0].detail


def test_a_folder_that_is_too_large_is_listed_and_invalid(make: Make, source: Path) -> None:
    """It could not be kept, so what would be graded could not be looked at."""
    with (source / "big").open("wb") as file:
        file.truncate(300 << 20)
    evals = make()

    folder = judge(evals, source)

    evaluation = read_evaluation(folder)
    assert (evaluation.valid, evaluation.resolved) == (True, False)
    assert "big" in (folder / "submission-listing.txt").read_text()
    assert not (folder / "submission").exists()


def test_a_snapshot_that_cannot_be_written_is_no_verdict(
    make: Make, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is our side's fault."""

    def full(*_: object) -> None:
        raise InfrastructureError("results", "cannot be written: No space left on device")

    monkeypatch.setattr("pytest_evalarc.runs.evidence.keep", full)

    evaluation = read_evaluation(judge(make(), source))

    assert (evaluation.valid, evaluation.status, evaluation.score) == (
        False,
        "environment_error",
        None,
    )


@pytest.mark.parametrize("change", ["task", "candidate"])
def test_a_grading_of_another_candidate_is_refused(make: Make, source: Path, change: str) -> None:
    """It would be told under a foreign name."""
    folder = judge(make(), source)
    document = json.loads((folder / "grading.json").read_bytes())
    if change == "task":
        document["task"]["content_hash"] = "0" * 64
    else:
        document["grading"]["submission_sha256"] = "0" * 64
    (folder / "grading.json").write_bytes(dumps(document))

    with pytest.raises(DocumentError, match="belongs to another batch, or was edited"):
        write_document(folder)


def test_a_candidate_that_was_never_graded_has_no_document(make: Make, source: Path) -> None:
    """A session that was cut off has said so; what is missing is no damage."""
    evals = make(batch_name="cut")
    folder = judge(evals, source)
    graded = write_documents(evals.batch.folders)
    (folder / "grading.json").unlink()
    shutil.rmtree(folder / "submission")

    documents = write_documents(evals.batch.folders)

    ((evaluation, path),) = graded.evaluations
    assert isinstance(evaluation, EvaluationDoc) and path == folder / "evaluation.json"
    assert documents.evaluations == documents.problems == ()
