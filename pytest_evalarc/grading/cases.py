"""Put every case of a pack to a candidate, several at once, each with a state folder of its own."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.manifest import is_cache
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.grading.lab import Lab, PackLab, require, scratch
from pytest_evalarc.grading.pack import CandidateError, Case, CaseVerdict, Pack
from pytest_evalarc.grading.session import Bounds, CandidateSession
from pytest_evalarc.grading.submission import Submission
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckRow
from pytest_evalarc.model.task import Task

SYSTEM_PATH = "/usr/bin:/bin"


def pack_rows(task: Task, submission: Submission, lab: PackLab) -> tuple[CheckRow, ...]:
    """Return the rows of every case of every seed, seed by seed, in the pack's order of cases.

    Whatever the candidate does is a row. So is what breaks on our side in one case, as
    `environment_error`; the other cases go on.

    Args:
        task: A task with a pack; it says which seeds are run, and what a process may use.
        submission: The candidate, at rest.
        lab: Sandbox, pack, folder to work in, and how many cases run at once.

    Raises:
        SubmissionError: The submission changed while it was copied.
        InfrastructureError: The pack is not what it declares, or the copy cannot be written.
    """
    pack = lab.pack
    cases = _declared_cases(task, pack)
    with scratch(lab.work, "pack") as root:
        workspace = root / "candidate"
        copy_tree(
            submission.root,
            submission.manifest,
            workspace,
            select=lambda path: not is_cache(path),
        )
        bench = _Bench(task=task, pack=pack, lab=lab, root=root, workspace=workspace)
        # A sandbox dies with the thread that started it, so threads outlive every session.
        with ThreadPoolExecutor(max_workers=lab.jobs, thread_name_prefix="case") as pool:
            return tuple(pool.map(bench.row, cases))


def _declared_cases(task: Task, pack: Pack) -> Sequence[Case]:
    if task.pack is None:
        raise InfrastructureError(f"task {task.name}", "it has no pack")
    declared = [(seed, case) for seed in task.pack.seeds for case in pack.info.cases]
    cases = [case for seed in task.pack.seeds for case in pack.cases(seed)]
    as_declared = [(case.seed, case.id) for case in cases] == declared
    require(as_declared, f"pack {pack.info.name}", "its cases are not those that it declares")
    return cases


@dataclass(frozen=True, kw_only=True)
class _Finding:
    """A case put to the candidate, as far as it came."""

    verdict: CaseVerdict | None = None
    fault: CandidateError | None = None
    broken: str | None = None
    """What broke on our side."""


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """One candidate under examination; every case may run on a thread of its own."""

    task: Task
    pack: Pack
    lab: Lab
    root: Path
    workspace: Path
    started_s: float = field(default_factory=time.monotonic)

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
            case_ends_s=self._case_ends_s(case), request_bytes=self.pack.info.request_bytes
        )
        try:
            with scratch(self.root, "case") as folder, ExitStack() as opened:

                def open_session() -> CandidateSession:
                    session = opened.enter_context(self._open(state, tmp, bounds))
                    sessions.append(session)
                    return session

                state, tmp = self._folders(folder)
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
        return min(time.monotonic() + case_s, self.started_s + self.task.deadlines.grading)

    def _folders(self, folder: Path) -> tuple[Path, Path]:
        """Make the state folder of a case, and a temporary one where the sandbox has none."""
        state = folder / "state"
        state.mkdir()
        tmp = self.lab.sandbox.private_tmp
        if tmp is None:
            tmp = folder / "tmp"
            tmp.mkdir()
        return state, tmp

    def _open(self, state: Path, tmp: Path, bounds: Bounds) -> CandidateSession:
        filled = {"python": base_python(), "workspace": self.workspace, "state": state}
        command = Command(
            argv=tuple(_filled(word, filled) for word in self.pack.info.command),
            cwd=self.workspace,
            env={
                "PATH": SYSTEM_PATH,
                "LANG": "C.UTF-8",
                "HOME": str(tmp),
                "TMPDIR": str(tmp),
            },
        )
        policy = Policy(
            read=(self.workspace, python_home()),
            deny_read=self.lab.deny_read,
            write=(state,) if tmp == self.lab.sandbox.private_tmp else (state, tmp),
            limits=self.task.limits,
        )
        return CandidateSession(
            self.lab.sandbox, command, policy, bounds=bounds, cancelled=self.lab.cancelled
        )


def _filled(word: str, values: dict[str, Path]) -> str:
    """Fill in the three names of a command template; every other brace stays as it is."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _check_dimensions(case: Case, dimensions: Sequence[str], verdict: CaseVerdict) -> None:
    agrees = set(verdict.verdicts) == set(dimensions)
    require(agrees, f"case {case.id}", "its verdicts are not in the dimensions it declares")


def _row(case: Case, dimensions: Sequence[str], finding: _Finding) -> CheckRow:
    if finding.verdict is not None:
        verdict = finding.verdict
        return CheckRow(
            check=case.id,
            seed=case.seed,
            verdicts=dict(verdict.verdicts),
            status="passed" if all(verdict.verdicts.values()) else "failed",
            detail=printable(verdict.detail),
            trace=tuple(verdict.trace),
        )
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


def _told(error: Exception) -> str:
    """Return an error as a sentence; a foreign one often is a word that needs its type."""
    return str(error) if isinstance(error, InfrastructureError) else repr(error)


def _digest(sessions: Sequence[CandidateSession]) -> str:
    lines = "".join(f"{session.transcript_sha256}\n" for session in sessions)
    return hashlib.sha256(lines.encode("ascii")).hexdigest()
