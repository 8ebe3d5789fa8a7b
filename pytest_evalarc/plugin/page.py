"""The report page of a session, written once the batch's documents are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.errors import DocumentError, EvalArcError
from pytest_evalarc.plugin.regrading import Regrading
from pytest_evalarc.reporting.page.gather import batch_folders
from pytest_evalarc.reporting.page.page import write_page
from pytest_evalarc.reporting.page.trial import Sources

if TYPE_CHECKING:
    from pytest_evalarc.model.task import Task, TaskRef
    from pytest_evalarc.plugin.session import EvalSession
    from pytest_evalarc.reporting.batch import Documents


def with_page(documents: Documents, evals: EvalSession, file: Path) -> Documents:
    """Write the page of a session's results, and return the documents with a word on it."""
    folders = _folders(evals)
    if not folders:
        return _remarked(documents, "no report page: nothing was run that leaves results")
    sources = Sources(
        clients=evals.registry.clients.get,
        task_of=lambda ref: _task(evals, ref),
        packs=evals.registry.packs.get,
        page_folder=file.parent,
    )
    try:
        write_page(folders, file, sources)
    except DocumentError as problem:
        return replace(documents, problems=(*documents.problems, problem))
    return _remarked(documents, f"report page: {file}")


def _remarked(documents: Documents, remark: str) -> Documents:
    return replace(documents, remarks=(*documents.remarks, remark))


def _folders(evals: EvalSession) -> tuple[Path, ...]:
    if isinstance(evals.work, Regrading):
        return tuple(kept.folder for kept in evals.work.batches)
    return batch_folders(evals.folders.results, evals.folders.batch)


def _task(evals: EvalSession, ref: TaskRef) -> Task | None:
    try:
        task = evals.task(evals.request.tasks / ref.name)
    except (EvalArcError, OSError):
        return None
    return task if task.ref.content_hash == ref.content_hash else None
