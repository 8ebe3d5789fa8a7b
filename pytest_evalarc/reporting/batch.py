"""Write what a batch adds up to from what lies in its result folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.reporting.documents import write_whole
from pytest_evalarc.runs.folders import Folders

if TYPE_CHECKING:
    from pytest_evalarc.model.audit import Audit
    from pytest_evalarc.model.benchmark import Benchmark
    from pytest_evalarc.model.candidate import EvaluationDoc
    from pytest_evalarc.model.summary import Summary
    from pytest_evalarc.reporting.regrade import RegradeReport


@dataclass(frozen=True, kw_only=True)
class Documents:
    """What a batch adds up to, with where it was written, and what could not be read."""

    benchmarks: tuple[tuple[Benchmark, Path], ...] = ()
    audits: tuple[tuple[Audit, Path], ...] = ()
    evaluations: tuple[tuple[EvaluationDoc, Path], ...] = ()
    regrades: tuple[RegradeReport, ...] = ()
    summary: tuple[Summary, Path] | None = None
    """Of all trials of the batch; None without any, or when one of them could not be counted."""
    problems: tuple[DocumentError, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences on the batch as a whole."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return self == Documents()


def write_documents(folders: Folders) -> Documents:
    """Write the documents of every task and client of a batch.

    One that cannot be computed does not keep the others from being written, but a summary is of
    all trials or is not written.
    """
    benchmarks: list[tuple[Benchmark, Path]] = []
    audits: list[tuple[Audit, Path]] = []
    evaluations: list[tuple[EvaluationDoc, Path]] = []
    problems: list[DocumentError] = []
    is_whole = True
    for plan in sorted(folders.results.glob(f"*/*/{folders.batch}/plan.json")):
        folder = plan.parent
        kind = None
        try:
            match kind := plan_kind(folder):
                case "audit":
                    audits.append(_write_audit(folder))
                case "candidate":
                    # One that was planned and then not graded, its item has told.
                    if (folder / "grading.json").exists():
                        evaluations.append(_write_evaluation(folder))
                case "trials":
                    benchmarks.append(_write_benchmark(folder))
        except DocumentError as problem:
            problems.append(problem)
            is_whole = is_whole and kind in ("audit", "candidate")
    summary = None
    if benchmarks and is_whole:
        try:
            summary = _write_summary(folders, [benchmark for benchmark, _ in benchmarks])
        except DocumentError as problem:
            problems.append(problem)
    return Documents(
        benchmarks=tuple(benchmarks),
        audits=tuple(audits),
        evaluations=tuple(evaluations),
        summary=summary,
        problems=tuple(problems),
    )


def write_document(folder: Path) -> tuple[Benchmark | Audit | EvaluationDoc, Path]:
    """Write what a folder with a plan adds up to, and return it with its path.

    Raises:
        DocumentError: A document cannot be read, written, or does not belong to the plan.
    """
    match plan_kind(folder):
        case "audit":
            return _write_audit(folder)
        case "candidate":
            return _write_evaluation(folder)
        case "trials":
            return _write_benchmark(folder)


# Each kind is imported when there is one: most batches hold one kind, and the schemas of all
# take as long to make as many a task takes to be audited.


def _write_audit(folder: Path) -> tuple[Audit, Path]:
    from pytest_evalarc.reporting.audits import read_audit

    audit = read_audit(folder)
    return audit, write_whole(folder / "audit.json", audit)


def _write_evaluation(folder: Path) -> tuple[EvaluationDoc, Path]:
    from pytest_evalarc.reporting.candidates import read_evaluation

    evaluation = read_evaluation(folder)
    return evaluation, write_whole(folder / "evaluation.json", evaluation)


def _write_benchmark(folder: Path) -> tuple[Benchmark, Path]:
    from pytest_evalarc.reporting.benchmarks import read_benchmark

    benchmark = read_benchmark(folder)
    return benchmark, write_whole(folder / "benchmark.json", benchmark)


def _write_summary(folders: Folders, benchmarks: Sequence[Benchmark]) -> tuple[Summary, Path]:
    from pytest_evalarc.reporting.summary import write_summary_of

    return write_summary_of(folders.results, folders.batch, benchmarks)


def plan_kind(folder: Path) -> Literal["audit", "candidate", "trials"]:
    """Return what a folder's plan is of: only that of controls lists mutants, for instance.

    Raises:
        DocumentError: The plan cannot be read.
    """
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
