"""One control of an audit: built, graded, kept as a row."""

from __future__ import annotations

import secrets
from pathlib import Path

from pytest_evalarc.counting.audit import REFERENCE, REFERENCE_REPEAT
from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.grade import grade, ungradable
from pytest_evalarc.grading.submission import make_control
from pytest_evalarc.model.audit import ControlDoc
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.runs.batch import Batch


def run_control(task: Task, control: str, batch: Batch) -> ControlDoc:
    """Build a control of a task and grade it with the checks that grade trials.

    Args:
        task: The task.
        control: `reference`, `reference-repeat`, `starter` or a mutant's name.
        batch: The batch it belongs to.

    Raises:
        SetupError: The task's toolchain is not there.
        InfrastructureError: The sandbox cannot be used.
    """
    lab = batch.lab(task)
    project = lab.work / f"control-{control}-{secrets.token_hex(4)}"
    built = REFERENCE if control == REFERENCE_REPEAT else control
    try:
        grading = _graded(task, built, project, batch)
    finally:
        remove_tree(project)
    return ControlDoc(
        schema_version=SCHEMA_VERSION, task=task.ref, control=control, grading=grading
    )


def _graded(task: Task, control: str, project: Path, batch: Batch) -> Grading:
    lab = batch.lab(task)
    try:
        submission = make_control(task, control, project)
    except SubmissionError as error:
        return ungradable(task, lab, Cause(kind="control", detail=printable(str(error))))
    return grade(task, submission, lab)
