"""benchmark.json: what the trials of one task and client add up to."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from pytest_evalarc.model.base import Count, Fraction, JsonObject, Model, Name
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.model.transcript import Load

Level: TypeAlias = Literal["enforced", "exploratory", "trusted_local", "mixed"]
"""Of isolation, over many trials."""

Several: TypeAlias = Annotated[int, Field(ge=1)]
"""A number of trials."""


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
    ci95: Interval | None = None
    """Wilson's 95 % score interval of the success rate, to 8 decimals; None with no eligible
    trial."""
    pass_at_k: dict[Several, Fraction] = {}
    """Unbiased estimate of the chance that at least one of k trials succeeds, by k: each up to 10
    and `eligible`, the n that it is from. Empty with no eligible trial."""
    pass_pow_k: dict[Several, Fraction] = {}
    """The same of the chance that all of k trials succeed (pass^k)."""
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


class Matched(Model):
    """Trials of the same number in both configurations, where both are eligible."""

    both: Count
    """Pairs in which both trials succeeded."""
    only_treated: Count
    only_baseline: Count
    neither: Count
    p_value: Fraction
    """McNemar's exact test, two-sided, to 8 decimals; 1 where no pair ended differently."""


class Delta(Model):
    """Treatment configuration minus its baseline; null where either side is null."""

    success_rate: float | None
    success_rate_ci95: Interval | None = None
    """Newcombe's 95 % hybrid score interval of the difference of two independent rates, to 8
    decimals."""
    p_value: Fraction | None = None
    """Fisher's exact test of the two rates, two-sided, to 8 decimals."""
    matched: Matched | None = None
    """None where no trial of either side has its counterpart."""
    verdict: Shown | None = None
    """On which side of 0 the interval lies, if on one; `too_few_trials_to_tell` below 5 eligible
    trials of either side. None also where the selection is partial."""
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
    isolation: Level | None
    """Level of all started trials; None with none."""
    selection: Literal["complete", "partial"]
    """`partial` when a planned trial never reached its end, or when this is one of several shards:
    such rates are not compared."""
    shard: Shard | None = Field(default=None)
    """Which part of the plan this is of: trials of other shards are counted nowhere here. Absent
    for a batch that one machine ran, or that was merged."""
    configurations: dict[Name, ConfigurationBenchmark]
    delta: Delta | None = Field(default=None)
    """Absent for a task without treatment."""

    @model_serializer(mode="wrap")
    def _leave_out_absent(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        data: JsonObject = handler(self)
        return {
            key: value
            for key, value in data.items()
            if not (value is None and key in ("shard", "delta"))
        }
