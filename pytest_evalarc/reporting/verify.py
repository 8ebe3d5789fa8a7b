"""Whether a document agrees with its own rows, whichever kind of document it is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from pytest_evalarc.counting.differences import differences
from pytest_evalarc.counting.recount import (
    Disagreement,
    of_accepted,
    of_audit,
    of_batch_comparison,
    of_comparison,
    of_evaluation,
    of_regrade,
    of_result,
    of_trajectory,
    require_agreement,
)
from pytest_evalarc.errors import DocumentError, EvalArcError
from pytest_evalarc.files.strict import check_version, loads, read_model
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.base import JsonObject, Model
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.comparison import BatchComparison, Comparison
from pytest_evalarc.model.measured import Measured
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.trajectory import Trajectory
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.reporting.regrade import read_regrade, require_same_trial
from pytest_evalarc.reporting.summary import read_summary
from pytest_evalarc.runs.folders import SUMMARY_SUFFIX

M = TypeVar("M", bound=Model)
_Found = tuple[Disagreement, ...]

_REGRADE_BENCHMARK = re.compile(r"benchmark-regrade-([1-9][0-9]{0,8})\.json")


def verify(path: Path) -> tuple[Disagreement, ...]:
    """Return each field of a document that its rows do not give; none for one that agrees.

    Everything is computed again by the functions that wrote it: from the rows in the document,
    for a benchmark or a summary from the plan.json and results that it is of, and for a
    re-grading from the result.json beside it too.

    Raises:
        DocumentError: It, or what it rests on, cannot be read; it is none of the documents that
            hold derived numbers; or its rows cannot be counted.
        EditedError: A result that a benchmark rests on says otherwise than its own rows.
        UsageError: The trials of a summary are gone.
    """
    try:
        document = loads(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, "name a document of results") from error
    if isinstance(document, dict):
        check_version(document, where=str(path))
        for key, found in _KINDS.items():
            if key in document:
                return found(path, document)
    known = ", ".join(_NAMES)
    raise DocumentError(str(path), "is no document with derived numbers", f"known are {known}")


def documents_in(folder: Path) -> list[Path]:
    """Return the documents below a folder that can be verified, sorted; no link is followed.

    Those of a batch are known by their names, whatever is in them, and those whose names a user
    chooses by what is in them.

    Raises:
        DocumentError: There is none, or the folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(error.filename, problem, "make it readable") from error

    found: list[Path] = []
    for at, below, names in os.walk(folder, onerror=refuse):
        is_kept = not _KEPT_BY_US.isdisjoint(names)
        paths = [Path(at) / name for name in names]
        found += [path for path in paths if _is_named(path) or (not is_kept and _is_chosen(path))]
        if is_kept:
            # What an agent left is below, and may look like anything.
            is_trial = "result.json" in names
            below[:] = [name for name in below if name.startswith("trial-") and not is_trial]
    found.sort()
    if not found:
        hint = "name a folder of results, or one document"
        raise DocumentError(str(folder), "holds no document with derived numbers", hint)
    return found


def _is_named(path: Path) -> bool:
    return _OF_A_BATCH.fullmatch(path.name) is not None


def _is_chosen(path: Path) -> bool:
    if path.suffix != ".json":
        return False
    try:
        document = loads(path.read_bytes(), where=str(path))
    except (OSError, DocumentError):
        return False
    return isinstance(document, dict) and not _CHOSEN.isdisjoint(document)


def _contained(
    model: type[M], recount: Callable[[M], Iterator[Disagreement]]
) -> Callable[[Path, JsonObject], _Found]:
    """Return what verifies a document that holds its rows."""

    def found(path: Path, _: JsonObject) -> _Found:
        document = read_model(path, model)
        try:
            return tuple(recount(document))
        except EvalArcError as error:
            # Whatever a command refuses about its own input is here a flaw of the document.
            where = f"{path}: {error.where}"
            raise DocumentError(where, error.problem, "it was edited: restore it") from error

    return found


def _benchmark(path: Path, document: JsonObject) -> _Found:
    number = _REGRADE_BENCHMARK.fullmatch(path.name)
    if number:
        again = read_regrade(path.parent, int(number[1])).benchmark
    else:
        again = read_benchmark(path.parent)
    # Compared as it stands: a count that does not add up would not even fit the model.
    says: JsonValue = document
    return tuple(
        Disagreement(*difference)
        for difference in differences(says, again.to_json())
        if difference.field != "schema_version"
    )


def _summary(path: Path, document: JsonObject) -> _Found:
    name = path.name.removesuffix(SUMMARY_SUFFIX)
    if name == path.name:
        problem = "is a summary under another name"
        raise DocumentError(
            str(path), problem, f"a summary lies at results/<batch>{SUMMARY_SUFFIX}"
        )
    says: JsonValue = document
    return tuple(
        Disagreement(*difference)
        for difference in differences(says, read_summary(path.parent, name).to_json())
        if difference.field != "schema_version"
    )


def _regrade(path: Path, _: JsonObject) -> _Found:
    document = read_model(path, Regrade)
    beside = path.with_name("result.json")
    result = read_model(beside, TrialResult)
    require_agreement(result, where=str(beside))
    require_same_trial(document, result, document.number, where=str(path))
    return tuple(of_regrade(document, result))


_KINDS: Mapping[str, Callable[[Path, JsonObject], _Found]] = {
    "mutation_score": _contained(Audit, of_audit),
    "configurations": _benchmark,
    "across_tasks": _summary,
    "dimensions": _contained(EvaluationDoc, of_evaluation),
    "execution": _contained(TrialResult, of_result),
    "changes": _contained(BatchComparison, of_batch_comparison),
    "number": _regrade,
    "normalized_score_area": _contained(Trajectory, of_trajectory),
    "score_delta": _contained(Comparison, of_comparison),
    "conditions": _contained(Measured, of_accepted),
}
"""What verifies a document, by the first key that only this kind and later ones have."""

_CHOSEN = frozenset({"changes", "normalized_score_area", "score_delta", "conditions"})
"""Keys of the kinds whose names a user chooses."""

_KEPT_BY_US = frozenset({"plan.json", "result.json"})
"""Where one of these lies, all other names are ours as well."""

_OF_A_BATCH = re.compile(
    r"(audit|benchmark|benchmark-regrade-[0-9]+|evaluation|result|regrade-[0-9]+)\.json"
    rf"|.+{re.escape(SUMMARY_SUFFIX)}"
)

_NAMES = (
    "audit.json",
    "benchmark.json",
    "evaluation.json",
    "result.json",
    "regrade-<n>.json",
    "<batch>.summary.json",
    "trajectories",
    "comparisons",
    "accepted results",
)
