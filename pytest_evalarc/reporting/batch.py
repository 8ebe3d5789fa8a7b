"""Write what a batch adds up to from what lies in its result folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.benchmark import count_each
from pytest_evalarc.counting.recount import require_agreement
from pytest_evalarc.counting.score import evaluation_document
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads, read_model
from pytest_evalarc.model.audit import Audit, AuditPlan, ControlDoc
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import CandidateDoc, CandidatePlan, EvaluationDoc
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.documents import write_whole
from pytest_evalarc.reporting.regrade import RegradeReport
from pytest_evalarc.runs.budget import kept_back
from pytest_evalarc.runs.folders import Folders


@dataclass(frozen=True, kw_only=True)
class Documents:
    """What a batch adds up to, with where it was written, and what could not be read."""

    benchmarks: tuple[tuple[Benchmark, Path], ...] = ()
    audits: tuple[tuple[Audit, Path], ...] = ()
    evaluations: tuple[tuple[EvaluationDoc, Path], ...] = ()
    regrades: tuple[RegradeReport, ...] = ()
    problems: tuple[DocumentError, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences on the batch as a whole."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return self == Documents()


def write_documents(folders: Folders) -> Documents:
    """Write the documents of every task and client of a batch.

    One that cannot be computed does not keep the others from being written.
    """
    benchmarks: list[tuple[Benchmark, Path]] = []
    audits: list[tuple[Audit, Path]] = []
    evaluations: list[tuple[EvaluationDoc, Path]] = []
    problems: list[DocumentError] = []
    for plan in sorted(folders.results.glob(f"*/*/{folders.batch}/plan.json")):
        try:
            if _is_unfinished_candidate(plan.parent):
                continue
            document, path = write_document(plan.parent)
        except DocumentError as problem:
            problems.append(problem)
            continue
        match document:
            case Audit():
                audits.append((document, path))
            case EvaluationDoc():
                evaluations.append((document, path))
            case Benchmark():
                benchmarks.append((document, path))
    return Documents(
        benchmarks=tuple(benchmarks),
        audits=tuple(audits),
        evaluations=tuple(evaluations),
        problems=tuple(problems),
    )


def write_document(folder: Path) -> tuple[Benchmark | Audit | EvaluationDoc, Path]:
    """Write what a folder with a plan adds up to, and return it with its path.

    Raises:
        DocumentError: A document cannot be read, written, or does not belong to the plan.
    """
    match _kind(folder):
        case "audit":
            audit = read_audit(folder)
            return audit, write_whole(folder / "audit.json", audit)
        case "candidate":
            evaluation = read_evaluation(folder)
            return evaluation, write_whole(folder / "evaluation.json", evaluation)
        case "trials":
            benchmark = read_benchmark(folder)
            return benchmark, write_whole(folder / "benchmark.json", benchmark)


def read_benchmark(folder: Path) -> Benchmark:
    """Return what the results in a folder add up to; a function of its files alone.

    Args:
        folder: Holds plan.json and a folder for each trial.

    Raises:
        DocumentError: A document cannot be read, does not belong to the plan, or says otherwise
            than its own rows.
    """
    plan = read_model(folder / "plan.json", PlanDoc)
    return count_each(plan, _results(folder, plan), kept_back=kept_back(folder, plan))


def _results(folder: Path, plan: PlanDoc) -> Iterator[tuple[str, TrialResult]]:
    """Yield the results that are there, one at a time: a batch may have thousands."""
    for entry in plan.trials:
        path = folder / entry.folder / "result.json"
        if path.exists():
            result = read_model(path, TrialResult)
            require_agreement(result, where=str(path))
            yield entry.folder, result


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


def read_evaluation(folder: Path) -> EvaluationDoc:
    """Return what the grading of a candidate says; a function of its folder's files alone.

    Args:
        folder: Holds plan.json and grading.json.

    Raises:
        DocumentError: A document cannot be read, or does not belong to the plan.
    """
    plan = read_model(folder / "plan.json", CandidatePlan)
    path = folder / "grading.json"
    document = read_model(path, CandidateDoc)
    grading = document.grading
    is_other = grading.cause is None and grading.submission_sha256 != plan.candidate_sha256
    if document.task != plan.task or is_other:
        problem = f"is of another candidate or task {document.task.name}"
        raise DocumentError(str(path), problem, "it belongs to another batch, or was edited")
    return evaluation_document(
        grading,
        batch=plan.batch,
        made=document.made,
        task=plan.task,
        checks=plan.checks,
        weights=plan.weights,
    )


def _is_unfinished_candidate(folder: Path) -> bool:
    """Whether a candidate was planned and then not graded, which its item has told."""
    return _kind(folder) == "candidate" and not (folder / "grading.json").exists()


def _kind(folder: Path) -> Literal["audit", "candidate", "trials"]:
    """Return what a plan is of: only that of controls lists mutants, for instance."""
    path = folder / "plan.json"
    try:
        plan = loads(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, "name a folder of results") from error
    keys = plan.keys() if isinstance(plan, dict) else ()
    if "mutants" in keys:
        return "audit"
    return "candidate" if "candidate_sha256" in keys else "trials"
