"""How many gradings of some results were not made for them, but come from the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.grading import CachedFrom
from pytest_evalarc.runs.folders import Folders


class Cached(NamedTuple):
    """Gradings that come from the cache, of all that there are."""

    cached: int
    graded: int

    def __str__(self) -> str:
        return f"{self.cached} of {self.graded} gradings from the cache"


def cached_of_batch(folders: Folders) -> Cached:
    """Return the gradings of a batch: of its controls, candidates, and what its trials left."""
    batch = f"*/*/{folders.batch}"
    forms = (f"{batch}/rows/*.json", f"{batch}/grading.json", f"{batch}/*/result.json")
    return _counted(path for form in forms for path in folders.results.glob(form))


def cached_of_audit(audit: Audit) -> Cached:
    """Return the gradings of an audit's controls, as far as they are there."""
    mutants = (mutant.evaluation for mutant in audit.mutants)
    controls = (audit.reference, audit.reference_repeat, audit.starter.evaluation, *mutants)
    graded = [evaluation for evaluation in controls if evaluation is not None]
    return Cached(sum(evaluation.cached is not None for evaluation in graded), len(graded))


def cached_of_regrades(folders: Iterable[Path], number: int) -> Cached:
    """Return the gradings of one re-grading of some batches."""
    return _counted(path for folder in folders for path in folder.glob(f"*/regrade-{number}.json"))


def cached_sentence(cached: CachedFrom | None) -> str:
    """Return where a grading comes from, as a sentence; empty when it was made anew."""
    if cached is None:
        return ""
    made = cached.graded_at.isoformat(timespec="seconds")
    return f"From the cache of gradings, made {made}; its seconds are of then."


def _counted(paths: Iterable[Path]) -> Cached:
    found = [grading for path in paths for grading in _gradings(path)]
    return Cached(sum(grading.get("cached") is not None for grading in found), len(found))


def _gradings(path: Path) -> Iterator[dict[str, JsonValue]]:
    """Yield the grading that a document tells of first, as it was when it was written."""
    try:
        document = loads(path.read_bytes(), where=str(path))
    except (OSError, DocumentError):
        # Whoever counts by it says so.
        return
    if isinstance(document, dict):
        gradings = document.get("gradings")
        first = gradings[0] if isinstance(gradings, list) and gradings else document.get("grading")
        if isinstance(first, dict):
            yield first
