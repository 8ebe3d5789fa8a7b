"""benchmark.json: what the trials of one task and client add up to."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from pytest_evalarc.model.base import Count, Fraction, JsonObject, Model, Name
from pytest_evalarc.model.transcript import Load


class Excluded(Model):
    """Started trials that do not count."""

    isolation: Count
    grading: Count


class Mean(Model):
    """A mean with the number of trials it is over; null with none."""

    mean: float | None
    trials: Count


class CostOver(Model):
    """Mean tokens, agent time and price over one set of trials."""

    tokens: Mean
    agent_secs: Mean
    cost_usd: Mean


class Cost(Model):
    """Cost over eligible trials and over succeeded ones."""

    eligible: CostOver
    succeeded: CostOver


class CodeRate(Model):
    """How often the code checks passed, expectations aside."""

    passed: Count
    eligible: Count
    rate: Fraction | None


class ConfigurationBenchmark(Model):
    """One configuration's counts, rates and means."""

    planned: Count
    setup_failures: Count
    cancelled: Count
    started: Count
    excluded: Excluded
    eligible: Count
    succeeded: Count
    failed: Count
    inconclusive: Count
    success_rate: Fraction | None
    """Succeeded over eligible; None with no eligible trial."""
    pass_all: bool | None
    """Whether every eligible trial succeeded; None with none."""
    code: CodeRate
    causes: dict[Name, dict[Name, Count]]
    """Counts by cause, below `setup_failures`, `cancelled`, `excluded` and `failed`."""
    observed_load: dict[Name, dict[Load, Count]] | None = None
    """Loads per skill over eligible trials; absent without a treatment."""
    expectations: dict[str, dict[Name, Count]] | None = None
    """Verdicts per expectation over eligible trials; absent without a treatment."""
    cost: Cost
    served: dict[str, Count]
    """Eligible trials by the models that answered them, as `a` or `a + b`; a trial whose client
    does not say is left out."""

    @model_validator(mode="after")
    def _everything_ends_somewhere(self) -> Self:
        if self.planned != self.setup_failures + self.cancelled + self.started:
            raise ValueError("planned is not setup failures + cancelled + started")
        excluded = self.excluded.isolation + self.excluded.grading
        if self.eligible != self.started - excluded:
            raise ValueError("eligible is not started - excluded")
        if self.eligible != self.succeeded + self.failed + self.inconclusive:
            raise ValueError("eligible is not succeeded + failed + inconclusive")
        return self

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        data: JsonObject = handler(self)
        return {
            key: value
            for key, value in data.items()
            if not (value is None and key in ("observed_load", "expectations"))
        }


class Delta(Model):
    """Treatment configuration minus its baseline; null where either side is null."""

    success_rate: float | None
    code_rate: float | None
    cost: dict[
        Literal["eligible", "succeeded"],
        dict[Literal["tokens", "agent_secs", "cost_usd"], float | None],
    ]
    reason: Literal["not_enforced", "models_differ"] | None = None
    """Why everything here is null: `not_enforced` when a started trial ran without an enforced
    boundary, `models_differ` when eligible trials were not all answered by the same models."""


class Benchmark(Model):
    """benchmark.json: a pure function of plan.json and the result.json files."""

    schema_version: str
    batch: Name
    task: Name
    kind: Literal["capability", "regression"]
    content_hash: str
    client: Name
    model: str | None = None
    treatment: Name | None = None
    isolation: Literal["enforced", "exploratory", "trusted_local", "mixed"] | None
    """Level of all started trials; None with none."""
    selection: Literal["complete", "partial"]
    """`partial` when a planned trial never reached its end: such rates are not compared."""
    configurations: dict[Name, ConfigurationBenchmark]
    delta: Delta | None = Field(default=None)
    """Absent for a task without treatment."""

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        data: JsonObject = handler(self)
        if self.delta is None:
            data.pop("delta", None)
        return data
