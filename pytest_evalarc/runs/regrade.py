"""Grade kept submissions again: beside the results, which stay as they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.counting.outcome import code_view
from pytest_evalarc.counting.regrade import regraded
from pytest_evalarc.errors import DocumentError, SubmissionError, UsageError
from pytest_evalarc.files.strict import loads, read_model
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.submission import Submission, read_kept
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.resume import require_same

OPTION = "--evalarc-regrade"
_NUMBERED = re.compile(r"(?:benchmark-)?regrade-([1-9][0-9]{0,8})\.json")
_NOTHING = hashlib.sha256(b"").hexdigest()
"""Digest that a grading has for what was never kept."""


class KeptBatch(NamedTuple):
    """The trials of one task and client, as they were planned and kept."""

    folder: Path
    plan: PlanDoc


def kept_batches(given: Path, batch: str | None) -> tuple[KeptBatch, ...]:
    """Return what `--evalarc-regrade` names: one batch folder, or a batch of all results.

    Args:
        given: A folder with plan.json, or a folder of results.
        batch: `--evalarc-batch`; says which one of a folder of results.

    Raises:
        UsageError: There is no such batch of trials.
        DocumentError: A plan cannot be read.
    """
    if not given.is_dir():
        raise UsageError(f"{OPTION} {given}", "is no folder", "name a batch, or all results")
    if (given / "plan.json").exists():
        folders = [given]
    elif batch is None:
        hint = "name a batch's own folder, or give --evalarc-batch"
        raise UsageError(f"{OPTION} {given}", "holds no plan.json", hint)
    else:
        folders = [path.parent for path in sorted(given.glob(f"*/*/{batch}/plan.json"))]
    found = tuple(
        KeptBatch(folder, read_model(folder / "plan.json", PlanDoc))
        for folder in folders
        if _is_of_trials(folder / "plan.json")
    )
    if not found:
        what = f"holds no trials of batch {batch}" if batch else "holds no trials"
        raise UsageError(f"{OPTION} {given}", what, "name another batch")
    return found


def _is_of_trials(path: Path) -> bool:
    try:
        plan = loads(path.read_bytes(), where=str(path))
    except OSError as error:
        raise DocumentError(str(path), f"cannot be read: {error.strerror or error}") from error
    return isinstance(plan, dict) and "mutants" not in plan and "candidate_sha256" not in plan


def require_present(kept: KeptBatch, task: Task, *, sandbox: str, image: str | None = None) -> None:
    """Refuse to grade a batch again by another task, or behind another boundary.

    What is graded again stands beside what was graded then, so both must mean the same; what may
    have changed is the machine, its tools, and this package.

    Raises:
        UsageError: Names the first field of the plan that differs.
    """
    now = {
        "task": task.ref,
        "deadlines_secs": task.deadlines,
        "sandbox": sandbox,
        "image": image,
    }
    require_same(
        kept.plan,
        kept.plan.model_copy(update=now),
        where=f"{OPTION} {kept.folder}",
        hint="restore what it was planned with, or run a new batch",
    )


def numbers(folder: Path) -> tuple[int, ...]:
    """Return the numbers of a batch folder's re-gradings, from the first to the last."""
    names = (path.name for path in (*folder.glob("*.json"), *folder.glob("*/regrade-*.json")))
    found = (_NUMBERED.fullmatch(name) for name in names)
    return tuple(sorted({int(match[1]) for match in found if match}))


def next_number(batches: Iterable[KeptBatch]) -> int:
    """Return the number of the next re-grading of these batches, which counts up."""
    return 1 + max((number for kept in batches for number in numbers(kept.folder)), default=0)


def regrade_path(trial: Path, number: int) -> Path:
    """Return where the re-grading of a trial is kept, beside its result.json."""
    return trial / f"regrade-{number}.json"


def objection(result: TrialResult, folder: Path) -> str | None:
    """Return why there is nothing of a finished trial to grade again, or None."""
    if not (folder / "submission.json").exists():
        return f"no submission was kept ({result.outcome.value.replace('_', ' ')})"
    struck = [path for path in result.redacted_files if path.startswith("submission")]
    if struck:
        return f"a secret was struck out of {struck[0]}, so it is not as it was left"
    return None


def run_regrade(
    result: TrialResult, folder: Path, task: Task, batch: Batch, *, number: int
) -> Regrade:
    """Grade the kept submission of a finished trial with the checks that are there now.

    Args:
        result: The trial as it ended.
        folder: Its result folder.
        task: The task that it is of.
        batch: The batch to work in.
        number: The number of this re-grading.

    Raises:
        SubmissionError: What is kept is not what was graded.
        DocumentError: The manifest that was kept cannot be read.
        SetupError: The task's toolchain is not there.
        InfrastructureError: The sandbox cannot be used.
    """
    submission = as_graded(read_kept(folder), result, folder)
    lab = batch.lab(task)
    grading = grade(task, submission, lab, outputs=folder / f"regrade-{number}")
    code = code_view(grading, fmt_step=lab.toolchain.fmt_step)
    now = regraded(result, grading, code)
    return Regrade(
        schema_version=SCHEMA_VERSION,
        number=number,
        task=result.task,
        mode=result.mode,
        trial=result.trial,
        toolchain=lab.toolchain.version,
        code=code,
        grading=grading,
        outcome=now.outcome,
        cause=now.cause,
        success=now.success,
    )


def as_graded(submission: Submission, result: TrialResult, folder: Path) -> Submission:
    """Return a kept submission, unless its manifest was exchanged together with its files.

    Args:
        submission: What is kept, as it was read back.
        result: The trial that it is of.
        folder: Where it lies.

    Raises:
        SubmissionError: It is not the one that was graded.
    """
    known = set(_known_digests(result))
    if known and submission.sha256 not in known:
        raise SubmissionError(str(folder), "its submission is not the one that was graded")
    return submission


def _known_digests(result: TrialResult) -> Iterator[str]:
    for grading in result.gradings:
        if grading.submission_sha256 != _NOTHING:
            yield grading.submission_sha256
