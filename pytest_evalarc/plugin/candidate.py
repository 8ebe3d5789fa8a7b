"""The folder that a session judges as a candidate of one task."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.errors import TaskProblems, UsageError
from pytest_evalarc.model.candidate import CandidateDoc, CandidatePlan, EvaluationDoc
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.reporting.candidates import read_evaluation
from pytest_evalarc.runs.candidate import (
    candidate_digest,
    make_candidate_plan,
    refuse_candidate,
    run_candidate,
)
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.resume import require_same

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession

OPTION = "--evalarc-submission"


class Candidate:
    """What `--evalarc-submission` names: graded once, by whichever process asks first."""

    def __init__(self, evals: EvalSession, source: Path) -> None:
        self.source = source
        self._evals = evals
        self._grading: Grading | None = None

    def check(self) -> None:
        """Refuse what is no folder of its own, and more or less than one task.

        Raises:
            UsageError: One sentence.
        """
        where, results = f"{OPTION} {self.source}", self._evals.request.results
        if not self.source.is_dir():
            raise UsageError(where, "is no folder", "name the project that is to be graded")
        if self.source == results or results in self.source.parents:
            raise UsageError(where, "lies in the results", "copy it elsewhere first")
        if self.source in results.parents:
            hint = "name another folder with --evalarc-results"
            raise UsageError(where, f"holds the results in {results}", hint)
        chosen = [path.parent.name for path in self._chosen()]
        if len(chosen) != 1:
            found = f"and these are selected: {', '.join(chosen)}" if chosen else "and none is"
            problem = f"is a candidate of one task, {found}"
            raise UsageError(where, problem, "name one with --evalarc-task")
        self._check_rules()

    def _check_rules(self) -> None:
        """Refuse what the task's pack, if it has one, would not start."""
        (path,) = self._chosen()
        # Its validation tells the problems of an invalid one.
        with contextlib.suppress(TaskProblems):
            task = self._evals.task(path.parent)
            if task.pack is not None:
                refuse_candidate(task, self.source, self._evals.registry.packs.get(task.pack.name))

    def _chosen(self) -> Sequence[Path]:
        """Return the files of the tasks that this session selects."""
        files = sorted(self._evals.request.tasks.glob("*/task.toml"))
        return [path for path in files if self._is_chosen(path)]

    def _is_chosen(self, path: Path) -> bool:
        evals = self._evals
        arguments = [evals.options.argument_path(argument) for argument in evals.config.args]
        is_named = any(path == argument or argument in path.parents for argument in arguments)
        if not is_named or not evals.has_wanted_name(path.parent.name):
            return False
        if evals.is_foreign(path.parent):
            return False
        try:
            return evals.has_wanted_tag(evals.task(path.parent))
        except TaskProblems:
            # Its validation tells them.
            return True

    def grading(self, task: Task) -> Grading:
        """Return the grading of the candidate, made if nobody has.

        Raises:
            UsageError: The batch was planned with another candidate or task.
            SetupError: The task's toolchain is not there.
            InfrastructureError: The sandbox cannot be used.
        """
        if self._grading is None:
            self._grading = self._graded(task).grading
        return self._grading

    def evaluation(self, task: Task) -> EvaluationDoc:
        """Return what the grading of the candidate says."""
        self.grading(task)
        return read_evaluation(self._folder(task))

    def _graded(self, task: Task) -> CandidateDoc:
        evals, folder = self._evals, self._folder(task)
        evals.folders.open_results(folder)
        batch, sandbox = evals.runs.batch(evals.default_sandbox), evals.sandbox_of(task)
        plan = make_candidate_plan(
            task,
            evals.request,
            sandbox=sandbox.name,
            image=sandbox.image,
            candidate_sha256=candidate_digest(task, self.source),
        )
        require_same(once(folder / "plan.json", CandidatePlan, lambda: plan), plan)
        return once(
            folder / "grading.json",
            CandidateDoc,
            lambda: run_candidate(
                task, self.source, batch, folder, candidate_sha256=plan.candidate_sha256
            ),
            given_up=evals.timeouts.expired,
        )

    def _folder(self, task: Task) -> Path:
        return self._evals.folders.candidate(task.name)
