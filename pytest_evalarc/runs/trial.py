"""One trial from its run folder to its result: the stages, and what their order protects."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.errors import DocumentError, SubmissionError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.grade import grade, ungradable
from pytest_evalarc.grading.lab import FileLab, PackLab
from pytest_evalarc.grading.submission import Submission
from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.planned import Execution, PlannedTrial
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.runs.draft import Draft
from pytest_evalarc.runs.evidence import (
    keep_evidence,
    keep_left,
    keep_submission,
    keep_traceback,
    told,
)
from pytest_evalarc.runs.findings import look_outside
from pytest_evalarc.runs.intact import require_intact
from pytest_evalarc.runs.intake import HostLost
from pytest_evalarc.runs.prepare import PrelaunchError, Trial, prepare
from pytest_evalarc.runs.redaction import Redaction
from pytest_evalarc.runs.session import (
    TRANSCRIPT,
    Ready,
    execution_of,
    run_session,
    secrets_of,
)
from pytest_evalarc.treatments.protocol import Staged, Treatment
from pytest_evalarc.treatments.snapshot import changes, snapshot

STDERR_TOLD_BYTES = 400


def run_trial(trial: Trial) -> TrialResult:
    """Run one trial; whatever happens in it is an outcome.

    Raises:
        KeyboardInterrupt: The user ended it.
        Exception: The harness itself is broken: the result folder cannot be written, or a client
            or treatment cannot read what was left. What the session left is kept by then.
    """
    draft = Draft(plan=trial.plan, entry=trial.entry, client=trial.client)
    draft.redaction = Redaction(secrets_of(trial.client.needs, os.environ))
    trial.folder.mkdir(parents=True, exist_ok=True)
    try:
        # What a stage reads is struck before; what the last ones write is struck here.
        with _struck(trial, draft):
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
    if isinstance(error, HostLost):
        return Cause(kind=CauseKind.WORKER_CRASH, detail=str(error))
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
            submission = _keep(trial, draft, ready)
    transcript = _read_session(trial, draft, exit, ready)
    _compare_offer(draft, ready, transcript)
    if submission is not None:
        with draft.stage("grade"), _struck(trial, draft):
            lab = _discreet(ready.lab) if draft.redaction else ready.lab
            draft.grading = _graded(trial, _as_left(trial, draft, submission), lab)
    draft.config_changes = changes(
        ready.config, snapshot(trial.layout, trial.client.needs.places.watched)
    )
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


def _discreet(lab: FileLab | PackLab) -> FileLab | PackLab:
    """Return a lab that keeps no grading for later: what a submission prints may hold a secret."""
    return lab if lab.cache is None else replace(lab, cache=replace(lab.cache, writes=False))


def _prepared(trial: Trial, draft: Draft) -> Ready | None:
    """Return the trial prepared; None, and the cause in the draft, when that is not possible."""
    try:
        with draft.stage("prepare"):
            return prepare(trial, draft)
    except Exception as error:
        # A plugin's toolchain, treatment or client may raise anything; nothing has started yet.
        keep_traceback(error, trial.folder)
        draft.setup = Cause(kind=_setup_kind(error), detail=told(error))
        return None


def _setup_kind(error: Exception) -> CauseKind:
    failed_check = isinstance(error, PrelaunchError)
    return CauseKind.PRELAUNCH if failed_check else CauseKind.PREPARATION


def _session(trial: Trial, draft: Draft, ready: Ready) -> Exit:
    """Let the client work in the sandbox, and end everything it started."""
    started_at = datetime.now(UTC)
    exit = run_session(ready, trial.folder)
    if exit.reason is Ended.NOT_STARTED:
        detail = f"the client could not be started: {printable(exit.detail)}"
        draft.setup = Cause(kind=CauseKind.PREPARATION, detail=detail)
        return exit
    draft.started_at = started_at
    draft.elapsed_s = round(exit.wall_time_s, 6)
    if exit.stood_still_s:
        draft.audit_findings += (
            f"the harness stood still for {exit.stood_still_s:.0f} s of the session, not counted",
        )
    if exit.survivors:
        draft.audit_findings += (f"processes outlived the session: {exit.survivors}",)
    return exit


def _keep(trial: Trial, draft: Draft, ready: Ready) -> Submission | None:
    """Keep what was left; None, and the grading in the draft, when there is nothing to grade."""
    lost = keep_evidence(trial.layout.evidence, trial.folder)
    if lost is not None:
        draft.audit_findings += (lost,)
    if ready.staged is not None:
        draft.audit_findings += keep_left(trial.layout.root, ready.staged.keeps, trial.folder)
    lab = ready.lab
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
    draft.transcript = transcript
    draft.usage = transcript.usage
    draft.execution = execution_of(exit, transcript)
    if draft.execution is not Execution.COMPLETED:
        draft.fault = transcript.fault or _unexplained(trial, exit, transcript)
    is_baseline = trial.treatment is not None and not trial.is_treated
    found = look_outside(
        transcript,
        ready.policy,
        trial.layout.project,
        private_tmp=trial.sandbox.private_tmp,
        masked=trial.sandbox.masks_denied,
        exploratory=trial.batch.request.exploratory,
        forbidden=trial.treatment.programs if trial.treatment and is_baseline else (),
    )
    draft.findings = found.escapes
    draft.audit_findings += found.attempts
    return transcript


def _unexplained(trial: Trial, exit: Exit, transcript: Transcript) -> Cause | None:
    """Return what ended a client that never said how its session ended, or its last complaint."""
    if exit.reason is not Ended.EXITED or transcript.completion is not None:
        return None
    if exit.out_of_memory:
        detail = f"it needed more memory than its {trial.limits.memory_mib} MiB"
        return Cause(kind=CauseKind.CLIENT_ERROR, detail=detail)
    complaints = (trial.folder / "stderr.log").read_bytes()[-STDERR_TOLD_BYTES:]
    said = " ".join(printable(complaints, limit=STDERR_TOLD_BYTES).split())
    if not said:
        return None
    detail = f"it ended with status {exit.status} and said: {said}"
    return Cause(kind=CauseKind.CLIENT_ERROR, detail=detail)


def _compare_offer(draft: Draft, ready: Ready, transcript: Transcript) -> None:
    """Void a trial whose client had more than was planned: another arm's, or the operator's."""
    if transcript.offered is None:
        return
    planned = ready.staged.offers if ready.staged else Offered()
    unplanned = transcript.offered.beyond(ready.own, planned)
    for kind, names in unplanned:
        if names:
            listed = printable(", ".join(names), limit=400)
            detail = f"the client offers unplanned {kind.replace('_', ' ')}: {listed}"
            draft.findings += (Cause(kind=CauseKind.ARM_MISMATCH, detail=detail),)


def _graded(trial: Trial, submission: Submission, lab: FileLab | PackLab) -> Grading:
    """Grade the kept copy, in a folder that the client never held."""
    try:
        require_intact(trial.task, lab)
        grading = grade(trial.task, submission, lab, outputs=trial.folder / "grading")
        # The session of another trial may have gone on beside it.
        require_intact(trial.task, lab)
        return grading
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
    evidence = treatment.collect(staged, trial.layout, transcript, config=draft.config_changes)
    draft.config_changes = evidence.config_changes
    draft.expectations = treatment.decide(trial.task.expected, evidence)


def _remove_run_folder(trial: Trial) -> None:
    """Remove the run folder unless it is to be kept; what resists goes with the batch's."""
    if not trial.batch.request.keep:
        with contextlib.suppress(OSError):
            remove_tree(trial.layout.root)
