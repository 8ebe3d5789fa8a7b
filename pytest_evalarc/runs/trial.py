"""One trial from its run folder to its result: the stages, and what their order protects."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.counting.plan import is_treated
from pytest_evalarc.errors import DocumentError, SetupError, SubmissionError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.grade import grade, ungradable
from pytest_evalarc.grading.lab import FileLab, PackLab, pack_of
from pytest_evalarc.grading.submission import Submission, copy_fixtures, make_control
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.isolation.command import Command, Ended, Exit, Policy
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.controls import STARTER
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Plugin, Task
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.draft import Draft
from pytest_evalarc.runs.evidence import keep_evidence, keep_submission, keep_traceback, told
from pytest_evalarc.runs.findings import look_outside
from pytest_evalarc.runs.redaction import Redaction
from pytest_evalarc.runs.scripts import script_for
from pytest_evalarc.runs.session import (
    TRANSCRIPT,
    Ready,
    execution_of,
    given_env,
    policy_document,
    run_session,
    secrets_of,
    session_env,
)
from pytest_evalarc.runs.visible import require_visible
from pytest_evalarc.tasks.plugins import plugins_in
from pytest_evalarc.treatments.protocol import Staged, Treatment


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
        KeyboardInterrupt: The user ended it.
        Exception: The harness itself is broken: the result folder cannot be written, or a client
            or treatment cannot read what was left. What the session left is kept by then.
    """
    draft = Draft(plan=trial.plan, entry=trial.entry, client=trial.client)
    trial.folder.mkdir(parents=True, exist_ok=True)
    try:
        _run_stages(trial, draft)
    except KeyboardInterrupt:
        # A timeout of its item ends this trial alone, and the user's interrupt the session.
        if not trial.batch.cancelled.is_set():
            raise
        draft.cancellation = Cause(
            kind=CauseKind.PYTEST_TIMEOUT, detail="its test was given no more time"
        )
    finally:
        with draft.stage("remove"):
            _remove_run_folder(trial)
    return draft.result()


def cancelled(
    plan: PlanDoc,
    entry: PlannedTrial,
    client: Client,
    error: BaseException | None,
    *,
    folder: Path | None = None,
) -> TrialResult:
    """Return the result of a trial that was cut off: cancelled, and never run again.

    Args:
        plan: The plan it is of.
        entry: The trial.
        client: Its client.
        error: What cut it off; None for the death of the process that ran it.
        folder: Its result folder, in which a process that died could not strike secrets out.
    """
    draft = Draft(plan=plan, entry=entry, client=client)
    draft.redaction = Redaction(secrets_of(client.needs, os.environ))
    if folder is not None:
        draft.strike(folder)
    draft.cancellation = _cut_off_by(error)
    return draft.result()


def read_transcript(trial: Trial) -> Transcript:
    """Return the transcript of a finished trial, read again from the kept stream.

    Raises:
        DocumentError: There is no stream: the session never started, or its file is gone.
    """
    path = trial.folder / TRANSCRIPT
    try:
        size = path.stat().st_size
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise DocumentError(str(path), problem, "a trial without a session has none") from error
    kept = Exit(
        reason=Ended.EXITED, status=None, stdout_bytes=size, stderr_bytes=0, wall_time_s=0.0
    )
    return trial.client.read(path, kept, trial.layout)


def _cut_off_by(error: BaseException | None) -> Cause:
    if error is None:
        return Cause(kind=CauseKind.WORKER_CRASH, detail="the process that ran it died")
    if isinstance(error, Exception):
        return Cause(kind=CauseKind.INTERRUPTED, detail=f"the harness broke: {told(error)}")
    word = printable(str(error))
    # What pytest-timeout raises is pytest's own failure, known by its words alone.
    is_timeout = not isinstance(error, KeyboardInterrupt) and word.startswith("Timeout")
    kind = CauseKind.PYTEST_TIMEOUT if is_timeout else CauseKind.INTERRUPTED
    return Cause(kind=kind, detail=word or "the session was interrupted")


def _run_stages(trial: Trial, draft: Draft) -> None:
    """Prepare, let the client work, keep what it left, grade that, decide expectations."""
    ready = _prepared(trial, draft)
    if ready is None:
        return
    with _struck(trial, draft):
        with draft.stage("session"):
            exit = _session(trial, draft, ready)
        if draft.setup is not None:
            return
        # The client is dead, and so is all it started: what it left can be read at rest. It is
        # kept before anything is made of it, so that no later failure loses it.
        with draft.stage("keep"):
            submission = _keep(trial, draft, ready.lab)
    transcript = _read_session(trial, draft, exit, ready)
    _compare_offer(draft, ready.staged, transcript)
    if submission is not None:
        with draft.stage("grade"), _struck(trial, draft):
            draft.grading = _graded(trial, _as_left(trial, draft, submission), ready.lab)
    if trial.treatment is not None and trial.is_treated:
        _decide(trial, trial.treatment, draft, ready.staged, transcript)


@contextlib.contextmanager
def _struck(trial: Trial, draft: Draft) -> Iterator[None]:
    """Leave no secret of the client's in the result folder, whatever cuts the block off."""
    try:
        yield
    finally:
        draft.strike(trial.folder)


def _as_left(trial: Trial, draft: Draft, submission: Submission) -> Submission:
    """Return what is graded: the kept copy, unless secrets were struck out of that."""
    if any(path.startswith(f"{submission.root.name}/") for path in draft.redacted_files):
        return replace(submission, root=trial.layout.project)
    return submission


def _prepared(trial: Trial, draft: Draft) -> Ready | None:
    """Return the trial prepared; None, and the cause in the draft, when that is not possible."""
    try:
        with draft.stage("prepare"):
            return _prepare(trial, draft)
    except Exception as error:
        # A plugin's toolchain, treatment or client may raise anything; nothing has started yet.
        keep_traceback(error, trial.folder)
        draft.setup = Cause(kind=_setup_kind(error), detail=told(error))
        return None


class _PrelaunchError(SetupError):
    """A pre-launch check failed."""


def _setup_kind(error: Exception) -> CauseKind:
    failed_check = isinstance(error, _PrelaunchError)
    return CauseKind.PRELAUNCH if failed_check else CauseKind.PREPARATION


def _prepare(trial: Trial, draft: Draft) -> Ready:
    """Make the run folder, put the treatment in place, and render how the client starts."""
    started_s = time.monotonic()
    lab = trial.batch.lab(trial.task)
    draft.toolchain = lab.toolchain.version
    draft.fmt_step = lab.toolchain.fmt_step
    sandbox = trial.batch.sandbox
    draft.isolation = sandbox.record(trial.task.limits)
    tools = trial.batch.tools(trial.task)
    _make_run_folder(trial, lab)
    staged = _treat(trial, draft, session_env(trial.layout, tools))
    program = trial.batch.client_program(trial.plan.client, trial.client)
    command = _command(trial, lab, tools, staged, program)
    draft.redaction = Redaction(command.secrets)
    policy = _policy(trial, lab, tools, staged, program)
    if sandbox.name != "local":
        require_visible(Path(command.argv[0]), policy)
    draft.policy = policy_document(policy)
    write_atomic(trial.folder / f"{sandbox.name}.json", dumps(draft.policy))
    _require_in_time(trial, time.monotonic() - started_s)
    return Ready(
        lab=lab,
        staged=staged,
        policy=policy,
        wrapped=sandbox.wrap(command, policy),
        watcher=trial.client.watcher(),
    )


def _make_run_folder(trial: Trial, lab: FileLab | PackLab) -> None:
    layout = trial.layout
    remove_tree(layout.root)
    for folder in (*layout.writable, layout.bin):
        folder.mkdir(parents=True)
    make_control(trial.task, STARTER, layout.project, pack=pack_of(lab))
    copy_fixtures(trial.task, layout.fixtures)
    (layout.bin / "sh").symlink_to("/bin/sh")


def _treat(trial: Trial, draft: Draft, env: Mapping[str, str]) -> Staged | None:
    """Prove that nothing of the treatment is there, then put it in place where it is planned."""
    treatment, needs, layout = trial.treatment, trial.client.needs, trial.layout
    if treatment is None:
        return None
    try:
        treatment.prelaunch(layout, needs, treated=trial.is_treated, env=env)
    except SetupError as error:
        raise _PrelaunchError(error.where, error.problem, error.hint) from error
    if not trial.is_treated:
        return None
    noise = _noise(trial.task) if trial.entry.configuration == "noise" else ()
    staged = treatment.stage(trial.task, needs, layout, env=env, noise=noise)
    treatment.verify(staged)
    draft.treatment = treatment.ref(staged)
    return staged


def _noise(task: Task) -> tuple[Plugin, ...]:
    """Return all other plugins that lie beside the folder of tasks."""
    own = {os.path.realpath(plugin.root) for plugin in task.plugins}
    beside = plugins_in(task.root.parent.parent / "plugins")
    return tuple(plugin for plugin in beside if os.path.realpath(plugin.root) not in own)


def _command(
    trial: Trial, lab: FileLab | PackLab, tools: Tools, staged: Staged | None, program: Path
) -> Command:
    settings = trial.plan.settings
    return trial.client.launch(
        trial.task.brief,
        trial.layout,
        python=base_python(),
        program_dir=program,
        env=_env(trial, tools, staged),
        model=trial.plan.model,
        settings=settings,
        script=script_for(
            trial.client,
            trial.task,
            trial.entry,
            staged=staged,
            settings=settings,
            project=trial.batch.request.project,
            pack=pack_of(lab),
        ),
    )


def _env(trial: Trial, tools: Tools, staged: Staged | None) -> dict[str, str]:
    """Return the whole environment of the session, the client's key included.

    Raises:
        SetupError: A variable that the client is to get is not there, or is one of ours.
    """
    ours = {**session_env(trial.layout, tools), **(staged.env if staged else {})}
    given = given_env(trial.client.needs, os.environ)
    if clash := sorted(ours.keys() & given):
        problem = "is set by every session, so the client cannot get the harness's own"
        raise SetupError(f"variable {clash[0]}", problem, "take it out of the client's table")
    return {**ours, **given}


def _policy(
    trial: Trial, lab: FileLab | PackLab, tools: Tools, staged: Staged | None, program: Path
) -> Policy:
    reads = (trial.layout.root, program, python_home(), tools.root, *tools.reads)
    return Policy(
        read=(*reads, *trial.client.needs.reads, *(staged.reads if staged else ())),
        # What judges is denied to the client too: a pack's code holds its references.
        deny_read=lab.deny_read,
        write=trial.layout.writable,
        domains=trial.client.needs.domains,
        limits=trial.task.limits,
    )


def _require_in_time(trial: Trial, spent_s: float) -> None:
    deadline_s = trial.task.deadlines.setup
    if spent_s > deadline_s:
        raise SetupError(
            f"task {trial.task.name}: preparing {trial.entry.folder}",
            f"took {spent_s:.0f} s, longer than its deadline of {deadline_s:.0f} s",
            "raise [deadlines] setup",
        )


def _session(trial: Trial, draft: Draft, ready: Ready) -> Exit:
    """Let the client work in the sandbox, and end everything it started."""
    started_at = datetime.now(UTC)
    exit = run_session(ready, trial.folder, deadline_s=trial.task.deadlines.agent)
    if exit.reason is Ended.NOT_STARTED:
        detail = f"the client could not be started: {printable(exit.detail)}"
        draft.setup = Cause(kind=CauseKind.PREPARATION, detail=detail)
        return exit
    draft.started_at = started_at
    draft.elapsed_s = round(exit.wall_time_s, 6)
    if exit.survivors:
        draft.audit_findings += (f"processes outlived the session: {exit.survivors}",)
    return exit


def _keep(trial: Trial, draft: Draft, lab: FileLab | PackLab) -> Submission | None:
    """Keep what was left; None, and the grading in the draft, when there is nothing to grade."""
    lost = keep_evidence(trial.layout.evidence, trial.folder)
    if lost is not None:
        draft.audit_findings += (lost,)
    try:
        return keep_submission(trial.layout.project, trial.folder)
    except SubmissionError as error:
        cause = Cause(kind="invalid_submission", detail=told(error))
        draft.grading = ungradable(trial.task, lab, cause)
    except Exception as error:
        draft.grading = _broken(trial, lab, error)
    return None


def _read_session(trial: Trial, draft: Draft, exit: Exit, ready: Ready) -> Transcript:
    """Read what the client said, and decide how its session ended."""
    transcript = trial.client.read(trial.folder / TRANSCRIPT, exit, trial.layout)
    write_atomic(trial.folder / "response.txt", printable(transcript.response, limit=MIB).encode())
    draft.usage = transcript.usage
    draft.execution = execution_of(exit, transcript)
    found = look_outside(
        transcript,
        ready.policy,
        trial.layout.project,
        private_tmp=trial.batch.sandbox.private_tmp,
    )
    draft.findings = found.escapes
    draft.audit_findings += found.attempts
    return transcript


def _compare_offer(draft: Draft, staged: Staged | None, transcript: Transcript) -> None:
    """Void a trial whose client had more than was planned: another arm's, or the operator's."""
    if transcript.offered is None:
        return
    unplanned = transcript.offered.beyond(staged.offers if staged else Offered())
    for kind, names in unplanned:
        if names:
            listed = printable(", ".join(names), limit=400)
            detail = f"the client offers unplanned {kind.replace('_', ' ')}: {listed}"
            draft.findings += (Cause(kind=CauseKind.ARM_MISMATCH, detail=detail),)


def _graded(trial: Trial, submission: Submission, lab: FileLab | PackLab) -> Grading:
    """Grade the kept copy, in a folder that the client never held."""
    try:
        return grade(trial.task, submission, lab, outputs=trial.folder / "grading")
    except Exception as error:
        return _broken(trial, lab, error, submission=submission)


def _broken(
    trial: Trial, lab: FileLab | PackLab, error: Exception, *, submission: Submission | None = None
) -> Grading:
    """Return the grading that broke on our side, so that the trial is excluded and not failed."""
    keep_traceback(error, trial.folder)
    cause = Cause(kind="grader_broke", detail=told(error))
    facts: dict[str, object] = {"status": "infrastructure_error"}
    if submission is not None:
        facts["submission_sha256"] = submission.sha256
    return ungradable(trial.task, lab, cause).model_copy(update=facts)


def _decide(
    trial: Trial, treatment: Treatment, draft: Draft, staged: Staged | None, transcript: Transcript
) -> None:
    evidence = treatment.collect(staged, trial.layout, transcript)
    draft.config_changes = evidence.config_changes
    draft.expectations = treatment.decide(trial.task.expected, evidence)


def _remove_run_folder(trial: Trial) -> None:
    """Remove the run folder unless it is to be kept; what resists goes with the batch's."""
    if not trial.batch.request.keep:
        with contextlib.suppress(OSError):
            remove_tree(trial.layout.root)
