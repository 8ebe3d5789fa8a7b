"""Write benchmark-regrade-<n>.json of a batch whose kept submissions were graded again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.counting.recount import of_regrade, refuse, require_agreement
from pytest_evalarc.counting.regrade import differences, regraded
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.documents import write_whole
from pytest_evalarc.runs.budget import kept_back
from pytest_evalarc.runs.regrade import regrade_path
from pytest_evalarc.runs.shards import kept_shard


@dataclass(frozen=True, kw_only=True)
class RegradeReport:
    """What a batch adds up to after a re-grading, and what that judged otherwise."""

    number: int
    benchmark: Benchmark
    path: Path
    graded: int
    """Trials that were graded again."""
    changes: tuple[str, ...]
    """A sentence for each trial whose new grading differs from its last."""


def write_regrade(folder: Path, number: int) -> RegradeReport:
    """Write what a batch adds up to after one of its re-gradings, as `read_regrade`.

    Raises:
        DocumentError: A document cannot be read, written, or does not belong to the plan.
    """
    report = read_regrade(folder, number)
    write_whole(report.path, report.benchmark)
    return report


def read_regrade(folder: Path, number: int) -> RegradeReport:
    """Return what a batch adds up to after one of its re-gradings.

    A function of plan.json and of each trial's result.json and regrade-<n>.json alone. A trial
    that was not graded again counts as it did.

    Raises:
        DocumentError: A document cannot be read, does not belong to the plan, or says otherwise
            than its own rows.
    """
    plan = read_model(folder / "plan.json", PlanDoc)
    results: dict[str, TrialResult] = {}
    changes: list[str] = []
    graded = 0
    for entry in plan.trials:
        trial = folder / entry.folder
        if not (trial / "result.json").exists():
            continue
        result = read_model(trial / "result.json", TrialResult)
        require_agreement(result, where=str(trial / "result.json"))
        path = regrade_path(trial, number)
        if path.exists():
            again = _regrade(path, result, number)
            changes += _changes(entry.folder, result, again)
            result = regraded(result, again.grading, again.code)
            graded += 1
        results[entry.folder] = result
    return RegradeReport(
        number=number,
        benchmark=count(plan, results, kept_back=kept_back(folder, plan), shard=kept_shard(folder)),
        path=folder / f"benchmark-regrade-{number}.json",
        graded=graded,
        changes=tuple(changes),
    )


def _regrade(path: Path, result: TrialResult, number: int) -> Regrade:
    found = read_model(path, Regrade)
    require_same_trial(found, result, number, where=str(path))
    for disagreement in of_regrade(found, result):
        refuse(disagreement, where=str(path))
    return found


def require_same_trial(found: Regrade, result: TrialResult, number: int, *, where: str) -> None:
    """Refuse a re-grading that is not of the trial that it lies beside.

    Raises:
        DocumentError: It has another number, task, configuration or trial.
    """
    own = (found.number, found.task, found.mode, found.trial)
    if own != (number, result.task, result.mode, result.trial):
        raise DocumentError(where, "is not of this trial", "it was moved here, or edited")


def _changes(trial: str, result: TrialResult, again: Regrade) -> list[str]:
    before = result.gradings[-1] if result.gradings else None
    facts = list(differences(before, again.grading))
    now = regraded(result, again.grading, again.code).outcome
    if now is not result.outcome:
        facts.insert(0, f"{result.outcome.value} becomes {now.value}".replace("_", " "))
    return [f"{trial}: {'; '.join(facts)}"] if facts else []
