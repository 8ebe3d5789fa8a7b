"""Read what the grading of a candidate says from what lies in its result folder."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.counting.score import evaluation_document
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.candidate import CandidateDoc, CandidatePlan, EvaluationDoc


def read_evaluation(folder: Path) -> EvaluationDoc:
    """Return what the grading of a candidate says; a function of its folder's files alone.

    Args:
        folder: Holds plan.json and grading.json.

    Raises:
        DocumentError: A document cannot be read, or does not belong to the plan.
    """
    plan = read_model(folder / "plan.json", CandidatePlan)
    path = folder / "grading.json"
    document = read_model(path, CandidateDoc)
    grading = document.grading
    is_other = grading.cause is None and grading.submission_sha256 != plan.candidate_sha256
    if document.task != plan.task or is_other:
        problem = f"is of another candidate or task {document.task.name}"
        raise DocumentError(str(path), problem, "it belongs to another batch, or was edited")
    return evaluation_document(
        grading,
        batch=plan.batch,
        made=document.made,
        task=plan.task,
        checks=plan.checks,
        weights=plan.weights,
    )
