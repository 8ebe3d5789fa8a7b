"""One control of an audit: built, graded, kept as a row."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError, SubmissionError, UsageError, nearest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.cache import GradingCache
from pytest_evalarc.grading.grade import grade, ungradable
from pytest_evalarc.grading.lab import FileLab, PackLab, pack_of
from pytest_evalarc.grading.scope import EVERYTHING, Scope
from pytest_evalarc.grading.submission import make_control
from pytest_evalarc.model.audit import ControlDoc
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT, STARTER, AuditMode
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.intact import require_intact


def run_control(
    task: Task,
    control: str,
    batch: Batch,
    *,
    mode: AuditMode,
    anew: bool = False,
    cancelled: threading.Event | None = None,
    on_last_cases: Callable[[], None] | None = None,
) -> ControlDoc:
    """Build a control of a task and grade it with the checks that grade trials.

    Args:
        task: The task.
        control: `reference`, `reference-repeat`, `starter` or a mutant's name.
        batch: The batch it belongs to.
        mode: `fast` runs only the checks that decide whether a mutant is detected.
        anew: Whether no kept grading may stand for this one.
        cancelled: Set when nobody wants it any more; the batch's own event by default.
        on_last_cases: Called, on any thread, when so few cases of a pack are left that others
            could be run beside them.

    Raises:
        UsageError: The task has no such control.
        SetupError: The task's toolchain is not there.
        InfrastructureError: The sandbox cannot be used.
    """
    names = (REFERENCE, REFERENCE_REPEAT, STARTER, *(mutant.name for mutant in task.mutants))
    if control not in names:
        hint = nearest(control, names)
        raise UsageError(f"task {task.name}", f"has no control {control!r}", hint)
    lab = batch.lab(task)
    if cancelled is not None:
        lab = replace(lab, cancelled=cancelled)
    lab = replace(lab, cache=_cache_for(control, lab.cache, anew=anew))
    if on_last_cases is not None and isinstance(lab, PackLab):
        lab = replace(lab, on_last_cases=on_last_cases)
    project = lab.work / f"control-{control}-{secrets.token_hex(4)}"
    try:
        grading = _graded(task, control, project, lab, scope_of(task, control, mode))
    finally:
        # What resists goes with the batch's working folder.
        with contextlib.suppress(OSError):
            remove_tree(project)
    return ControlDoc(
        schema_version=SCHEMA_VERSION, task=task.ref, control=control, grading=grading
    )


def _cache_for(control: str, cache: GradingCache | None, *, anew: bool) -> GradingCache | None:
    """Return the cache as a control may use it.

    The repeat is the same submission under the same checks, so it has entries of its own: of two
    gradings that are compared neither may be the other one.
    """
    if cache is None:
        return None
    turn = 2 if control == REFERENCE_REPEAT else 1
    return replace(cache, turn=turn, reads=not anew)


def scope_of(task: Task, control: str, mode: AuditMode) -> Scope:
    """Return what of a control's row an audit needs.

    Whether the reference is flaky shows with one seed as well as with many, and a starter that
    fails with one seed has failed. A mutant is detected in its target dimension or not at all, so
    a fast audit looks nowhere else.
    """
    seeds = task.pack.seeds if task.pack is not None else ()
    if control in (REFERENCE_REPEAT, STARTER) and len(seeds) > 1:
        return Scope(seeds=seeds[:1])
    targets = {mutant.name: mutant.target for mutant in task.mutants}
    if mode == "full" or control not in targets:
        return EVERYTHING
    deciding = [check.id for check in task.checks if targets[control] in check.dimensions]
    return Scope(checks=frozenset(deciding))


def _graded(
    task: Task, control: str, project: Path, lab: FileLab | PackLab, scope: Scope
) -> Grading:
    built = REFERENCE if control == REFERENCE_REPEAT else control
    try:
        submission = make_control(task, built, project, pack=pack_of(lab))
    except (SubmissionError, ValueError) as error:
        # The second is an edit that does not apply, as when the task changed since it was read.
        return ungradable(task, lab, Cause(kind="control", detail=printable(str(error))))
    grading = grade(task, submission, lab, scope=scope)
    if control == STARTER and scope != EVERYTHING and grading.code_passed:
        grading = grade(task, submission, lab)
    return _of_the_plan(task, lab, grading)


def _of_the_plan(task: Task, lab: FileLab | PackLab, grading: Grading) -> Grading:
    """Return a grading, or that it broke: controls under different checks cannot be compared."""
    try:
        require_intact(task, lab)
    except InfrastructureError as error:
        cause = Cause(kind="grader_broke", detail=printable(str(error)))
        return grading.model_copy(update={"status": "infrastructure_error", "cause": cause})
    return grading
