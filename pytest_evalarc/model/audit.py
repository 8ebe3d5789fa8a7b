"""Controls and what they show about a task's checks: audit plans, control rows, audit.json."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_evalarc.model.base import Cause, Count, Fraction, Model, Name, Sha256
from pytest_evalarc.model.controls import AuditMode
from pytest_evalarc.model.grading import CachedFrom, CheckRow, Grading, Runtime, StepRow
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import TaskRef

MutantClass = Literal["detected", "survived", "off_target", "broken", "invalid", "not_run"]


class PlannedMutant(Model):
    """A declared mutant, as an audit needs to know it."""

    name: Name
    target_dimension: Name


class AuditPlan(Model):
    """Which controls an audit consists of; written before the first one is graded."""

    schema_version: str
    batch: Name
    task: TaskRef
    mode: AuditMode
    checks: dict[Name, tuple[Name, ...]]
    """Dimensions by check, in declared order."""
    weights: dict[Name, float]
    mutants: tuple[PlannedMutant, ...]
    sandbox: Name
    image: str | None = None
    """What candidates of packs run in, as it was named; None for a sandbox without images."""


class ControlDoc(Model):
    """rows/<control>.json: one control, graded."""

    schema_version: str
    task: TaskRef
    control: Name
    grading: Grading


class DimensionScore(Model):
    """One dimension of one submission."""

    passed: Count
    total: Count
    assessed: Count
    weight: Fraction
    score: Fraction | None
    """Passed cases over all cases; None when one could not be assessed."""


class Evaluation(Model):
    """What grading one submission says, in EvalArc's words."""

    task: TaskRef
    candidate_sha256: Sha256
    grader_sha256: Sha256
    cases_sha256: Sha256
    runtime: Runtime | None
    seeds: tuple[int, ...]
    """Those of a pack that were run; empty for a file task."""
    valid: bool
    grading_status: Literal["graded", "infrastructure_error"]
    """`infrastructure_error`: the harness broke as a whole, and not in one step or case alone."""
    cause: Cause | None
    """What is wrong with the submission or the grading as a whole; None where nothing is."""
    status: Literal["passed", "failed", "environment_error"]
    score: Fraction | None
    resolved: bool
    dimensions: dict[Name, DimensionScore]
    cases: tuple[CheckRow, ...]
    steps: tuple[StepRow, ...]
    edits_outside_editable: tuple[str, ...] = ()
    isolation: IsolationRecord
    evaluation_seconds: float | None
    cached: CachedFrom | None = None
    """Where the grading comes from, when it was not made anew; its seconds are of then."""


class MutantAudit(Model):
    """One declared fault: whether, where and how narrowly it was caught."""

    name: Name
    target_dimension: Name
    class_: MutantClass = Field(alias="class")
    killed: bool
    """Whether its class is `detected`; EvalArc's word."""
    detection_margin: Count | None
    """Distinct cases that failed in the target dimension; None unless this control was judged and
    the reference passed."""
    margin_any: Count | None
    """Distinct cases that failed in any dimension; None also when not every case was run."""
    failing_cases: tuple[Name, ...]
    """The cases behind the detection margin."""
    valid: bool
    score: Fraction | None
    candidate_sha256: Sha256 | None
    reason: str = ""
    """Why the class is what it is, for a person."""
    evaluation: Evaluation | None


class Detection(Model):
    """How narrowly the declared faults were caught."""

    weakest_margin: Count | None
    """Smallest detection margin, survivors as 0; None when anything is invalid."""
    single_case_detections: tuple[Name, ...]
    sole_detector_cases: tuple[Name, ...]


class Coverage(Model):
    """What each case is worth to the audit."""

    leave_one_out: dict[Name, Fraction | None]
    """Mutation score of the audit without that case."""
    idle_cases: tuple[Name, ...]
    """Cases that detect no declared fault on target."""
    minimal_sets: tuple[tuple[Name, ...], ...]
    """Smallest sets of cases that keep the mutation score."""
    minimal_sets_complete: bool
    """False when there are more than were listed."""
    untargeted_dimensions: tuple[Name, ...]
    flaky: tuple[Name, ...]
    """Cases whose verdict on the reference changed when it was graded again."""


class StarterAudit(Model):
    """The bare starter: it must fail something, or the task asks for nothing."""

    failed_something: bool | None
    """None when it was not assessed."""
    evaluation: Evaluation | None


class Audit(Model):
    """audit.json: can the checks be trusted?"""

    schema_version: str
    batch: Name
    task: TaskRef
    sandbox: Name
    checks: dict[Name, tuple[Name, ...]]
    """Dimensions by check, in declared order."""
    weights: dict[Name, Fraction]
    valid: bool
    reference_passed: bool | None
    reference: Evaluation | None
    reference_repeat: Evaluation | None
    """The reference graded once more; None when it was not."""
    starter: StarterAudit
    mutants: tuple[MutantAudit, ...]
    mutation_score: Fraction | None
    killed: Count
    total: Count
    passed: bool
    reason: Literal["reference_failed", "invalid_control", "no_mutants", "partial"] | None
    """Why score and margins are null; None when they are not."""
    detection: Detection
    coverage: Coverage
    mode: AuditMode
    selection: Literal["complete", "partial"]
    interpretation: str
