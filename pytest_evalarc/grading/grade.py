"""Grade one submission: trials, controls and candidates alike go through here."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from pytest_evalarc.errors import EvalArcError, SubmissionError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.cache import (
    GradingCache,
    output_path,
    read_outputs,
    write_outputs,
)
from pytest_evalarc.grading.cache_key import grading_key
from pytest_evalarc.grading.cases import declared_cases, pack_rows, session_runtime
from pytest_evalarc.grading.lab import (
    Cancelled,
    FileLab,
    PackLab,
    Stopwatch,
    grader_digest,
    pack_of,
    scratch,
)
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.records import (
    RECORD_BYTES,
    Verdict,
    check_row,
    judge,
    row_not_run,
    step_row,
)
from pytest_evalarc.grading.scope import EVERYTHING, Scope
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.grading.submission import (
    LEFT_OUT,
    GradingCopy,
    Submission,
    edits_outside,
    make_copy,
    refuse_links,
    starter_manifest,
)
from pytest_evalarc.grading.toolchain import Grader, Graders, Step
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.clock import AWAKE
from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.isolation.host import os_name
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow, Grading, Runtime, StepRow
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import Check, Task

EXCERPT_BYTES = 1 << 15
OUTPUT_CHARACTERS = 4 * EXCERPT_BYTES


class _Run(NamedTuple):
    """One grading process that is over."""

    exit: Exit
    verdict: Verdict
    stderr: bytes


_OVER = Exit(reason=Ended.DEADLINE, status=None, stdout_bytes=0, stderr_bytes=0, wall_time_s=0.0)
_TOO_LATE = Verdict(
    "agent_error",
    Cause(kind="timeout", detail="the deadline of the whole grading was over before it started"),
    False,
    "the deadline of the whole grading was over before it started",
)


class Session:
    """One grading under way: its copy, its clock, and what it has found."""

    def __init__(
        self,
        task: Task,
        copy: GradingCopy,
        lab: FileLab,
        stopwatch: Stopwatch,
        outputs: Path | None,
    ) -> None:
        self.task = task
        self.copy = copy
        self.lab = lab
        self._stopwatch = stopwatch
        self._outputs = outputs
        self._ends_s = AWAKE.now_s() + task.deadlines.grading
        self._has_begun = False

    def run_step(self, step: Step) -> StepRow:
        """Run one step; one with nothing to do passes."""
        if not step.graders:
            return StepRow(name=step.name, status="pass", wall_time_s=0.0)
        run = self._run_all(step.name, step.graders, self.task.deadlines.grading)
        return step_row(step.name, run.verdict, run.exit)

    def run_check(self, check: Check) -> CheckRow:
        """Run one hidden check."""
        graders = self.lab.toolchain.check(self.task, check, self.copy, self.lab.tools)
        run = self._run_all(check.id, graders, check.deadline_s)
        return check_row(check, run.verdict, run.exit, stderr=run.stderr)

    def _run_all(self, name: str, graders: Graders, deadline_s: float) -> _Run:
        """Run processes one after another, as far as they pass; all of them share the deadline."""
        spent_s = 0.0
        for grader in graders:
            run = self._run(name, grader, deadline_s - spent_s)
            spent_s += run.exit.wall_time_s
            if run.verdict.status != "passed":
                break
        return run._replace(exit=replace(run.exit, wall_time_s=spent_s))

    def _run(self, name: str, grader: Grader, deadline_s: float) -> _Run:
        left_s = self._ends_s - AWAKE.now_s()
        if left_s <= 0 and self._has_begun:
            return _Run(_OVER, _TOO_LATE, b"")
        nonce = secrets.token_hex(16)
        channel = Capture(RECORD_BYTES)
        complaints = Capture(EXCERPT_BYTES, EXCERPT_BYTES)
        for folder in grader.writes:
            folder.mkdir(parents=True, exist_ok=True)
        with self._stopwatch:
            exit = self.lab.run(
                grader.argv,
                stdin=grader.request(nonce),
                reads=(self.copy.project, self.copy.fixtures, *grader.reads),
                writes=grader.writes,
                limits=self.task.limits,
                deadline_s=max(0.001, min(deadline_s, left_s)),
                stdout=channel,
                stderr=complaints,
            )
        if exit.reason is Ended.CANCELLED:
            raise KeyboardInterrupt
        said = complaints.data()
        if self._outputs is not None and said:
            text = printable(said, limit=OUTPUT_CHARACTERS)
            write_atomic(output_path(self._outputs, name), text.encode())
        verdict = judge(channel.data(), nonce, exit, complaint=said)
        if verdict.status != "environment_error":
            self._has_begun = True
        elif exit.reason is Ended.DEADLINE and left_s < deadline_s and self._has_begun:
            # What ran before left it no time to start, and that was the submission's to spend.
            verdict = _TOO_LATE
        return _Run(exit, verdict, said)


def grade(
    task: Task,
    submission: Submission,
    lab: FileLab | PackLab,
    *,
    outputs: Path | None = None,
    scope: Scope = EVERYTHING,
) -> Grading:
    """Return the row of outcomes of a submission.

    Total over submissions: whatever one holds or does is an outcome. What breaks on our side is an
    outcome too, `infrastructure_error` with its cause, and the submission can be graded again.
    Only what no outcome could be written without is an error: the sandbox.

    Args:
        task: The task; its hidden checks, or the cases of its pack, decide.
        submission: What was left, at rest.
        lab: Sandbox, what judges, and the folder to work in.
        outputs: Folder for what the graded processes printed; None keeps excerpts alone.
        scope: The checks and seeds that are asked for; every step is run whatever it says.

    Returns:
        The grading, which the lab's cache may have from before: then it says so, and nothing of
        the submission was run.

    Raises:
        InfrastructureError: The sandbox is not there.
    """
    facts = _facts(task, submission, lab)
    # Without a boundary a submission could have written the cache itself.
    if lab.cache is None or facts.isolation.level != "enforced":
        return _made(task, submission, lab, facts, outputs=outputs, scope=scope)
    return _remembered(task, submission, lab, facts, lab.cache, outputs=outputs, scope=scope)


def _remembered(
    task: Task,
    submission: Submission,
    lab: FileLab | PackLab,
    facts: _Facts,
    cache: GradingCache,
    *,
    outputs: Path | None,
    scope: Scope,
) -> Grading:
    """Return the grading that the cache has, or a new one that it then keeps."""

    def key(facts: _Facts) -> str | None:
        # What cannot be read now is for the grading itself to tell.
        with contextlib.suppress(EvalArcError, OSError):
            return grading_key(
                task, submission, lab, scope=scope, facts=facts.to_json(), turn=cache.turn
            )
        return None

    before = key(facts)
    entry = cache.read(before, is_ours=partial(facts.are_of, submission)) if before else None
    if entry is not None:
        if outputs is not None:
            write_outputs(entry.outputs, outputs)
        return entry.grading
    with _printed(outputs, lab.work) as printed:
        grading = _made(task, submission, lab, facts, outputs=printed, scope=scope)
        with contextlib.suppress(EvalArcError, OSError):
            # Should anything have been edited meanwhile, nobody knows which of both was graded.
            if before is not None and key(_facts(task, submission, lab)) == before:
                cache.store(before, grading, read_outputs(grading, printed))
    return grading


@contextlib.contextmanager
def _printed(outputs: Path | None, work: Path) -> Iterator[Path]:
    """Give the folder for what is printed, or one that is taken away again; it is made later."""
    if outputs is not None:
        yield outputs
        return
    folder = work / f"printed-{secrets.token_hex(8)}"
    try:
        yield folder
    finally:
        # What resists goes with the batch's working folder.
        with contextlib.suppress(OSError):
            remove_tree(folder)


def _made(
    task: Task,
    submission: Submission,
    lab: FileLab | PackLab,
    facts: _Facts,
    *,
    outputs: Path | None,
    scope: Scope,
) -> Grading:
    """Return a grading that is made now."""
    started_s = time.monotonic()
    stopwatch = Stopwatch()
    edits: tuple[str, ...] = ()
    steps: tuple[StepRow, ...] = ()
    rows: tuple[CheckRow, ...] = ()
    cause: Cause | None = None
    broken = False
    try:
        if outputs is not None:
            outputs.mkdir(parents=True, exist_ok=True)
        if isinstance(lab, FileLab):
            edits = edits_outside(task, submission, starter_manifest(task))
            refuse_links(task, submission)
        steps, rows = _judged(task, submission, lab, stopwatch, outputs=outputs, scope=scope)
        cause = _environment_cause(steps, rows)
        broken = cause is not None
    except SubmissionError as error:
        cause = Cause(kind="invalid_submission", detail=printable(str(error)))
        rows = _rows_not_run(task, cause, scope)
    except (EvalArcError, OSError) as error:
        cause, broken = Cause(kind="grader_broke", detail=printable(str(error))), True
        rows = _rows_not_run(task, cause, scope)
    return facts.grading(
        submission.sha256,
        status="infrastructure_error" if broken else "graded",
        cause=cause,
        steps=steps,
        rows=rows,
        edits_outside_editable=edits,
        wall_time_s=round(time.monotonic() - started_s, 6),
        command_time_s=round(stopwatch.total_s, 6),
    )


def ungradable(task: Task, lab: FileLab | PackLab, cause: Cause) -> Grading:
    """Return the grading of something that is no submission: a failure, nothing was run."""
    return _facts(task, None, lab).grading(
        hashlib.sha256(b"").hexdigest(),
        status="graded",
        cause=cause,
        steps=(),
        rows=_rows_not_run(task, cause, EVERYTHING),
    )


class _Facts(NamedTuple):
    """What every grading of a task in a lab says of task and lab alike."""

    grader_sha256: str
    checks_sha256: str
    isolation: IsolationRecord
    runtime: Runtime

    def to_json(self) -> dict[str, JsonValue]:
        """Return these facts as plain JSON data."""
        return {
            "grader_sha256": self.grader_sha256,
            "checks_sha256": self.checks_sha256,
            "isolation": self.isolation.to_json(),
            "runtime": self.runtime.to_json(),
        }

    def are_of(self, submission: Submission, grading: Grading) -> bool:
        """Return whether a grading of a submission says the same."""
        said = {name: getattr(grading, name) for name in self._fields}
        return grading.submission_sha256 == submission.sha256 and said == self._asdict()

    def grading(self, submission_sha256: str, **found: Any) -> Grading:  # noqa: ANN401 - fields
        return Grading(
            submission_sha256=submission_sha256, left_out=LEFT_OUT, **self._asdict(), **found
        )


def _facts(task: Task, submission: Submission | None, lab: FileLab | PackLab) -> _Facts:
    pack = pack_of(lab)
    isolation = lab.sandbox.record(task.limits)
    return _Facts(
        grader_sha256=_grader_sha256(pack.info.code if pack else None),
        checks_sha256=cases_digest(task, pack) if pack else checks_digest(task),
        isolation=isolation,
        runtime=_runtime(task, submission, lab, isolation),
    )


def _runtime(
    task: Task, submission: Submission | None, lab: FileLab | PackLab, isolation: IsolationRecord
) -> Runtime:
    bare = Runtime(
        sandbox=isolation.sandbox,
        image=isolation.image,
        image_id=isolation.image_id,
        toolchain=lab.toolchain.version,
        platform=os_name(),
        limits=task.limits,
    )
    if isinstance(lab, FileLab):
        return bare
    return bare.model_copy(update=session_runtime(task, submission, lab))


def _rows_not_run(task: Task, cause: Cause, scope: Scope) -> tuple[CheckRow, ...]:
    seeds: tuple[int | None, ...] = task.pack.seeds if task.pack else (None,)
    return tuple(
        row_not_run(check, cause, seed=seed)
        for seed in seeds
        for check in task.checks
        if scope.covers(check.id, seed)
    )


def _judged(
    task: Task,
    submission: Submission,
    lab: FileLab | PackLab,
    stopwatch: Stopwatch,
    *,
    outputs: Path | None,
    scope: Scope,
) -> tuple[tuple[StepRow, ...], tuple[CheckRow, ...]]:
    """Return the steps and rows of a submission: the one place where the two kinds of task part."""
    if isinstance(lab, PackLab):
        with stopwatch:
            return (), pack_rows(task, submission, lab, scope)
    asked = tuple(check for check in task.checks if scope.covers(check.id))
    task = replace(task, checks=asked)
    with scratch(lab.work, "grading") as root:
        copy = make_copy(task, submission, root)
        own = replace(lab, cancelled=Cancelled(lab.cancelled))
        return _graded(Session(task, copy, own, stopwatch, outputs))


def _graded(session: Session) -> tuple[tuple[StepRow, ...], tuple[CheckRow, ...]]:
    """Run the steps before the checks, the checks, and the steps after them, in this order."""
    task, lab = session.task, session.lab
    planned = lab.toolchain.steps(task, session.copy, lab.tools)
    before = [step for step in planned if not step.after_checks]
    rows: list[StepRow] = []
    for step in before:
        rows.append(session.run_step(step))
        if step.stops and rows[-1].status != "pass":
            return _skipped(planned, rows, task)
    pool = ThreadPoolExecutor(max_workers=lab.jobs, thread_name_prefix="check")
    try:
        checks = [pool.submit(session.run_check, check) for check in task.checks]
        after = [pool.submit(session.run_step, step) for step in planned if step.after_checks]
        checked = tuple(running.result() for running in checks)
        rows += [running.result() for running in after]
    except BaseException:
        # One that is interrupted, or broke, has no use for the others.
        lab.cancelled.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return tuple(rows), checked


def _skipped(
    planned: Sequence[Step], rows: Sequence[StepRow], task: Task
) -> tuple[tuple[StepRow, ...], tuple[CheckRow, ...]]:
    """Return the rows after a step that stops the rest: skipped steps, checks that did not run."""
    failed = rows[-1]
    cause = Cause(
        kind=f"{failed.name}_failed",
        detail=f"{failed.name} failed, so it was not run: {failed.detail}".strip(": "),
    )
    skipped = [
        StepRow(name=step.name, status="skipped", cause=cause) for step in planned[len(rows) :]
    ]
    return (*rows, *skipped), tuple(row_not_run(check, cause) for check in task.checks)


def _environment_cause(steps: Sequence[StepRow], rows: Sequence[CheckRow]) -> Cause | None:
    causes = [step.cause for step in steps if step.status == "error"]
    causes += [row.cause for row in rows if row.status == "environment_error"]
    return causes[0] if causes else None


@lru_cache
def _grader_sha256(code: Path | None) -> str:
    return grader_digest(code)


def checks_digest(task: Task) -> str:
    """Return the digest of a task's hidden checks, names and contents; one can be gone."""
    digest = hashlib.sha256()
    for check in sorted(task.checks, key=lambda check: check.id):
        content = _content(task.root / check.file) if check.file else b""
        length = "gone" if content is None else len(content)
        digest.update(f"{check.id}\0{length}\0".encode() + (content or b""))
    return digest.hexdigest()


def _content(path: Path) -> bytes | None:
    # What cannot be read fails where it is to judge, and the outcome of that names its checks too.
    try:
        return path.read_bytes()
    except OSError:
        return None


def cases_digest(task: Task, pack: Pack) -> str:
    """Return the digest of every case of every seed of a task, contents and all."""
    cases: list[JsonValue] = [
        {"seed": case.seed, "case": case.id, "content": case.content}
        for case in declared_cases(task, pack)
    ]
    return hashlib.sha256(canonical(cases).encode("ascii")).hexdigest()
