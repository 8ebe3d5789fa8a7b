"""What one process runs and grades, and what that adds up to; imported once something runs."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import DocumentError, EvalArcError, UsageError
from pytest_evalarc.files.lock import GivenUp
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.limits import remove_abandoned_groups
from pytest_evalarc.model.audit import AuditPlan, MutantAudit
from pytest_evalarc.model.controls import REFERENCE
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin.controls import Controls
from pytest_evalarc.plugin.home import brought
from pytest_evalarc.plugin.timeouts import TimedOut
from pytest_evalarc.reporting.batch import Documents, write_documents
from pytest_evalarc.runs.batch import Batch, Parts
from pytest_evalarc.runs.once import mark_of, once
from pytest_evalarc.runs.plan import (
    check_host,
    check_key,
    check_plan,
    make_audit_plan,
    planned_client,
)
from pytest_evalarc.runs.resume import require_same
from pytest_evalarc.runs.shards import NAME, keep_shard
from pytest_evalarc.runs.slots import LocalSlots, Place, Slots

if TYPE_CHECKING:
    from pytest_evalarc.clients.protocol import Client
    from pytest_evalarc.model.planned import PlannedTrial
    from pytest_evalarc.model.transcript import Transcript
    from pytest_evalarc.model.trial import PlanDoc, TrialResult
    from pytest_evalarc.plugin.session import EvalSession, TrialHandle
    from pytest_evalarc.plugin.sharding import Share
    from pytest_evalarc.runs.budget import Budget
    from pytest_evalarc.runs.plan import Plan
    from pytest_evalarc.runs.prepare import Trial
    from pytest_evalarc.treatments.protocol import Treatment

TRAJECTORY = "trajectory.json"
NOBODYS_FAULT = {"not_reached", "budget"}
"""Why a trial may be cancelled without anything being wrong."""


class Runs:
    """One process's trials and controls: each produced once, whichever process asks first.

    What trials alone need is imported with the first one: a quick audit would wait for it longer
    than for some of its controls.
    """

    def __init__(self, evals: EvalSession) -> None:
        self.documents = Documents()
        self._evals = evals
        self._batches: dict[str, Batch] = {}
        self._threads = CaseThreads()
        self._kept_plans: set[Path] = set()
        self.controls = Controls(evals)
        # Whatever ends the session, and however early.
        evals.config.add_cleanup(self.stop)

    def batch(self, sandbox: Sandbox) -> Batch:
        """Return this process's hold on the batch, for a sandbox."""
        if sandbox.name not in self._batches:
            parts = Parts(
                toolchain=self._evals.registry.toolchains.get,
                client=self._evals.registry.clients.get,
                treatment=self._evals.registry.treatments.get,
                pack=self._evals.registry.packs.get,
            )
            self._batches[sandbox.name] = Batch(
                request=self._evals.request,
                parts=parts,
                boundary=sandbox,
                candidates=self._evals.candidate_sandbox,
                cancelled=self._evals.timeouts.expired,
                threads=self._threads,
            )
        return self._batches[sandbox.name]

    def trial(self, handle: TrialHandle, sandbox: Sandbox) -> TrialResult:
        """Return a trial's result, running it if nobody has.

        Raises:
            UsageError: It cannot be run as asked, or the batch was planned otherwise.
            EditedError: The result that is there says otherwise than its own rows.
        """
        from pytest_evalarc.counting.recount import require_agreement

        self._check_plan(handle)
        self._keep_plan(handle.task, handle.plan)
        trial = self._trial(handle, sandbox)
        path = handle.folder / "result.json"
        timeouts = self._evals.timeouts
        try:
            with (
                timeouts.told(),
                brought(self._evals.home, path, given_up=timeouts.expired, paused=timeouts.paused),
            ):
                result, has_run = self._once(handle, trial, path)
                if has_run or self._lacks_trajectory(handle.folder, result):
                    _keep_trajectory(trial, result)
        except TimedOut as error:
            # Another process runs it, and goes on.
            pytest.fail(str(error), pytrace=False)
        if has_run:
            self._evals.config.hook.pytest_evalarc_trial_finished(
                result=result, folder=handle.folder
            )
        else:
            require_agreement(result, where=str(path))
        return result

    def _lacks_trajectory(self, folder: Path, result: TrialResult) -> bool:
        """Whether a process died between a finished trial's result and what is made of it."""
        from pytest_evalarc.model.planned import Outcome

        if self._evals.home is not None or result.outcome is Outcome.CANCELLED:
            return False
        return not (folder / TRAJECTORY).exists()

    def _once(self, handle: TrialHandle, trial: Trial, path: Path) -> tuple[TrialResult, bool]:
        """Return a trial's result, and whether it was this very call that ran it."""
        from pytest_evalarc.model.trial import TrialResult
        from pytest_evalarc.runs.trial import cancelled, run_trial

        ran: list[TrialResult] = []

        def produce() -> TrialResult:
            with self.announced(handle.plan.document, handle.entry):
                ran.append(run_trial(trial))
            return ran[-1]

        result = once(
            path,
            TrialResult,
            produce,
            lost=lambda error: cancelled(
                trial.plan, handle.entry, trial.client, error, folder=handle.folder
            ),
            given_up=self._evals.timeouts.expired,
            turn=lambda: self._turn(handle),
        )
        return result, bool(ran)

    @contextlib.contextmanager
    def _turn(self, handle: TrialHandle) -> Iterator[None]:
        """Wait until a trial may run, and hold what it may run with.

        Its client's slot comes first: what the batch has used up is known once it is held.
        """
        # A controller knows what all hosts hold and have used, and has said that it may run.
        if self._evals.home is not None:
            yield
            return
        place = Place.of(handle.task.name, handle.entry)
        with contextlib.ExitStack() as slot:
            with self._evals.timeouts.paused():
                slot.enter_context(self.slots.held(handle.plan.client, place))
            self._skip_beyond_budget(handle)
            yield

    @cached_property
    def slots(self) -> Slots:
        """What bounds how many trials of a client run at once."""
        limits = self._evals.request.max_parallel
        return LocalSlots(folders=self._evals.folders, limits=limits)

    def announced(
        self, plan: PlanDoc, entry: PlannedTrial, *, host: str | None = None
    ) -> AbstractContextManager[None]:
        """Tell who looks on that a trial runs, here or on another host, where anybody asked to."""
        if not self._evals.options.flag("live"):
            return contextlib.nullcontext()
        from pytest_evalarc.plugin.live import announced

        return announced(self._evals.folders, plan, entry, host=host)

    def _skip_beyond_budget(self, handle: TrialHandle) -> None:
        """Skip what looks at a trial whose round the batch's budget keeps from being started."""
        reason = self.admit(handle.folder, handle.plan.document, handle.entry)
        if reason is not None:
            pytest.skip(f"not started: {reason}")

    def admit(self, folder: Path, plan: PlanDoc, entry: PlannedTrial) -> str | None:
        """Return why the trial of a result folder may not start; None when it may."""
        return self._budget.admit(folder.parent, plan, entry)

    @cached_property
    def _budget(self) -> Budget:
        from pytest_evalarc.runs.budget import Budget

        request = self._evals.request
        return Budget(
            results=request.results,
            batch=request.batch,
            max_tokens=request.max_tokens,
            max_cost_usd=request.max_cost_usd,
            is_free=self._asks_no_model,
        )

    def _asks_no_model(self, plan: PlanDoc) -> bool:
        # The batch may hold trials of a client that nobody offers any more.
        with contextlib.suppress(UsageError):
            return self._evals.registry.clients.get(plan.client_kind).embedded
        return False

    def _check_plan(self, handle: TrialHandle) -> None:
        """Refuse a plan that cannot be run as asked.

        Raises:
            UsageError: The client has nothing to play, or cannot be treated that way.
        """
        client, treatment = self._checked(handle.task, handle.plan)
        # What is finished is read back on any host.
        if not (handle.folder / "result.json").exists():
            staged = self.batch(self._evals.default_sandbox).is_client_staged(handle.plan.client)
            check_host(client, treatment, os.environ, is_staged=staged)

    def _checked(self, task: Task, plan: Plan) -> tuple[Client, Treatment | None]:
        """Return the client and the treatment of a plan that can be run as asked.

        Raises:
            UsageError: It cannot.
        """
        client = planned_client(plan.document, self._evals.registry.clients.get)
        treatment = self._evals.treatment(plan)
        check_key(plan.label, client, os.environ)
        check_plan(task, client, treatment)
        return client, treatment

    def keep_share(self, share: Share) -> None:
        """Write down all that is planned, before the first part of it runs on this machine.

        Every shard keeps the whole plan of each task, of which it may run no trial at all: that is
        what tells whoever merges them what must be there. What is wrong with a plan is left to the
        items that tell it.
        """
        for task, plan in share.plans:
            with contextlib.suppress(EvalArcError):
                self._checked(task, plan)
                self._keep_plan(task, plan)
        for task in share.audits:
            with contextlib.suppress(EvalArcError):
                if self.missing_toolchain(task) is None:
                    self.keep_audit_plan(task)

    def _keep_plan(self, task: Task, plan: Plan) -> None:
        """Write the plan, or see that the batch began with the same.

        Once in a process: the plan of a large batch is large, and every trial needs it.
        """
        from pytest_evalarc.model.trial import PlanDoc

        folder = self._evals.folders.trials(task.name, plan.client)
        if folder not in self._kept_plans:
            self._open(folder)
            require_same(once(folder / "plan.json", PlanDoc, lambda: plan.document), plan.document)
            if self._evals.home is not None:
                self._evals.home.keep_plan(folder / "plan.json", plan.document)
            self._kept_plans.add(folder)

    def keep_audit_plan(self, task: Task) -> AuditPlan:
        """Return the plan of a task's audit, written or seen to be that of the batch.

        Raises:
            UsageError: The batch began with another plan.
        """
        folder, sandbox = self._evals.folders.audit(task.name), self._evals.sandbox_of(task)
        self._open(folder)
        plan = make_audit_plan(task, self._evals.request, sandbox=sandbox.name, image=sandbox.image)
        require_same(once(folder / "plan.json", AuditPlan, lambda: plan), plan)
        if self._evals.home is not None:
            self._evals.home.keep_plan(folder / "plan.json", plan)
        return plan

    def _open(self, folder: Path) -> None:
        """Make a folder of results; of a shard it says so before there is a plan to be read."""
        self._evals.folders.open_results(folder)
        request = self._evals.request
        if request.shard is not None:
            keep_shard(folder / NAME, request.batch, request.shard)

    def _trial(self, handle: TrialHandle, sandbox: Sandbox) -> Trial:
        from pytest_evalarc.runs.prepare import Trial

        session = self._evals.session_sandbox(handle.plan.label)
        return Trial(
            plan=handle.plan.document,
            entry=handle.entry,
            task=handle.task,
            client=planned_client(handle.plan.document, self._evals.registry.clients.get),
            treatment=self._evals.treatment(handle.plan),
            batch=self.batch(sandbox),
            # Whoever brings another sandbox brings it for sessions too.
            boundary=None if session is self._evals.default_sandbox else session,
            folder=handle.folder,
        )

    def transcript(self, handle: TrialHandle) -> Transcript:
        """Return a trial's transcript, read again from its result folder."""
        from pytest_evalarc.runs.trial import read_transcript

        handle.result  # noqa: B018 - asking is what makes the stream be there.
        return read_transcript(self._trial(handle, self._evals.default_sandbox))

    def control(self, task: Task, control: str) -> Grading:
        """Return the grading of one control of a task's audit, graded once."""
        return self.controls.grading(task, control)

    def missing_toolchain(self, task: Task) -> str | None:
        """Return what a task's toolchain lacks here; None when it can be used."""
        return self._evals.registry.toolchains.get(task.toolchain).missing()

    def judge_mutant(self, task: Task, name: str) -> MutantAudit:
        """Return what the audit says of one mutant, beside the reference of the same audit."""
        # The mutant first: another worker may be busy with the reference just now.
        grading = self.control(task, name)
        gradings = {name: grading, REFERENCE: self.control(task, REFERENCE)}
        audit = assess(self.controls.audit(task).plan, gradings)
        return next(found for found in audit.mutants if found.name == name)

    # The end.

    def stop(self) -> None:
        """End everything that is still under way in this process; more than once is no harm."""
        self.controls.stop()
        self._threads.close()

    def finish(self) -> None:
        """Write what the batch adds up to, and remove its working folder."""
        self.documents = self._with_cached(self._written_documents())
        for benchmark, path in self.documents.benchmarks:
            self._evals.config.hook.pytest_evalarc_benchmark(benchmark=benchmark, path=path)
        for audit, path in self.documents.audits:
            self._evals.config.hook.pytest_evalarc_audit(audit=audit, path=path)
        # What a killed session has left: this one may have had nothing to run in its place.
        remove_abandoned_groups()
        self._evals.folders.sweep_results()
        if not self._evals.request.keep:
            self._close_work()

    def _close_work(self) -> None:
        """Remove the working folder; what cannot be removed is told, and fails the session."""
        work = self._evals.folders.work
        try:
            self._evals.folders.close_work()
        except OSError as error:
            problem = f"cannot be removed: {error.strerror or error}"
            left = DocumentError(str(work), problem, "see why, and run pytest-evalarc prune")
            problems = (*self.documents.problems, left)
            self.documents = replace(self.documents, problems=problems)

    def _written_documents(self) -> Documents:
        if self._evals.regrading is not None:
            return self._evals.regrading.documents()
        lost = tuple(self._settle_lost_trials())
        documents = write_documents(self._evals.folders)
        told = {str(problem) for problem in documents.problems}
        more = tuple(problem for problem in lost if str(problem) not in told)
        used = self._budget.summary() if documents.benchmarks else None
        return replace(
            documents,
            problems=(*documents.problems, *more),
            remarks=(used,) if used is not None else (),
        )

    def _with_cached(self, documents: Documents) -> Documents:
        """Return documents with a sentence on the cache, where one was asked for."""
        if self._evals.request.cache is None:
            return documents
        from pytest_evalarc.plugin.regrading import Regrading
        from pytest_evalarc.reporting.cached import cached_of_batch, cached_of_regrades

        work = self._evals.work
        if isinstance(work, Regrading):
            found = cached_of_regrades((kept.folder for kept in work.batches), work.number)
        else:
            found = cached_of_batch(self._evals.folders)
        if not found.graded:
            return documents
        return replace(documents, remarks=(*documents.remarks, str(found)))

    def _settle_lost_trials(self) -> Iterator[DocumentError]:
        """Give a result to every trial whose process died in it and that nobody asked for again.

        Yields what could not be read; the same files keep the benchmark from being written.
        """
        for begun in self._evals.folders.results.glob(
            f"*/*/{self._evals.request.batch}/*/.result.json.begun"
        ):
            try:
                self.settle(begun.with_name("result.json"), None)
            except DocumentError as problem:
                yield problem

    def settle(self, path: Path, cut_off_by: BaseException | None) -> None:
        """Give a result to a trial that was begun and cut off.

        Args:
            path: Its result.json.
            cut_off_by: What cut it off; None for the death of its process.

        Raises:
            DocumentError: Its plan or its result cannot be read, or no result be written.
        """
        from pytest_evalarc.model.trial import PlanDoc, TrialResult
        from pytest_evalarc.runs.trial import cancelled

        plan = read_model(path.parent.parent / "plan.json", PlanDoc)
        entry = next((entry for entry in plan.trials if entry.folder == path.parent.name), None)
        if entry is None:
            return
        client = planned_client(plan, self._evals.registry.clients.get)
        no_time = threading.Event()
        no_time.set()
        # A trial whose lock is held is not lost: another session is at it.
        with contextlib.suppress(GivenUp):
            once(
                path,
                TrialResult,
                lambda: cancelled(plan, entry, client, cut_off_by, folder=path.parent),
                given_up=no_time,
            )
            mark_of(path).unlink(missing_ok=True)

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


def _keep_trajectory(trial: Trial, result: TrialResult) -> None:
    """Write a session down in the form that other programs read, from what was kept of it."""
    from pytest_evalarc.files.atomic import write_atomic
    from pytest_evalarc.reporting.atif import trajectory_document
    from pytest_evalarc.runs.trial import read_transcript

    # Without a session there is no stream, and the full disk that ended a trial may still be full.
    with contextlib.suppress(DocumentError, OSError):
        transcript = read_transcript(trial)
        document = trajectory_document(transcript, result, trial.task.brief.prompt)
        write_atomic(trial.folder / TRAJECTORY, document)
