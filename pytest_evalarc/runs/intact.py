"""Whether a task is still the one that was planned, whoever may have written to it meanwhile."""

from __future__ import annotations

from pytest_evalarc.errors import InfrastructureError, SubmissionError
from pytest_evalarc.grading.lab import FileLab, PackLab, pack_of
from pytest_evalarc.model.task import Task
from pytest_evalarc.tasks.load import content_hash


def require_intact(task: Task, lab: FileLab | PackLab) -> None:
    """Refuse a task of which any file differs from what was planned.

    An agent without a boundary can write to the very checks that judge it, and to those of every
    later trial; so can somebody who edits the task while a batch runs. A trial asks before it
    starts, and on both sides of its grading; a control asks once it was graded.

    Raises:
        InfrastructureError: The task has changed, or cannot be read any more.
    """
    pack = pack_of(lab)
    try:
        now = content_hash(
            task.root,
            fixtures=task.fixtures,
            plugins=task.plugins,
            code=pack.info.code if pack else None,
        )
    except SubmissionError as error:
        raise InfrastructureError(error.where, error.problem, error.hint) from error
    if now != task.sha256:
        raise InfrastructureError(
            f"task {task.name}",
            "its files are not those that were planned",
            "put them back as they were, and look for whoever wrote to them",
        )
