"""The kept submissions of a batch, graded again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_evalarc.counting.recount import require_agreement
from pytest_evalarc.errors import DocumentError, TaskProblems, UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.plugin.options import Options
from pytest_evalarc.reporting.batch import Documents
from pytest_evalarc.reporting.regrade import RegradeReport, write_regrade
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.regrade import (
    OPTION,
    KeptBatch,
    kept_batches,
    next_number,
    numbers,
    objection,
    regrade_path,
    require_present,
    run_regrade,
)

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession


class KeptTrial(NamedTuple):
    """One trial of a kept batch."""

    kept: KeptBatch
    entry: PlannedTrial

    @property
    def folder(self) -> Path:
        """Its result folder."""
        return self.kept.folder / self.entry.folder


def named_batches(options: Options) -> tuple[KeptBatch, ...]:
    """Return the kept batches that the options name.

    Raises:
        UsageError: There is no such batch, or its plan cannot be read.
    """
    given = options.path("regrade", Path())
    try:
        return kept_batches(given, options.text("batch"))
    except DocumentError as error:
        raise UsageError(error.where, error.problem, error.hint) from error


def regraded_tasks(tasks: Path, options: Options) -> Sequence[Path] | None:
    """Return the task files of the batches that are graded again; None where there is none.

    What is wrong with them is told once, when the session starts.
    """
    try:
        names = {kept.plan.task.name for kept in named_batches(options)}
    except UsageError:
        return None
    return [tasks / name / "task.toml" for name in sorted(names)]


class Regrading:
    """What `--evalarc-regrade` names; each trial is graded again once, whoever asks first."""

    def __init__(self, evals: EvalSession) -> None:
        self._evals = evals

    @cached_property
    def batches(self) -> tuple[KeptBatch, ...]:
        """The kept batches, one for each task and client.

        Raises:
            UsageError: There is no such batch, or its plan cannot be read.
        """
        return named_batches(self._evals.options)

    @cached_property
    def number(self) -> int:
        """The number of this re-grading: the controller's, so that all workers share it."""
        told: int | None = getattr(self._evals.config, "workerinput", {}).get("evalarc_regrade")
        return told or next_number(self.batches)

    def check(self) -> None:
        """Refuse a batch whose task is gone, or is not as it was.

        Raises:
            UsageError: Names the first field that differs.
        """
        for kept in self.batches:
            folder = self._evals.request.tasks / kept.plan.task.name
            if not (folder / "task.toml").is_file():
                problem = f"is of a task that is not in {self._evals.request.tasks}"
                raise UsageError(f"{OPTION} {kept.folder}", problem, "name it with --evalarc-tasks")
            try:
                task = self._evals.task(folder)
            except TaskProblems as problems:
                first = problems.problems[0]
                raise UsageError(first.where, first.problem, first.hint) from problems
            sandbox = self._evals.sandbox_of(task)
            require_present(kept, task, sandbox=sandbox.name, image=sandbox.image)

    def of(self, task: Task) -> tuple[KeptBatch, ...]:
        """Return the kept batches of a task."""
        return tuple(kept for kept in self.batches if kept.plan.task.name == task.name)

    def again(self, trial: KeptTrial, task: Task) -> Regrade:
        """Return the new grading of a finished trial, made if nobody has; skip what has none.

        Raises:
            SubmissionError: What is kept is not what was graded.
            DocumentError: A document cannot be read or written.
            SetupError: The task's toolchain is not there.
            InfrastructureError: The sandbox cannot be used.
        """
        path = trial.folder / "result.json"
        if not path.exists():
            pytest.skip("the trial has no result, so it is not graded again")
        result = read_model(path, TrialResult)
        require_agreement(result, where=str(path))
        reason = objection(result, trial.folder)
        if reason is not None:
            pytest.skip(f"not graded again: {reason}")
        batch = self._evals.runs.batch(self._evals.default_sandbox)
        return once(
            regrade_path(trial.folder, self.number),
            Regrade,
            lambda: run_regrade(result, trial.folder, task, batch, number=self.number),
            given_up=self._evals.timeouts.expired,
        )

    def documents(self) -> Documents:
        """Write what each batch adds up to now; one where nothing was graded is left alone."""
        reports: list[RegradeReport] = []
        problems: list[DocumentError] = []
        for kept in self.batches:
            if self.number not in numbers(kept.folder):
                continue
            try:
                reports.append(write_regrade(kept.folder, self.number))
            except DocumentError as problem:
                problems.append(problem)
        return Documents(regrades=tuple(reports), problems=tuple(problems))
