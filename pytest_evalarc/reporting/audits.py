"""Read what the controls of an audit show from what lies in its result folder."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.audit import Audit, AuditPlan, ControlDoc
from pytest_evalarc.model.grading import Grading


def read_audit(folder: Path) -> Audit:
    """Return what the controls in a folder show; a function of its files alone.

    Args:
        folder: Holds plan.json, and below `rows/` a document for each control.

    Raises:
        DocumentError: A document cannot be read, or does not belong to the plan.
    """
    plan = read_model(folder / "plan.json", AuditPlan)
    rows = sorted((folder / "rows").glob("*.json"))
    return assess(plan, {path.stem: read_control(path, plan) for path in rows})


def read_control(path: Path, plan: AuditPlan) -> Grading:
    """Return the grading of one control of an audit.

    Raises:
        DocumentError: The document cannot be read, or does not belong to the plan.
    """
    document = read_model(path, ControlDoc)
    if (document.control, document.task) != (path.stem, plan.task):
        raise DocumentError(
            str(path),
            f"is of control {document.control!r} of task {document.task.name}",
            "it belongs to another audit, or was edited",
        )
    return document.grading
