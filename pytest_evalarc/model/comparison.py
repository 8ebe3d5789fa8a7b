"""Two evaluations side by side: what must be equal in both, and what changed."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from pytest_evalarc.model.base import Cause, Count, Fraction, Model, Name, Sha256
from pytest_evalarc.model.candidate import Made
from pytest_evalarc.model.grading import CheckStatus, Runtime, StepStatus
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.measured import Part
from pytest_evalarc.model.task import TaskRef


class Conditions(Model):
    """What evaluations must share to be compared, under the names it has in evaluation.json."""

    schema_version: str
    task: TaskRef
    grader_sha256: Sha256
    cases_sha256: Sha256
    runtime: Runtime | None
    """None in what was written before it was recorded, and then nothing is compared."""
    seeds: tuple[int, ...]
    checks: dict[Name, tuple[Name, ...]]
    weights: dict[Name, Fraction]


class CaseVerdicts(Model):
    """What one case of one seed found."""

    seed: int | None
    case: Name
    status: CheckStatus
    verdicts: dict[Name, bool | None]


class Side(Made):
    """One of the two evaluations, as far as a comparison needs it."""

    batch: Name
    candidate_sha256: Sha256
    score: Fraction | None
    """None for a task without checks."""
    resolved: bool
    cause: Cause | None
    steps: dict[Name, StepStatus]
    cases: tuple[CaseVerdicts, ...]
    isolation: IsolationRecord


class ComparedCheck(Model):
    """One check: a case of one seed, in one dimension."""

    seed: int | None
    case: Name
    dimension: Name


class FailedCase(Model):
    """A case of one seed that did not pass."""

    seed: int | None
    case: Name


class CaseTransition(Model):
    """A case of one seed in which something changed."""

    seed: int | None
    case: Name
    before: CheckStatus
    after: CheckStatus
    regressed: tuple[Name, ...]
    """Dimensions that passed in the baseline and do not now."""
    improved: tuple[Name, ...]


class Comparison(Conditions):
    """What became better and worse from a baseline to another evaluation of the same task."""

    baseline: Side
    current: Side
    score_delta: float | None = Field(ge=-1.0, le=1.0)
    """Current minus baseline, rounded to 8 decimals; None where either has no score."""
    regressions: tuple[ComparedCheck, ...]
    """Checks that passed in the baseline and do not now."""
    improvements: tuple[ComparedCheck, ...]
    regressed_steps: tuple[Name, ...]
    """Steps, as `build`, that passed in the baseline and do not now."""
    improved_steps: tuple[Name, ...]
    case_transitions: tuple[CaseTransition, ...]
    current_failed_cases: tuple[FailedCase, ...]
    has_regressions: bool
    """Whether a check or a step regressed, whatever improved beside it."""
    interpretation: str


class Change(StrEnum):
    """What became of one row from a baseline to another measurement."""

    REGRESSED = "regressed"
    """It passed at least once, and never does now."""
    LESS_RELIABLE = "less_reliable"
    """Its rate fell, though not to 0; a mutant is caught by fewer cases."""
    REMOVED = "removed"
    """It is in the baseline alone."""
    INCOMPARABLE = "incomparable"
    """It was not measured in the same way, or one side knows nothing of it."""
    NEWLY_COVERED = "newly_covered"
    """It is in the current measurement alone."""
    IMPROVED = "improved"
    UNCHANGED = "unchanged"


class Tally(Model):
    """One row of one side."""

    passed: Count
    judged: Count
    margin: Count | None = None
    """Of a mutant."""


class ComparedRow(Model):
    """One check, step, expectation, success or control, on both sides."""

    task: str
    client: str | None
    """None for an audit."""
    configuration: Name | None
    part: Part
    name: str
    change: Change
    before: Tally | None
    """None where the baseline has no such row."""
    after: Tally | None
    difference_ci95: Interval | None = None
    """Of the rate, current minus baseline, over trials that are independent; None for a control
    and where nothing is compared."""
    reason: str | None = None
    """Why it is not compared: the field that differs, with both values."""


class BatchComparison(Model):
    """What became better and worse between two sets of batches, audits or imported results."""

    schema_version: str
    baseline: tuple[str, ...]
    """Each measurement as `<task>/<client>/<batch>` or `<task>/audit/<batch>`."""
    current: tuple[str, ...]
    across: tuple[str, ...]
    """Conditions that the caller allowed to differ."""
    changes: dict[Change, Count]
    """How many rows changed so."""
    rows: tuple[ComparedRow, ...]
    interpretation: str
