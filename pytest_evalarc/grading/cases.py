"""Put every case of a pack to a candidate, several at once, each with a state folder of its own."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.candidate import Candidate, as_candidate, filled_command, named_command
from pytest_evalarc.grading.lab import (
    STARTUP_S,
    SYSTEM_PATH,
    Cancelled,
    PackLab,
    require,
    scratch,
)
from pytest_evalarc.grading.pack import CandidateError, Case, CaseVerdict, Pack
from pytest_evalarc.grading.scope import EVERYTHING, Scope
from pytest_evalarc.grading.session import RESPONSE_S, Bounds, CandidateSession
from pytest_evalarc.grading.submission import Submission
from pytest_evalarc.isolation.clock import AWAKE
from pytest_evalarc.isolation.command import Command, Names, Policy
from pytest_evalarc.isolation.interrupts import held_back
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow
from pytest_evalarc.model.pack import Language
from pytest_evalarc.model.task import Task


def pack_rows(
    task: Task, submission: Submission, lab: PackLab, scope: Scope = EVERYTHING
) -> tuple[CheckRow, ...]:
    """Return the rows of every case of every seed, seed by seed, in the pack's order of cases.

    Whatever the candidate does is a row. So is what breaks on our side in one case, as
    `environment_error`; the other cases go on.

    Args:
        task: A task with a pack; it says which seeds are run, and what a process may use.
        submission: The candidate, at rest.
        lab: Sandbox, pack, folder to work in, and how many cases run at once.
        scope: The cases and seeds that are asked for.

    Raises:
        SubmissionError: The submission is none that a candidate may be, or changed while it was
            copied.
        InfrastructureError: The pack is not what it declares, or the copy cannot be written.
    """
    pack = lab.pack
    cases = [case for case in declared_cases(task, pack) if scope.covers(case.id, case.seed)]
    candidate = as_candidate(submission, language_of(task, pack))
    # Given up as a whole: one case that is interrupted has no use for the others.
    lab = replace(lab, cancelled=Cancelled(lab.cancelled))
    with scratch(lab.work, "pack") as root:
        candidate = candidate.copied(root / "candidate")
        bench = _Bench(task=task, pack=pack, lab=lab, root=root, candidate=candidate)
        bench.check_command()
        return bench.rows(cases)


def language_of(task: Task, pack: Pack) -> Language:
    """Return the language that a task puts its pack in.

    Raises:
        InfrastructureError: The pack has none of that name, which validation would have said.
    """
    name = task.pack.language if task.pack else ""
    language = pack.info.languages.get(name)
    if language is None:
        raise InfrastructureError(f"pack {pack.info.name}", f"has no language {name!r}")
    return language


def declared_cases(task: Task, pack: Pack) -> Sequence[Case]:
    """Return every case of every seed of a task, seed by seed, in the pack's order of cases.

    Raises:
        InfrastructureError: The task has no pack, or the pack is not what it declares.
    """
    if task.pack is None:
        raise InfrastructureError(f"task {task.name}", "it has no pack")
    declared = [(seed, case) for seed in task.pack.seeds for case in pack.info.cases]
    cases = [case for seed in task.pack.seeds for case in pack.cases(seed)]
    as_declared = [(case.seed, case.id) for case in cases] == declared
    require(as_declared, f"pack {pack.info.name}", "its cases are not those that it declares")
    return cases


def session_runtime(task: Task, submission: Submission | None, lab: PackLab) -> dict[str, object]:
    """Return the facts of a runtime that sessions of candidates have beside all others."""
    language = language_of(task, lab.pack)
    return {
        "toolchain": (
            lab.interpreter.version
            if lab.sandbox.image is None
            else f"the {lab.interpreter.word} of the image"
        ),
        "command": named_command(submission, language) if submission else language.command,
        "response_timeout_seconds": RESPONSE_S,
        "startup_timeout_seconds": STARTUP_S,
        "case_timeout_seconds": task.deadlines.check,
        "session_output_limit_bytes": task.limits.output_mib * MIB,
        "request_limit_bytes": lab.pack.info.request_bytes,
    }


@dataclass(frozen=True, kw_only=True)
class _Finding:
    """A case put to the candidate, as far as it came."""

    verdict: CaseVerdict | None = None
    fault: CandidateError | None = None
    broken: str | None = None
    """What broke on our side."""


class _Folders(NamedTuple):
    """The folders of one case, which all of its sessions share, and what they may touch."""

    names: Names
    """What the candidate calls them."""
    tmp: Path
    policy: Policy


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """One candidate under examination; every case may run on a thread of its own."""

    task: Task
    pack: Pack
    lab: PackLab
    root: Path
    candidate: Candidate
    """A copy of what was submitted."""

    @cached_property
    def started_s(self) -> float:
        """When the first case began; what came before it may have kept the threads."""
        return AWAKE.now_s()

    def rows(self, cases: Sequence[Case]) -> tuple[CheckRow, ...]:
        """Put cases to the candidate, begun in their order; nothing of them runs on afterwards."""
        pool = self.lab.threads.pool(self.lab.sandbox, self.task.limits, self.lab.jobs)
        last = max(0, len(cases) - self.lab.jobs)
        with held_back():
            running = [
                pool.submit(self._begin, case, is_last=number == last)
                for number, case in enumerate(cases)
            ]
        try:
            return tuple(row.result() for row in running)
        except BaseException:
            self.lab.cancelled.set()
            raise
        finally:
            # What is still waiting for a thread never begins.
            wait([row for row in running if not row.cancel()])

    def _begin(self, case: Case, *, is_last: bool) -> CheckRow:
        if is_last:
            self.lab.on_last_cases()
        return self.row(case)

    def row(self, case: Case) -> CheckRow:
        """Put one case to the candidate and return what came of it."""
        started_s = time.monotonic()
        sessions: list[CandidateSession] = []
        finding = self._examine(case, sessions)
        row = _row(case, self.pack.info.cases[case.id], finding)
        return row.model_copy(
            update={
                "answered": any(session.replies for session in sessions),
                "wall_time_s": round(time.monotonic() - started_s, 6),
                "transcript_sha256": _digest(sessions),
                "processes": tuple(session.row for session in sessions),
            }
        )

    def _examine(self, case: Case, sessions: list[CandidateSession]) -> _Finding:
        bounds = Bounds(
            case_ends_s=self._case_ends_s(case),
            output_bytes=self.task.limits.output_mib * MIB,
            request_bytes=self.pack.info.request_bytes,
        )
        try:
            with scratch(self.root, "case") as folder, ExitStack() as opened:

                def open_session() -> CandidateSession:
                    session = opened.enter_context(self._open(own, bounds))
                    sessions.append(session)
                    return session

                own = self._folders(folder)
                verdict = self.pack.run(case, open_session)
                _check_dimensions(case, self.pack.info.cases[case.id], verdict)
        except CandidateError as error:
            return _Finding(fault=error)
        except Exception as error:  # A pack may be anybody's code: its bugs are never a verdict.
            return _Finding(broken=_told(error))
        return _Finding(verdict=verdict)

    def _case_ends_s(self, case: Case) -> float:
        deadlines = {check.id: check.deadline_s for check in self.task.checks}
        case_s = deadlines.get(case.id, self.task.deadlines.check)
        return min(AWAKE.now_s() + case_s, self.started_s + self.task.deadlines.grading)

    def _folders(self, folder: Path) -> _Folders:
        """Make the state folder of a case; without a boundary, it has all to itself."""
        state = folder / "state"
        state.mkdir()
        tmp = self.lab.sandbox.private_tmp
        if tmp is not None:
            names = self._names(self.candidate.submission.root, state)
            return _Folders(names, tmp, self._policy.also(write=(state,)))
        # Nothing keeps the candidate from leaving there what another case would find.
        own = self.candidate.copied(folder / "candidate").submission.root
        tmp = folder / "tmp"
        tmp.mkdir()
        policy = self._policy.also(read=(own,), write=(state, tmp))
        return _Folders(self._names(own, state), tmp, policy)

    def check_command(self) -> None:
        """Refuse a command whose program is not there, before any case is charged with it.

        Raises:
            SubmissionError: It is not.
        """
        names = self._names(self.candidate.submission.root, self.root / "state")
        filled_command(self.candidate.command, names)

    def _names(self, workspace: Path, state: Path) -> Names:
        """Return what the candidate calls its things where it runs."""
        interpreter = self.lab.interpreter
        host = Names(
            word=interpreter.word,
            program=str(interpreter.program),
            workspace=workspace,
            state=state,
            reads=(interpreter.program, *interpreter.reads),
            path=SYSTEM_PATH,
        )
        return self.lab.sandbox.names(host)

    @cached_property
    def _policy(self) -> Policy:
        """What every session may touch; each case adds folders of its own."""
        workspace = self.candidate.submission.root
        return Policy(
            read=(workspace, *self._names(workspace, self.root / "state").reads),
            deny_read=self.lab.deny_read,
            limits=self.task.limits,
            reserved_mib=self.lab.interpreter.reserved_mib,
        )

    def _open(self, case: _Folders, bounds: Bounds) -> CandidateSession:
        command = Command(
            argv=filled_command(self.candidate.command, case.names),
            cwd=case.names.workspace,
            env={
                "PATH": os.pathsep.join(SYSTEM_PATH),
                "LANG": "C.UTF-8",
                "HOME": str(case.tmp),
                "TMPDIR": str(case.tmp),
            },
        )
        return CandidateSession(
            self.lab.sandbox, command, case.policy, bounds=bounds, cancelled=self.lab.cancelled
        )


def _check_dimensions(case: Case, dimensions: Sequence[str], verdict: CaseVerdict) -> None:
    agrees = set(verdict.verdicts) == set(dimensions)
    require(agrees, f"case {case.id}", "its verdicts are not in the dimensions it declares")


def _row(case: Case, dimensions: Sequence[str], finding: _Finding) -> CheckRow:
    if finding.verdict is not None:
        return _judged(case, finding.verdict)
    fault = finding.fault
    kind, told = (fault.kind, fault.detail) if fault else ("grader_broke", finding.broken or "")
    cause = Cause(kind=kind, detail=printable(told))
    return CheckRow(
        check=case.id,
        seed=case.seed,
        verdicts=dict.fromkeys(dimensions, False if fault else None),
        status="agent_error" if fault else "environment_error",
        cause=cause,
        detail=cause.detail,
    )


def _judged(case: Case, verdict: CaseVerdict) -> CheckRow:
    """Return the row of a case that the pack judged, after a fault of the candidate too."""
    fault = verdict.fault
    cause = Cause(kind=fault.kind, detail=printable(fault.detail)) if fault else None
    ran = "passed" if all(verdict.verdicts.values()) else "failed"
    return CheckRow(
        check=case.id,
        seed=case.seed,
        verdicts=dict(verdict.verdicts),
        status="agent_error" if fault else ran,
        cause=cause,
        detail=printable(verdict.detail) or (cause.detail if cause else ""),
        trace=tuple(verdict.trace),
    )


def _told(error: Exception) -> str:
    """Return an error as a sentence; a foreign one often is a word that needs its type."""
    return str(error) if isinstance(error, InfrastructureError) else repr(error)


def _digest(sessions: Sequence[CandidateSession]) -> str:
    lines = "".join(f"{session.transcript_sha256}\n" for session in sessions)
    return hashlib.sha256(lines.encode("ascii")).hexdigest()
