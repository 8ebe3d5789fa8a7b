"""What one process holds of the evals: the request, the registry, and handles on trials."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.counting.audit import REFERENCE, assess
from pytest_evalarc.counting.benchmark import is_treated
from pytest_evalarc.errors import DocumentError, EvalArcError, SetupError, UsageError
from pytest_evalarc.files.lock import GivenUp
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.model.audit import AuditPlan, ControlDoc, MutantAudit
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.transcript import Transcript
from pytest_evalarc.model.trial import PlanDoc, PlannedTrial, TrialResult
from pytest_evalarc.plugin.asked import as_client, as_request
from pytest_evalarc.plugin.options import Options
from pytest_evalarc.plugin.timeouts import TimedOut, Timeouts
from pytest_evalarc.registry import builtin
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.reporting.batch import Documents, write_documents
from pytest_evalarc.runs.batch import Batch, Parts, sandbox_name
from pytest_evalarc.runs.control import run_control
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.plan import (
    check_host,
    check_plan,
    make_audit_plan,
    make_plan,
    planned_client,
)
from pytest_evalarc.runs.request import ClientLabel, Request
from pytest_evalarc.runs.resume import require_same
from pytest_evalarc.runs.trial import Trial, cancelled, read_transcript, run_trial
from pytest_evalarc.tasks.load import is_foreign, load_task, prompt_warnings

if TYPE_CHECKING:
    from pytest_evalarc.plugin.candidate import Candidate
    from pytest_evalarc.plugin.regrading import Regrading

DEFAULT_CLIENT = "oracle"
NOBODYS_FAULT = {"not_reached", "budget"}
"""Why a trial may be cancelled without anything being wrong."""
NO_CLIENTS = ("validate", "audit", "submission")
"""What may follow the task file in a node id and is no client."""


class TrialHandle:
    """One trial of a plan: lazy, run at most once by whichever process asks first."""

    def __init__(self, evals: EvalSession, task: Task, plan: PlanDoc, entry: PlannedTrial) -> None:
        self.task = task
        self.plan = plan
        self.entry = entry
        self._evals = evals
        self._sandbox: Sandbox | None = None
        self._result: TrialResult | None = None

    def use(self, sandbox: Sandbox) -> None:
        """Run the trial in this sandbox, should it be this process that runs it."""
        self._sandbox = sandbox

    @property
    def is_treated(self) -> bool:
        """Whether the trial's configuration has the treatment."""
        return is_treated(self.entry.configuration)

    @property
    def configuration(self) -> str:
        """The trial's configuration, as `with-skills`."""
        return self.entry.configuration

    @property
    def number(self) -> int:
        """The trial's number in its configuration, from 1."""
        return self.entry.trial

    @property
    def folder(self) -> Path:
        """The trial's result folder."""
        return self._evals.folders.trials(self.task.name, self.plan.client) / self.entry.folder

    @property
    def result(self) -> TrialResult:
        """The finished trial; asking runs it if nobody has."""
        if self._result is None:
            self._result = self._evals.run_once(self, self._sandbox or self._evals.default_sandbox)
        return self._result

    @property
    def grading(self) -> Grading | None:
        """The last grading of what the trial left; None when nothing was graded."""
        return self.result.gradings[-1] if self.result.gradings else None

    @property
    def submission(self) -> Path:
        """The project as the agent left it."""
        self.result  # noqa: B018 - asking is what makes it be there.
        return self.folder / "submission"

    @property
    def transcript(self) -> Transcript:
        """What the client did, read again from the kept stream."""
        return self._evals.transcript(self)


class EvalSession:
    """One process's evals; made when the first task is collected."""

    def __init__(
        self, config: pytest.Config, request: Request, registry: Registry, options: Options
    ) -> None:
        self.config = config
        self.request = request
        self.registry = registry
        self.options = options
        self.timeouts = Timeouts()
        self.documents = Documents()
        self._tasks: dict[Path, Task | EvalArcError] = {}
        self._batches: dict[str, Batch] = {}
        self._controls: dict[tuple[str, str], Grading] = {}
        self._plans: dict[tuple[str, str], PlanDoc] = {}
        self._kept_plans: set[Path] = set()
        self._handles: dict[Path, TrialHandle] = {}

    @classmethod
    def of(cls, config: pytest.Config, tasks: Path, *, batch: str) -> EvalSession:
        """Return the session of a configured pytest.

        Raises:
            pytest.UsageError: An option is wrong, or names what is not there.
        """
        options = Options(config)
        if not config.pluginmanager.has_plugin("evalarc-builtin"):
            config.pluginmanager.register(builtin, "evalarc-builtin")
        try:
            registry = Registry.of(config.pluginmanager)
            request = as_request(config, options, registry, tasks=tasks, batch=batch)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        return cls(config, request, registry, options)

    def check_request(self) -> None:
        """Refuse clients of node ids that are not there, and a sandbox that nobody allowed.

        Raises:
            UsageError: One sentence.
        """
        sandbox_name(self.request)
        if self.work is not None:
            self.work.check()
            return
        for _, path, _ in self.node_ids_in_arguments():
            self.clients_for(path)

    @cached_property
    def work(self) -> Candidate | Regrading | None:
        """What is only graded, in place of audits and trials; None in every other session.

        Raises:
            UsageError: Both kinds of it are asked for.
        """
        from pytest_evalarc.plugin.candidate import Candidate
        from pytest_evalarc.plugin.regrading import Regrading

        is_candidate = self.options.was_given("submission")
        if is_candidate and self.options.was_given("regrade"):
            problem = "cannot be combined with --evalarc-submission"
            raise UsageError("--evalarc-regrade", problem, "run one after the other")
        if is_candidate:
            source = self.options.path("submission", Path())
            return Candidate(self, Path(os.path.realpath(source)))
        return Regrading(self) if self.options.was_given("regrade") else None

    @property
    def regrade_number(self) -> int | None:
        """The number of this session's re-grading; None when it is none."""
        from pytest_evalarc.plugin.regrading import Regrading

        return self.work.number if isinstance(self.work, Regrading) else None

    @property
    def folders(self) -> Folders:
        """Where everything of the batch is."""
        return Folders(
            eval_root=self.request.eval_root,
            results=self.request.results,
            batch=self.request.batch,
        )

    # Tasks.

    def is_foreign(self, folder: Path) -> bool:
        """Whether a task file belongs to another tool."""
        return is_foreign(folder)

    def task(self, folder: Path) -> Task:
        """Return the task of a folder, read once.

        Raises:
            TaskProblems: It is not valid; all problems together.
        """
        if folder not in self._tasks:
            try:
                self._tasks[folder] = load_task(
                    folder,
                    root=self.request.project,
                    toolchains=self.registry.toolchains.names,
                )
            except EvalArcError as error:
                self._tasks[folder] = error
        found = self._tasks[folder]
        if isinstance(found, EvalArcError):
            raise found
        return found

    def doubts(self, task: Task) -> tuple[str, ...]:
        """Return what is doubtful in a valid task."""
        return prompt_warnings(task)

    def has_wanted_name(self, name: str) -> bool:
        """Whether `--evalarc-task` selects a task; it selects all when it is not given."""
        return _matches((name,), self.options.texts("task"))

    def has_wanted_tag(self, task: Task) -> bool:
        """Whether `--evalarc-tag` selects a task; it selects all when it is not given."""
        return _matches(task.tags, self.options.texts("tag"))

    # Plans.

    def clients_for(self, path: Path) -> tuple[ClientLabel, ...]:
        """Return the clients whose trials are collected for a task file.

        Raises:
            UsageError: A node id names a client that is not there.
        """
        if self.options.are_trials_asked_for() and self.request.clients:
            return self.request.clients
        below = [names[0] for _, file, names in self.node_ids_in_arguments() if file == path]
        labels = [name for name in below if name not in NO_CLIENTS]
        if not labels and self.options.are_trials_asked_for():
            labels = [DEFAULT_CLIENT]
        return tuple(self._label(label) for label in dict.fromkeys(labels))

    def node_ids_in_arguments(self) -> Iterator[tuple[str, Path, list[str]]]:
        """Yield each argument that is a node id below a task file, that file, and the names."""
        for argument in self.config.args:
            path = self.options.argument_path(argument)
            _, *names = argument.split("::")
            if names and path.parent.parent == self.request.tasks:
                yield argument, path, names

    def _label(self, label: str) -> ClientLabel:
        known = {client.label: client for client in self.request.clients}
        return known.get(label) or as_client(label, self.config, self.options, self.registry)

    def plan(self, task: Task, label: ClientLabel) -> PlanDoc:
        """Return the planned trials of a task and client."""
        key = (task.name, label.label)
        if key not in self._plans:
            sandbox = sandbox_name(self.request)
            self._plans[key] = make_plan(task, self.request, label, sandbox=sandbox)
        return self._plans[key]

    def plan_of(self, task: Task, label: str) -> PlanDoc:
        """Return the planned trials of a task and the client behind a label."""
        return self.plan(task, self._label(label))

    def handle(self, task: Task, plan: PlanDoc, entry: PlannedTrial) -> TrialHandle:
        """Return the handle on one trial, the same for all who ask."""
        made = TrialHandle(self, task, plan, entry)
        return self._handles.setdefault(made.folder, made)

    def _check_plan(self, handle: TrialHandle) -> None:
        """Refuse a plan that cannot be run as asked.

        Raises:
            UsageError: The client has nothing to play, or cannot be treated that way.
        """
        client = planned_client(handle.plan, self.registry.clients.get)
        treatment = handle.plan.treatment
        check_plan(
            handle.task, client, self.registry.treatments.get(treatment) if treatment else None
        )
        # What is finished is read back on any host.
        if not (handle.folder / "result.json").exists():
            check_host(client, os.environ)

    # What is produced once.

    @cached_property
    def default_sandbox(self) -> Sandbox:
        """The sandbox that the options choose."""
        return self.registry.sandboxes.get(sandbox_name(self.request))

    def batch(self, sandbox: Sandbox) -> Batch:
        """Return this process's hold on the batch, for a sandbox."""
        if sandbox.name not in self._batches:
            parts = Parts(
                toolchain=self.registry.toolchains.get,
                client=self.registry.clients.get,
                treatment=self.registry.treatments.get,
            )
            self._batches[sandbox.name] = Batch(
                request=self.request, parts=parts, boundary=sandbox, cancelled=self.timeouts.expired
            )
        return self._batches[sandbox.name]

    def run_once(self, handle: TrialHandle, sandbox: Sandbox) -> TrialResult:
        """Return a trial's result, running it if nobody has.

        Raises:
            UsageError: It cannot be run as asked, or the batch was planned otherwise.
        """
        self._check_plan(handle)
        self._keep_plan(handle)
        trial = self._trial(handle, sandbox)
        ran: list[TrialResult] = []

        def produce() -> TrialResult:
            ran.append(run_trial(trial))
            return ran[-1]

        try:
            with self.timeouts.told():
                result = once(
                    handle.folder / "result.json",
                    TrialResult,
                    produce,
                    lost=lambda error: cancelled(
                        handle.plan, handle.entry, trial.client, error, folder=handle.folder
                    ),
                    given_up=self.timeouts.expired,
                )
        except TimedOut as error:
            # Another process runs it, and goes on.
            pytest.fail(str(error), pytrace=False)
        if ran:
            self.config.hook.pytest_evalarc_trial_finished(result=result, folder=handle.folder)
        return result

    def _keep_plan(self, handle: TrialHandle) -> None:
        """Write the plan, or see that the batch began with the same.

        Once in a process: the plan of a large batch is large, and every trial needs it.
        """
        folder = self.folders.trials(handle.task.name, handle.plan.client)
        if folder not in self._kept_plans:
            self.folders.open_results(folder)
            require_same(once(folder / "plan.json", PlanDoc, lambda: handle.plan), handle.plan)
            self._kept_plans.add(folder)

    def _trial(self, handle: TrialHandle, sandbox: Sandbox) -> Trial:
        treatment = handle.plan.treatment
        return Trial(
            plan=handle.plan,
            entry=handle.entry,
            task=handle.task,
            client=planned_client(handle.plan, self.registry.clients.get),
            treatment=self.registry.treatments.get(treatment) if treatment else None,
            batch=self.batch(sandbox),
            folder=handle.folder,
        )

    def transcript(self, handle: TrialHandle) -> Transcript:
        """Return a trial's transcript, read again from its result folder."""
        handle.result  # noqa: B018 - asking is what makes the stream be there.
        return read_transcript(self._trial(handle, self.default_sandbox))

    def control(self, task: Task, control: str) -> Grading:
        """Return the grading of one control of a task's audit, graded once."""
        key = (task.name, control)
        if key not in self._controls:
            self._skip_without_toolchain(task)
            folder = self.folders.audit(task.name)
            self.folders.open_results(folder)
            batch = self.batch(self.default_sandbox)
            plan = make_audit_plan(task, self.request, sandbox=batch.boundary.name)
            require_same(once(folder / "plan.json", AuditPlan, lambda: plan), plan)
            try:
                with self.timeouts.told():
                    document = once(
                        folder / "rows" / f"{control}.json",
                        ControlDoc,
                        lambda: run_control(task, control, batch),
                        given_up=self.timeouts.expired,
                    )
            except TimedOut as error:
                pytest.fail(str(error), pytrace=False)
            self._controls[key] = document.grading
        return self._controls[key]

    def _skip_without_toolchain(self, task: Task) -> None:
        missing = self.registry.toolchains.get(task.toolchain or "").missing()
        if missing is None:
            return
        if self.options.on_command_line("task"):
            raise SetupError(f"task {task.name}: toolchain {task.toolchain}", missing)
        pytest.skip(f"toolchain {task.toolchain}: {missing}")

    def judge_mutant(self, task: Task, name: str) -> MutantAudit:
        """Return what the audit says of one mutant, beside the reference of the same audit."""
        # The mutant first: another worker may be busy with the reference just now.
        grading = self.control(task, name)
        controls = {name: grading, REFERENCE: self.control(task, REFERENCE)}
        plan = read_model(self.folders.audit(task.name) / "plan.json", AuditPlan)
        audit = assess(plan, controls)
        return next(found for found in audit.mutants if found.name == name)

    # The end.

    def finish(self) -> None:
        """Write what the batch adds up to, and remove its working folder."""
        self.documents = self._written_documents()
        for benchmark, path in self.documents.benchmarks:
            self.config.hook.pytest_evalarc_benchmark(benchmark=benchmark, path=path)
        for audit, path in self.documents.audits:
            self.config.hook.pytest_evalarc_audit(audit=audit, path=path)
        if not self.request.keep:
            self.folders.close_work()

    def _written_documents(self) -> Documents:
        from pytest_evalarc.plugin.regrading import Regrading

        if isinstance(self.work, Regrading):
            return self.work.documents()
        lost = tuple(self._settle_lost_trials())
        documents = write_documents(self.folders)
        told = {str(problem) for problem in documents.problems}
        more = tuple(problem for problem in lost if str(problem) not in told)
        return replace(documents, problems=(*documents.problems, *more))

    def _settle_lost_trials(self) -> Iterator[DocumentError]:
        """Give a result to every trial whose process died in it and that nobody asked for again.

        Yields what could not be read; the same files keep the benchmark from being written.
        """
        for begun in self.folders.results.glob(f"*/*/{self.request.batch}/*/.result.json.begun"):
            try:
                self._settle(begun)
            except DocumentError as problem:
                yield problem

    def _settle(self, begun: Path) -> None:
        plan = read_model(begun.parent.parent / "plan.json", PlanDoc)
        entry = next((entry for entry in plan.trials if entry.folder == begun.parent.name), None)
        if entry is None:
            return
        client = planned_client(plan, self.registry.clients.get)
        result = begun.with_name("result.json")
        no_time = threading.Event()
        no_time.set()
        # A trial whose lock is held is not lost: another session is at it.
        with contextlib.suppress(GivenUp):
            once(
                result,
                TrialResult,
                lambda: cancelled(plan, entry, client, None, folder=result.parent),
                given_up=no_time,
            )
            begun.unlink(missing_ok=True)

    @property
    def is_broken(self) -> bool:
        """Whether the harness failed: a trial that could not run, or a document not written."""
        if any(not evaluation.valid for evaluation, _ in self.documents.evaluations):
            return True
        return bool(self.documents.problems) or any(
            counted.causes.get("setup_failures")
            or counted.causes.get("cancelled", {}).keys() - NOBODYS_FAULT
            for benchmark, _ in self.documents.benchmarks
            for counted in benchmark.configurations.values()
        )


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.filter(names, pattern) for pattern in patterns)
