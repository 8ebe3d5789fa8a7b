"""One trial from its run folder to its result: the stages, and what their order protects."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.clients.embedded.client import client_sha256
from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.benchmark import is_treated
from pytest_evalarc.counting.outcome import code_view, decide_outcome, success_of
from pytest_evalarc.errors import EvalArcError, SetupError, SubmissionError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.manifest import TreeTooLarge
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.grade import grade, ungradable
from pytest_evalarc.grading.lab import SYSTEM_PATH, Lab
from pytest_evalarc.grading.submission import copy_fixtures, copy_starter, keep, read_submission
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Ended, Exit, Policy
from pytest_evalarc.isolation.host import os_name
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.isolation import IsolationRecord, TrialIsolation
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.transcript import Transcript, Usage
from pytest_evalarc.model.trial import (
    Execution,
    Expectations,
    ModelRef,
    PlanDoc,
    PlannedTrial,
    SandboxRef,
    TreatmentRef,
    TrialResult,
    Versioned,
)
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.findings import look_outside
from pytest_evalarc.runs.scripts import script_for
from pytest_evalarc.treatments.protocol import Staged, Treatment

TRANSCRIPT_BYTES = 256 * MIB
"""A stream beyond this ends the session: a structured record is never cut."""
STDERR_BYTES = MIB
STARTUP_S = 120.0
LISTED = 1000
"""Paths that are named of a submission too large to keep."""


@dataclass
class Draft:
    """What is known of a trial so far; it becomes a result on every path."""

    plan: PlanDoc
    entry: PlannedTrial
    client: Client
    execution: Execution = Execution.NOT_STARTED
    setup: Cause | None = None
    cancellation: Cause | None = None
    findings: tuple[Cause, ...] = ()
    audit_findings: tuple[str, ...] = ()
    config_changes: tuple[str, ...] = ()
    started_at: datetime | None = None
    elapsed_s: float | None = None
    usage: Usage | None = None
    policy: JsonValue = None
    isolation: IsolationRecord | None = None
    toolchain: str | None = None
    fmt_step: str = "fmt_check"
    treatment: TreatmentRef | None = None
    grading: Grading | None = None
    expectations: Expectations | None = None
    stages_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add up the wall-clock seconds of a stage."""
        started_s = time.monotonic()
        try:
            yield
        finally:
            spent_s = time.monotonic() - started_s
            self.stages_s[name] = round(self.stages_s.get(name, 0.0) + spent_s, 6)

    def result(self) -> TrialResult:
        """Return the result that all of this amounts to."""
        outcome, cause = decide_outcome(
            self.execution,
            setup=self.setup,
            cancellation=self.cancellation,
            findings=self.findings,
            grading=self.grading,
            decisions=self.expectations.decisions if self.expectations else (),
        )
        return TrialResult(
            schema_version=SCHEMA_VERSION,
            task=self.plan.task,
            client=Versioned(
                name=self.plan.client, version=self.client.version, sha256=client_sha256()
            ),
            model=ModelRef(name=self.plan.model, settings=self.plan.settings),
            mode=self.entry.configuration,
            trial=self.entry.trial,
            order=self.entry.order,
            treatment=self.treatment,
            os=os_name(),
            toolchain=self.toolchain,
            sandbox=_sandbox_ref(self.isolation),
            started_at=self.started_at,
            deadlines_secs=self.plan.deadlines_secs,
            elapsed_secs=self.elapsed_s,
            usage=self.usage,
            execution=self.execution,
            isolation=TrialIsolation(
                mode=self.isolation.level if self.isolation else "enforced",
                audit_findings=self.audit_findings,
                config_changes=self.config_changes,
                record=self.isolation,
                policy=self.policy,
            ),
            code=code_view(self.grading, fmt_step=self.fmt_step) if self.grading else None,
            gradings=(self.grading,) if self.grading else (),
            expectations=self.expectations,
            stages_secs=self.stages_s,
            outcome=outcome,
            cause=cause,
            success=success_of(outcome),
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One planned trial with everything it takes to run it."""

    plan: PlanDoc
    entry: PlannedTrial
    task: Task
    client: Client
    treatment: Treatment | None
    batch: Batch
    folder: Path
    """The result folder."""

    @property
    def layout(self) -> RunLayout:
        """The run folder."""
        return self.batch.folders.run(self.task.name, self.plan.client, self.entry)

    @property
    def is_treated(self) -> bool:
        """Whether the treatment is put in place."""
        return is_treated(self.entry.configuration)


def run_trial(trial: Trial) -> TrialResult:
    """Run one trial; whatever happens in it is an outcome.

    Raises:
        OSError: The result folder cannot be written: the harness itself is broken.
        KeyboardInterrupt: The user, or the caller's timeout, ended it.
    """
    draft = Draft(plan=trial.plan, entry=trial.entry, client=trial.client)
    trial.folder.mkdir(parents=True, exist_ok=True)
    try:
        with draft.stage("prepare"):
            lab, staged = _prepare(trial, draft)
    except (EvalArcError, OSError) as error:
        kind = "prelaunch" if isinstance(error, _PrelaunchError) else "preparation"
        draft.setup = Cause(kind=kind, detail=printable(str(error)))
        _remove_run_folder(trial)
        return draft.result()
    try:
        with draft.stage("session"):
            exit, policy = _session(trial, draft, lab, staged)
        transcript = _read_session(trial, draft, exit, policy)
        # The client is dead, and so is all it started: what it left can be read at rest.
        with draft.stage("grade"):
            _grade_submission(trial, draft, lab)
        if trial.treatment is not None and trial.is_treated:
            _decide(trial, trial.treatment, draft, staged, transcript)
    finally:
        with draft.stage("remove"):
            _remove_run_folder(trial)
    return draft.result()


def cancelled(
    plan: PlanDoc, entry: PlannedTrial, client: Client, error: BaseException | None
) -> TrialResult:
    """Return the result of a trial that was cut off: cancelled, and never run again.

    Args:
        plan: The plan it is of.
        entry: The trial.
        client: Its client.
        error: What cut it off; None for the death of the process that ran it.
    """
    draft = Draft(plan=plan, entry=entry, client=client)
    if error is None:
        cause = Cause(kind="worker_crash", detail="the process that ran it died")
    elif isinstance(error, KeyboardInterrupt) or type(error).__module__.startswith("_pytest"):
        word = str(error)
        kind = "pytest_timeout" if "imeout" in word else "interrupted"
        cause = Cause(kind=kind, detail=printable(word) or "the session was interrupted")
    else:
        cause = Cause(kind="interrupted", detail=printable(repr(error)))
    draft.cancellation = cause
    return draft.result()


class _PrelaunchError(SetupError):
    """A pre-launch check failed."""


def _prepare(trial: Trial, draft: Draft) -> tuple[Lab, Staged | None]:
    """Make the run folder, prove that nothing of the treatment is there, then put it in place."""
    started_s = time.monotonic()
    task, layout = trial.task, trial.layout
    lab = trial.batch.lab(task)
    draft.toolchain = lab.toolchain.version
    draft.fmt_step = lab.toolchain.fmt_step
    draft.isolation = lab.sandbox.record(task.limits)
    remove_tree(layout.root)
    for folder in (*layout.writable, layout.bin):
        folder.mkdir(parents=True)
    copy_starter(task, layout.project)
    copy_fixtures(task, layout.fixtures)
    (layout.bin / "sh").symlink_to("/bin/sh")
    treatment, staged = trial.treatment, None
    if treatment is not None:
        try:
            treatment.prelaunch(layout, trial.client.needs, treated=trial.is_treated)
        except SetupError as error:
            raise _PrelaunchError(error.where, error.problem, error.hint) from error
        if trial.is_treated:
            staged = treatment.stage(task, trial.client.needs, layout)
            treatment.verify(staged)
            draft.treatment = treatment.ref(staged)
    spent_s = time.monotonic() - started_s
    if spent_s > task.deadlines.setup:
        raise SetupError(
            f"task {task.name}: preparing {trial.entry.folder}",
            f"took {spent_s:.0f} s, longer than its deadline of {task.deadlines.setup:.0f} s",
            "raise [deadlines] setup",
        )
    return lab, staged


def _session(trial: Trial, draft: Draft, lab: Lab, staged: Staged | None) -> tuple[Exit, Policy]:
    """Let the client work in the sandbox, and end everything it started."""
    task, layout = trial.task, trial.layout
    program = trial.batch.client_program(trial.client)
    command = trial.client.launch(
        task.brief,
        layout,
        python=lab.tools.bins[0] / "python3",
        program_dir=program,
        env={**session_env(layout, lab), **(staged.env if staged else {})},
        model=trial.plan.model,
        settings=trial.plan.settings,
        script=script_for(
            trial.client,
            task,
            trial.entry,
            staged=staged,
            settings=trial.plan.settings,
            project=trial.batch.request.project,
        ),
    )
    policy = Policy(
        read=(
            layout.root,
            program,
            lab.tools.root,
            *lab.tools.reads,
            *(staged.reads if staged else ()),
        ),
        deny_read=trial.batch.deny_read,
        write=layout.writable,
        domains=trial.client.needs.domains,
        limits=task.limits,
    )
    draft.policy = policy_document(policy)
    write_atomic(trial.folder / f"{lab.sandbox.name}.json", dumps(draft.policy))
    draft.started_at = datetime.now(UTC)
    exit = _supervised(trial, command, policy, lab)
    draft.elapsed_s = round(exit.wall_time_s, 6)
    return exit, policy


def _supervised(trial: Trial, command: Command, policy: Policy, lab: Lab) -> Exit:
    with (
        (trial.folder / "transcript.jsonl").open("wb") as stream,
        (trial.folder / "stderr.log").open("wb") as complaints,
    ):
        exit = supervise(
            lab.sandbox.wrap(command, policy),
            Watch(
                total_s=trial.task.deadlines.agent,
                startup_s=STARTUP_S,
                output_limit_bytes=TRANSCRIPT_BYTES,
                polite=True,
                cancelled=lab.cancelled,
            ),
            stdout=Capture(TRANSCRIPT_BYTES, file=stream),
            stderr=Capture(STDERR_BYTES // 2, STDERR_BYTES // 2, file=complaints),
        )
    if exit.reason is Ended.CANCELLED:
        raise KeyboardInterrupt("the session was cancelled")
    return exit


def _read_session(trial: Trial, draft: Draft, exit: Exit, policy: Policy) -> Transcript:
    """Read what the client said, and decide how its session ended."""
    transcript = trial.client.read(trial.folder / "transcript.jsonl", exit, trial.layout)
    write_atomic(trial.folder / "response.txt", printable(transcript.response, limit=MIB).encode())
    draft.usage = transcript.usage
    draft.execution = execution_of(exit, transcript)
    found = look_outside(transcript, policy, trial.layout.project)
    draft.findings, draft.audit_findings = found.escapes, found.attempts
    return transcript


def read_transcript(trial: Trial) -> Transcript:
    """Return the transcript of a finished trial, read again from the kept stream."""
    path = trial.folder / "transcript.jsonl"
    kept = Exit(
        reason=Ended.EXITED,
        status=None,
        stdout_bytes=path.stat().st_size,
        stderr_bytes=0,
        wall_time_s=0.0,
    )
    return trial.client.read(path, kept, trial.layout)


def execution_of(exit: Exit, transcript: Transcript) -> Execution:
    """Return how a session ended: our own deadline first, then what the client says.

    A completion event counts only if the client gave it before it was signalled; an exit status
    decides nothing.
    """
    if exit.reason in (Ended.DEADLINE, Ended.STARTUP, Ended.IDLE):
        return Execution.TIMEOUT
    completed = transcript.completion is not None and not transcript.completion.is_error
    if exit.reason in (Ended.EXITED, Ended.FINISHED) and completed:
        return Execution.COMPLETED
    return Execution.CLIENT_ERROR


def _grade_submission(trial: Trial, draft: Draft, lab: Lab) -> None:
    """Keep what was left exactly as it is, then grade the kept copy."""
    try:
        submission = keep(read_submission(trial.layout.project), trial.folder)
    except SubmissionError as error:
        if isinstance(error, TreeTooLarge):
            write_atomic(trial.folder / "submission-listing.txt", listing(trial.layout.project))
        cause = Cause(kind="invalid_submission", detail=printable(str(error)))
        draft.grading = ungradable(trial.task, lab, cause)
        return
    draft.grading = grade(trial.task, submission, lab, outputs=trial.folder / "grading")


def _decide(
    trial: Trial, treatment: Treatment, draft: Draft, staged: Staged | None, transcript: Transcript
) -> None:
    evidence = treatment.collect(staged, trial.layout, transcript)
    draft.config_changes = evidence.config_changes
    draft.expectations = treatment.decide(trial.task.expected, evidence)
    if evidence.unplanned:
        names = printable(", ".join(evidence.unplanned), limit=400)
        mismatch = Cause(kind="arm_mismatch", detail=f"the client offers unplanned skills: {names}")
        draft.findings = (*draft.findings, mismatch)


def session_env(layout: RunLayout, lab: Lab) -> dict[str, str]:
    """Return the whole environment of a client session; equal in all configurations."""
    return {
        "HOME": str(layout.home),
        "PATH": os.pathsep.join(
            [str(layout.bin), *(str(path) for path in lab.tools.bins), *SYSTEM_PATH]
        ),
        "TMPDIR": str(layout.tmp),
        "CARGO_HOME": str(layout.cargo_home),
        "EVAL_EVIDENCE_DIR": str(layout.evidence),
        "SYMPOSIUM_HOOK_TRACE": str(layout.evidence / "hook-trace.jsonl"),
        "LANG": "C.UTF-8",
        **lab.tools.env,
    }


def policy_document(policy: Policy) -> JsonValue:
    """Return a policy in the shape that results keep it in."""

    def paths(values: tuple[Path, ...]) -> list[JsonValue]:
        return [str(value) for value in values]

    return {
        "filesystem": {
            "denyRead": paths(policy.deny_read),
            "allowRead": paths(policy.read),
            "allowWrite": paths(policy.write),
            "denyWrite": [],
        },
        "network": {"allowedDomains": list(policy.domains), "deniedDomains": []},
    }


def listing(project: Path, most: int = LISTED) -> bytes:
    """Return the first paths of a folder too large to keep, one a line."""
    lines: list[str] = []
    for folder, _, files in os.walk(project):
        lines += [str((Path(folder) / name).relative_to(project)) for name in files]
        if len(lines) >= most:
            lines = [*lines[:most], "… and more"]
            break
    return "".join(f"{printable(line, limit=400)}\n" for line in lines).encode()


def _sandbox_ref(record: IsolationRecord | None) -> SandboxRef | None:
    if record is None:
        return None
    return SandboxRef(
        name=record.sandbox, version=record.version, sha256=record.sha256, limits=record.limits
    )


def _remove_run_folder(trial: Trial) -> None:
    if not trial.batch.request.keep:
        remove_tree(trial.layout.root)
