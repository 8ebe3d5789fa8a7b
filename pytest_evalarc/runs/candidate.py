"""A candidate: a folder of the user's, kept as a submission and graded like every other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pytest_evalarc import __version__
from pytest_evalarc.errors import EvalArcError, SubmissionError, UsageError
from pytest_evalarc.files.manifest import Skip
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.candidate import as_candidate, is_skipped
from pytest_evalarc.grading.cases import language_of
from pytest_evalarc.grading.grade import grade, ungradable
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.submission import Submission, read_kept, read_submission
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.candidate import CandidateDoc, CandidatePlan, Made
from pytest_evalarc.model.task import Task
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.evidence import keep_submission, keep_traceback, told
from pytest_evalarc.runs.request import Request

_CHANGES = "no process may write there while it is graded"


def make_candidate_plan(
    task: Task,
    request: Request,
    *,
    sandbox: str,
    image: str | None = None,
    candidate_sha256: str | None,
) -> CandidatePlan:
    """Return which candidate is judged, and by which checks."""
    return CandidatePlan(
        schema_version=SCHEMA_VERSION,
        batch=request.batch,
        task=task.ref,
        candidate_sha256=candidate_sha256,
        checks={check.id: check.dimensions for check in task.checks},
        weights=task.weights,
        sandbox=sandbox,
        image=image,
    )


def part_of_none(task: Task) -> Skip | None:
    """Return what says of a path that it is no part of a task's candidate; None: all is."""
    return is_skipped if task.pack is not None else None


def candidate_digest(task: Task, source: Path) -> str | None:
    """Return the digest of a folder; None when it cannot be read as a submission."""
    try:
        return read_submission(source, skip=part_of_none(task)).sha256
    except SubmissionError:
        return None


def refuse_candidate(task: Task, source: Path, pack: Pack) -> None:
    """Refuse a folder that can be no candidate of a pack, before anything is written.

    Raises:
        UsageError: It is too large, empty, holds a link, has no entry point, or names a wrong
            command.
    """
    try:
        as_candidate(read_submission(source, skip=is_skipped), language_of(task, pack))
    except SubmissionError as error:
        raise UsageError(f"candidate {error.where}", error.problem, error.hint) from error


def run_candidate(
    task: Task, source: Path, batch: Batch, folder: Path, *, candidate_sha256: str | None
) -> CandidateDoc:
    """Keep a folder as a submission and grade what was kept.

    Args:
        task: The task whose checks decide.
        source: The folder; it is read, and never written.
        batch: The batch it belongs to.
        folder: The result folder; what a process that died left of a snapshot is removed.
        candidate_sha256: What was planned; another content by now is no valid submission.

    Raises:
        SetupError: The task's toolchain is not there.
        InfrastructureError: The sandbox cannot be used.
        OSError: What is left of a snapshot cannot be removed.
    """
    lab = batch.lab(task)
    for name in ("submission", "submission.json", "submission-listing.txt", "grading"):
        remove_tree(folder / name)
    try:
        submission = _snapshot(task, source, folder, planned=candidate_sha256)
        grading = grade(task, submission, lab, outputs=folder / "grading")
    except SubmissionError as error:
        grading = ungradable(task, lab, Cause(kind="invalid_submission", detail=told(error)))
    except (EvalArcError, OSError) as error:
        keep_traceback(error, folder)
        broken = ungradable(task, lab, Cause(kind="grader_broke", detail=told(error)))
        grading = broken.model_copy(update={"status": "infrastructure_error"})
    return CandidateDoc(
        schema_version=SCHEMA_VERSION,
        task=task.ref,
        made=Made(created_at=datetime.now(UTC), package_version=__version__),
        grading=grading,
    )


def _snapshot(task: Task, source: Path, folder: Path, *, planned: str | None) -> Submission:
    """Return the kept copy of a folder, proven to be what was planned.

    Nobody promises that the user's folder is at rest, as that of an agent that has ended is.
    """
    kept = keep_submission(source, folder, skip=part_of_none(task))
    if kept.sha256 != planned:
        raise SubmissionError(str(source), "changed after it was planned", _CHANGES)
    try:
        return read_kept(folder)
    except SubmissionError as error:
        raise SubmissionError(str(source), "changed while it was copied", _CHANGES) from error
