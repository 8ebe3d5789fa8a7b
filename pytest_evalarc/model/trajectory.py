"""How the score of a submission went over time: checkpoints, and what they amount to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pytest_evalarc.model.base import Count, Fraction, Model, Name, Sha256
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.comparison import Conditions
from pytest_evalarc.model.task import Seconds


class Checkpoint(Model):
    """What a submission was worth at one moment, as the caller observed it."""

    elapsed_seconds: float
    """On the caller's own clock, from the start of the work."""
    evaluation: EvaluationDoc


class Observation(Model):
    """One checkpoint, as far as a trajectory needs it."""

    elapsed_seconds: float
    batch: Name
    candidate_sha256: Sha256
    score: Fraction
    resolved: bool


class Regression(Model):
    """A checkpoint whose score is below that of the one before; JSON keys `from` and `to`."""

    elapsed_seconds: float
    from_: Fraction = Field(alias="from")
    to: Fraction


class Trajectory(Model):
    """The observed score area of one submission under way."""

    schema_version: str
    budget_seconds: Seconds
    normalized_score_area: Fraction
    """Area under the left-step curve over the budget, rounded to 8 decimals."""
    final_score: Fraction | None
    """The last score that was observed; None when none was."""
    first_resolved_seconds: Annotated[float, Field(ge=0.0)] | None
    regressions: tuple[Regression, ...]
    checkpoint_count: Count
    clock_source: Literal["caller-reported"] = "caller-reported"
    """Nobody but the caller says that the times are true."""
    conditions: Conditions | None
    """What all checkpoints share; None without any."""
    checkpoints: tuple[Observation, ...]
    interpretation: str
