"""<batch>.summary.json: what a batch shows over all of its tasks and clients."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from pytest_evalarc.model.base import Count, Fraction, Model, Name
from pytest_evalarc.model.benchmark import Level, Matched
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.shown import Shown

Difference: TypeAlias = Annotated[float, Field(ge=-1.0, le=1.0)]
"""Of two rates."""


class TaskRate(Model):
    """One configuration of one task."""

    eligible: Count
    succeeded: Count
    success_rate: Fraction | None
    ci95: Interval | None


class TaskSummary(Model):
    """One task with one client: the row that its benchmark.json gives."""

    task: Name
    client: Name
    model: str | None
    treatment: Name | None
    content_hash: str
    isolation: Level | None
    selection: Literal["complete", "partial"]
    configurations: dict[Name, TaskRate]
    delta: Difference | None
    """Success rate of the treatment minus that of its baseline."""
    delta_ci95: Interval | None
    p_value: Fraction | None
    p_value_holm: Fraction | None
    """Adjusted by Holm's method for all tasks of the same client, model and treatment that are
    compared."""
    matched: Matched | None
    verdict: Shown | None
    """That of benchmark.json, but of a difference only where the adjusted p-value, too, is at most
    0.05."""
    left_out: Literal["partial", "not_enforced", "models_differ", "no_rate"] | None
    """Why this task does not count across tasks; None for one that does."""


class ClusteredRate(Model):
    """A success rate over tasks, each of which weighs the same."""

    success_rate: Fraction
    ci95: Interval | None
    """Expanded percentile bootstrap over whole tasks; None below 5 tasks."""


class AcrossTasks(Model):
    """One client, model and treatment over the tasks that count."""

    client: Name
    model: str | None
    treatment: Name | None
    tasks: Count
    """Tasks that count; each weighs the same, however many trials it had."""
    left_out: tuple[Name, ...]
    """Tasks that do not count; their rows say why."""
    configurations: dict[Name, ClusteredRate]
    """Means of the tasks' rates; empty where no task counts."""
    delta: Difference | None
    """Mean of the tasks' differences; None without a treatment, or where no task counts."""
    delta_ci95: Interval | None
    """Expanded percentile bootstrap over whole tasks; None below 5 tasks."""
    verdict: Shown | None
    """On which side of 0 that interval lies, if on one; None where there is none."""
    reason: Literal["too_few_tasks", "no_task"] | None
    """Why there is no interval."""


class Bootstrap(Model):
    """How intervals over tasks were drawn, so that they can be drawn again."""

    method: Literal["expanded_percentile"] = "expanded_percentile"
    resamples: Annotated[int, Field(ge=1)]
    seed: int


class Summary(Model):
    """A pure function of the plan.json and result.json files of a batch."""

    schema_version: str
    batch: Name
    tasks: tuple[TaskSummary, ...]
    """By task and client."""
    across_tasks: tuple[AcrossTasks, ...]
    """By client, model and treatment. Scores of different tasks are never averaged."""
    bootstrap: Bootstrap
    interpretation: str
