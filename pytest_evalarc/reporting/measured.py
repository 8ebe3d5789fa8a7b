"""Measurements of tasks from wherever they lie: result folders, batches, accepted results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_evalarc.counting.measured import measured_audit, measured_trials
from pytest_evalarc.counting.recount import of_accepted, of_audit, refuse
from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.strict import loads, read_model
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.measured import Measured
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.reporting.audits import read_audit
from pytest_evalarc.reporting.benchmarks import read_results
from pytest_evalarc.reporting.imports.results import read_foreign
from pytest_evalarc.runs.budget import kept_back
from pytest_evalarc.runs.shards import kept_shard

DEFAULT_ACCEPTED = Path("evals/accepted")
ACCEPTED = "accepted"
"""In place of a path: what is accepted in the repository."""
AUDIT = "audit"
"""The folder and the file of an audit, beside those of clients."""

_NAME_RESULTS = (
    "name a folder with plan.json, an audit.json, or results/<batch> for all of a batch; "
    "results/latest is the newest of each task and client"
)


def read_measured(path: Path) -> tuple[Measured, ...]:
    """Return what was measured in a place, in the order of tasks and clients.

    Args:
        path: A folder of trials or of an audit, its benchmark.json or audit.json, an accepted
            document, `results/<batch>`, which stands for that batch of every task and client, or
            another program's results.

    Raises:
        DocumentError: A document cannot be read, or says otherwise than its own rows.
        UsageError: Nothing that was measured lies there.
    """
    if path.is_dir() and not (path / "plan.json").exists() and (path / "audit.json").exists():
        path /= "audit.json"
    if path.is_file():
        return (_of_file(path),)
    if (path / "plan.json").exists():
        return (_of_folder(path),)
    folders = tuple(batch_folders(path))
    found = tuple(map(_of_folder, folders)) or read_foreign(path)
    if not found:
        raise UsageError(str(path), "holds no results that can be compared", _NAME_RESULTS)
    return found


def read_accepted(folder: Path) -> tuple[Measured, ...]:
    """Return what is accepted in a folder of `<task>/<client>.json` and `<task>/audit.json`.

    Raises:
        DocumentError: A document cannot be read, or lies where another belongs.
        UsageError: Nothing is accepted there.
    """
    found: list[Measured] = []
    for path in sorted(folder.glob("*/*.json")):
        measured = read_accepted_file(path)
        if accepted_path(folder, measured) != path:
            told = f"is of task {measured.task} and {measured.client or 'its audit'}"
            raise DocumentError(str(path), told, "accept the results again")
        found.append(measured)
    if not found:
        hint = "accept results with `pytest-evalarc accept RESULTS`"
        raise UsageError(str(folder), "holds no accepted results", hint)
    return tuple(found)


def read_accepted_file(path: Path) -> Measured:
    """Return an accepted document.

    Raises:
        DocumentError: It cannot be read.
        EditedError: It is not as it was accepted.
    """
    measured = read_model(path, Measured)
    for disagreement in of_accepted(measured):
        refuse(disagreement, where=str(path), hint="it was edited: accept the results again")
    return measured


def accepted_path(folder: Path, measured: Measured) -> Path:
    """Return where an accepted measurement lies."""
    return folder / measured.task / f"{measured.client or AUDIT}.json"


def result_folders(path: Path) -> tuple[Path, ...]:
    """Return the folders of trials and audits that a place stands for, in their order.

    Args:
        path: A folder with plan.json, a file in it, or `results/<batch>`.

    Raises:
        DocumentError: A plan cannot be read.
        UsageError: There is none.
    """
    folder = path.parent if path.is_file() else path
    if (folder / "plan.json").exists():
        if _is_candidate(folder / "plan.json"):
            raise UsageError(str(path), "is a candidate, and no batch or audit", _NAME_RESULTS)
        return (folder,)
    folders = tuple(batch_folders(path))
    if not folders:
        raise UsageError(str(path), "holds no results of trials or audits", _NAME_RESULTS)
    return folders


def is_audit(folder: Path) -> bool:
    """Whether a folder with a plan is one of an audit."""
    return _has_key(folder / "plan.json", "mutants")


def batch_folders(path: Path) -> Iterator[Path]:
    """Yield the folders of trials and audits of the batch that `results/<batch>` names."""
    for plan in sorted(path.parent.glob(f"*/*/{path.name}/plan.json")):
        if not _is_candidate(plan):
            yield plan.parent


def _is_candidate(plan: Path) -> bool:
    return _has_key(plan, "candidate_sha256")


def _has_key(path: Path, key: str) -> bool:
    document = _loaded(path)
    return isinstance(document, dict) and key in document


def _loaded(path: Path) -> object:
    try:
        return loads(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, _NAME_RESULTS) from error


def _of_file(path: Path) -> Measured:
    foreign = read_foreign(path)
    if foreign:
        return foreign[0]
    document = _loaded(path)
    keys = document.keys() if isinstance(document, dict) else ()
    if "configurations" in keys or path.name == "plan.json":
        return _of_folder(path.parent)
    if "mutation_score" in keys:
        audit = read_model(path, Audit)
        for disagreement in of_audit(audit):
            refuse(disagreement, where=str(path))
        return measured_audit(audit)
    if "rows" in keys:
        return read_accepted_file(path)
    raise UsageError(str(path), "is no document of trials or of an audit", _NAME_RESULTS)


def _of_folder(folder: Path) -> Measured:
    path = folder / "plan.json"
    if is_audit(folder):
        return measured_audit(read_audit(folder))
    if _is_candidate(path):
        hint = "compare its evaluation.json with another one"
        raise UsageError(str(folder), "is a candidate, which was not measured in trials", hint)
    plan = read_model(path, PlanDoc)
    return measured_trials(
        plan,
        read_results(folder, plan),
        kept_back=kept_back(folder, plan),
        shard=kept_shard(folder),
    )
