"""A folder that the user asks to judge: its plan, its grading, and evaluation.json."""

from __future__ import annotations

from datetime import datetime

from pytest_evalarc.model.audit import Evaluation
from pytest_evalarc.model.base import Fraction, Model, Name, Sha256
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import TaskRef


class CandidatePlan(Model):
    """plan.json of a candidate: what it is and which checks judge it."""

    schema_version: str
    batch: Name
    task: TaskRef
    candidate_sha256: Sha256 | None
    """Digest of the folder; None for one that cannot be read as a submission."""
    checks: dict[Name, tuple[Name, ...]]
    """Dimensions by check, in declared order."""
    weights: dict[Name, float]
    sandbox: Name
    image: str | None = None
    """What candidates of packs run in, as it was named; None for a sandbox without images."""


class Made(Model):
    """When a candidate was graded, and by which version of this package."""

    created_at: datetime
    package_version: str


class CandidateDoc(Model):
    """grading.json: the candidate, graded."""

    schema_version: str
    task: TaskRef
    made: Made
    grading: Grading


class _Header(Model):
    schema_version: str
    batch: Name


class EvaluationDoc(Evaluation, Made, _Header):
    """evaluation.json: what the candidate scores, and whether it is resolved."""

    checks: dict[Name, tuple[Name, ...]]
    """Dimensions by check, in declared order."""
    weights: dict[Name, Fraction]
