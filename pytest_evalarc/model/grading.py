"""The row of outcomes that one submission gets: the same for trials, controls and candidates."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pytest_evalarc.model.base import Cause, Count, JsonObject, Model, Name, Sha256
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import Limits, Seconds

CheckStatus = Literal["passed", "failed", "agent_error", "environment_error", "not_run"]
StepStatus = Literal["pass", "fail", "error", "skipped"]


class ProcessRow(Model):
    """One process of a check: how it ended and how much it said."""

    exit_code: int | None
    reason: Name
    """`exited`, or what ended it: `deadline`, `output_limit`, `killed`, …"""
    output_bytes: Count
    stderr_tail: str = ""


class CheckRow(Model):
    """One case of one seed; a file task's hidden check has one dimension and seed None."""

    check: Name
    seed: int | None = None
    verdicts: dict[Name, bool | None]
    """Verdict by dimension; None where it could not be assessed."""
    status: CheckStatus
    """`failed`: it ran to its end and found a wrong outcome. `agent_error`: it did not get there
    through the submission's fault. `environment_error`: through ours."""
    cause: Cause | None = None
    answered: bool = False
    """Whether the submission gave a first answer: tells a wrong one from one that never started."""
    wall_time_s: float | None = None
    detail: str = ""
    transcript_sha256: Sha256 | None = None
    processes: tuple[ProcessRow, ...] = ()
    trace: tuple[JsonObject, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every dimension passed."""
        return self.status == "passed"


class StepRow(Model):
    """One step before or beside the checks, as `build` or `fmt_check`."""

    name: Name
    status: StepStatus
    cause: Cause | None = None
    wall_time_s: float | None = None
    detail: str = ""
    output_bytes: Count = 0


class Runtime(Model):
    """What a submission met while it was judged; only results of equal runtimes are compared."""

    sandbox: Name
    image: str | None = None
    """As it was named; None for a sandbox without images."""
    image_id: str | None = None
    """What the name stood for when it was looked up."""
    toolchain: str
    """Version of the language's own program, as `CPython 3.11.7`."""
    platform: str
    """Operating system and architecture."""
    command: tuple[str, ...] = ()
    """Template of the candidate's command; empty where there is no pack."""
    limits: Limits
    response_timeout_seconds: Seconds | None = None
    """This and what follows are bounds of a pack's sessions; None where there is no pack."""
    startup_timeout_seconds: Seconds | None = None
    case_timeout_seconds: Seconds | None = None
    session_output_limit_bytes: Count | None = None
    request_limit_bytes: Count | None = None


class CachedFrom(Model):
    """Where a grading comes from that was not made anew."""

    key: Sha256
    """Digest of all that decided it, by which the cache of gradings has it."""
    graded_at: datetime
    """When it was made; the times in it are of then."""


class Grading(Model):
    """What grading one submission gave; a re-grade appends another, never overwrites."""

    submission_sha256: Sha256
    grader_sha256: Sha256
    checks_sha256: Sha256
    status: Literal["graded", "infrastructure_error"]
    cause: Cause | None = None
    steps: tuple[StepRow, ...]
    rows: tuple[CheckRow, ...]
    edits_outside_editable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Patterns of paths that are never counted as edits: toolchain outputs and the treatment's."""
    isolation: IsolationRecord
    runtime: Runtime | None = None
    """None in what was written before it was recorded."""
    wall_time_s: float | None = None
    command_time_s: float | None = None
    """Seconds that the graded commands themselves took; the rest is ours."""
    cached: CachedFrom | None = None
    """None: it was made for the result it stands in."""

    @property
    def code_passed(self) -> bool:
        """Whether every step and every check passed."""
        return (
            self.status == "graded"
            and self.cause is None
            and all(step.status in ("pass", "skipped") for step in self.steps)
            and all(row.passed for row in self.rows)
        )
