"""Write benchmark.json and audit.json of a batch from what lies in its result folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import loads, read_model
from pytest_evalarc.model.audit import Audit, AuditPlan, ControlDoc
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.runs.folders import Folders


@dataclass(frozen=True, kw_only=True)
class Documents:
    """What a batch adds up to, with where it was written, and what could not be read."""

    benchmarks: tuple[tuple[Benchmark, Path], ...] = ()
    audits: tuple[tuple[Audit, Path], ...] = ()
    problems: tuple[DocumentError, ...] = ()


def write_documents(folders: Folders) -> Documents:
    """Write the documents of every task and client of a batch.

    One that cannot be computed does not keep the others from being written.
    """
    benchmarks: list[tuple[Benchmark, Path]] = []
    audits: list[tuple[Audit, Path]] = []
    problems: list[DocumentError] = []
    for plan in sorted(folders.results.glob(f"*/*/{folders.batch}/plan.json")):
        try:
            document, path = write_document(plan.parent)
        except DocumentError as problem:
            problems.append(problem)
            continue
        if isinstance(document, Audit):
            audits.append((document, path))
        else:
            benchmarks.append((document, path))
    return Documents(benchmarks=tuple(benchmarks), audits=tuple(audits), problems=tuple(problems))


def write_document(folder: Path) -> tuple[Benchmark | Audit, Path]:
    """Write what a folder with a plan adds up to, and return it with its path.

    Raises:
        DocumentError: A document cannot be read, written, or does not belong to the plan.
    """
    if _is_audit(folder):
        audit = read_audit(folder)
        return audit, _written(folder / "audit.json", audit)
    benchmark = read_benchmark(folder)
    return benchmark, _written(folder / "benchmark.json", benchmark)


def read_benchmark(folder: Path) -> Benchmark:
    """Return what the results in a folder add up to; a function of its files alone.

    Args:
        folder: Holds plan.json and a folder for each trial.

    Raises:
        DocumentError: A document cannot be read, or does not belong to the plan.
    """
    plan = read_model(folder / "plan.json", PlanDoc)
    paths = {entry.folder: folder / entry.folder / "result.json" for entry in plan.trials}
    return count(
        plan, {name: read_model(path, TrialResult) for name, path in paths.items() if path.exists()}
    )


def read_audit(folder: Path) -> Audit:
    """Return what the controls in a folder show; a function of its files alone.

    Args:
        folder: Holds plan.json, and below `rows/` a document for each control.

    Raises:
        DocumentError: A document cannot be read, or does not belong to the plan.
    """
    plan = read_model(folder / "plan.json", AuditPlan)
    rows = sorted((folder / "rows").glob("*.json"))
    return assess(plan, {path.stem: _control(path, plan) for path in rows})


def _control(path: Path, plan: AuditPlan) -> Grading:
    document = read_model(path, ControlDoc)
    if (document.control, document.task) != (path.stem, plan.task):
        raise DocumentError(
            str(path),
            f"is of control {document.control!r} of task {document.task.name}",
            "it belongs to another audit, or was edited",
        )
    return document.grading


def _is_audit(folder: Path) -> bool:
    """Whether a plan is one of controls; only that of trials lists trials."""
    path = folder / "plan.json"
    try:
        plan = loads(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, "name a folder of results") from error
    return isinstance(plan, dict) and "mutants" in plan


def _written(path: Path, document: Model) -> Path:
    try:
        write_model(path, document)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise DocumentError(str(path), problem) from error
    return path
