"""Write benchmark.json and audit.json of a batch from what lies in its result folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.audit import Audit, AuditPlan, ControlDoc
from pytest_evalarc.model.benchmark import Benchmark
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
        folder = plan.parent
        try:
            if folder.parent.name == "audit":
                audits.append((write_audit(folder), folder / "audit.json"))
            else:
                benchmarks.append((write_benchmark(folder), folder / "benchmark.json"))
        except DocumentError as problem:
            problems.append(problem)
    return Documents(benchmarks=tuple(benchmarks), audits=tuple(audits), problems=tuple(problems))


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


def write_benchmark(folder: Path) -> Benchmark:
    """Write benchmark.json beside the plan and return it."""
    benchmark = read_benchmark(folder)
    write_model(folder / "benchmark.json", benchmark)
    return benchmark


def write_audit(folder: Path) -> Audit:
    """Write audit.json beside the audit's plan and return it.

    Raises:
        DocumentError: A document cannot be read, or does not belong to the plan.
    """
    plan = read_model(folder / "plan.json", AuditPlan)
    rows = sorted((folder / "rows").glob("*.json"))
    controls = {path.stem: read_model(path, ControlDoc).grading for path in rows}
    audit = assess(plan, controls)
    write_model(folder / "audit.json", audit)
    return audit
