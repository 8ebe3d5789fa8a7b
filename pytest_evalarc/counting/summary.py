"""What a batch shows over all of its tasks and clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean
from typing import Literal, TypeAlias

from pytest_evalarc.counting.benchmark import DECIMALS
from pytest_evalarc.counting.holm import holm
from pytest_evalarc.counting.intervals import CONFIDENCE
from pytest_evalarc.counting.paired import LEAST_TASKS, RESAMPLES, SEED, cluster_bootstrap
from pytest_evalarc.counting.rates import verdict_of
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.model.summary import (
    AcrossTasks,
    Bootstrap,
    ClusteredRate,
    Summary,
    TaskRate,
    TaskSummary,
)

LeftOut: TypeAlias = Literal["partial", "not_enforced", "models_differ", "no_rate"]
_Group: TypeAlias = tuple[str, str, str]

_LEVEL = 1 - CONFIDENCE
_WHAT_IT_DOES_NOT_SHOW = (
    "Tasks weigh the same, and an interval over tasks speaks of tasks like these alone; "
    "no difference shown is not the same as no difference."
)


def summarize_batch(batch: str, benchmarks: Iterable[Benchmark]) -> Summary:
    """Return what a batch shows over its tasks; a function of its benchmarks alone.

    Args:
        batch: The batch's name.
        benchmarks: One for each task and client, in any order.

    Returns:
        A row for each benchmark, and for each client, model and treatment the rates and the
        difference over tasks. A task that is partial, was not enforced, was answered by several
        models or has no rate is left out there, with the reason in its row.

    Raises:
        DocumentError: A benchmark is of another batch, or two are of one task and client.
    """
    ordered = sorted(benchmarks, key=lambda one: (_group(one), one.task))
    _require_one_batch(batch, ordered)
    rows: list[TaskSummary] = []
    across: list[AcrossTasks] = []
    for _, group in groupby(ordered, key=_group):
        adjusted = _adjusted([_row(benchmark) for benchmark in group])
        rows += adjusted
        across.append(_across(adjusted))
    return Summary(
        schema_version=SCHEMA_VERSION,
        batch=batch,
        tasks=tuple(sorted(rows, key=lambda row: (row.task, row.client))),
        across_tasks=tuple(across),
        bootstrap=Bootstrap(resamples=RESAMPLES, seed=SEED),
        interpretation=" ".join(summary_sentences(across)),
    )


def summary_sentences(across: Iterable[AcrossTasks]) -> list[str]:
    """Return the interpretation of a summary, a sentence for each of its rows over tasks."""
    return [*map(_sentence, across), _WHAT_IT_DOES_NOT_SHOW]


def _group(benchmark: Benchmark) -> _Group:
    return (benchmark.client, benchmark.model or "", benchmark.treatment or "")


def _require_one_batch(batch: str, benchmarks: Sequence[Benchmark]) -> None:
    seen: set[tuple[str, str]] = set()
    for benchmark in benchmarks:
        where = f"benchmark of {benchmark.task} with {benchmark.client}"
        if benchmark.batch != batch:
            raise DocumentError(where, f"is of batch {benchmark.batch!r}, not of {batch!r}")
        if (benchmark.task, benchmark.client) in seen:
            raise DocumentError(where, "is there twice")
        seen.add((benchmark.task, benchmark.client))


def _row(benchmark: Benchmark) -> TaskSummary:
    delta = benchmark.delta
    return TaskSummary(
        task=benchmark.task,
        client=benchmark.client,
        model=benchmark.model,
        treatment=benchmark.treatment,
        content_hash=benchmark.content_hash,
        isolation=benchmark.isolation,
        selection=benchmark.selection,
        configurations={
            name: TaskRate(
                eligible=counted.eligible,
                succeeded=counted.succeeded,
                success_rate=counted.success_rate,
                ci95=counted.ci95,
            )
            for name, counted in benchmark.configurations.items()
        },
        delta=delta.success_rate if delta else None,
        delta_ci95=delta.success_rate_ci95 if delta else None,
        p_value=delta.p_value if delta else None,
        p_value_holm=None,
        matched=delta.matched if delta else None,
        verdict=delta.verdict if delta else None,
        left_out=_left_out(benchmark),
    )


def _left_out(benchmark: Benchmark) -> LeftOut | None:
    if benchmark.selection == "partial":
        return "partial"
    if benchmark.delta is not None and benchmark.delta.reason is not None:
        return benchmark.delta.reason
    if benchmark.isolation not in ("enforced", None):
        return "not_enforced"
    rates = [counted.success_rate for counted in benchmark.configurations.values()]
    return "no_rate" if None in rates else None


def _adjusted(rows: Sequence[TaskSummary]) -> list[TaskSummary]:
    """Return the rows of one group, their p-values adjusted to one another."""
    compared = [row for row in rows if row.left_out is None and row.p_value is not None]
    p_values = holm([row.p_value for row in compared if row.p_value is not None])
    adjusted = {
        row.task: round(p_value, DECIMALS) for row, p_value in zip(compared, p_values, strict=True)
    }
    return [_with_holm(row, adjusted.get(row.task)) for row in rows]


def _with_holm(row: TaskSummary, p_value: float | None) -> TaskSummary:
    found = row.verdict
    if found in (Shown.HELPED, Shown.HARMED) and p_value is not None and p_value > _LEVEL:
        found = Shown.NO_DIFFERENCE
    return row.model_copy(update={"p_value_holm": p_value, "verdict": found})


def _across(rows: Sequence[TaskSummary]) -> AcrossTasks:
    counted = [row for row in rows if row.left_out is None]
    deltas = [row.delta for row in counted if row.delta is not None]
    interval = _interval(deltas)
    first = rows[0]
    return AcrossTasks(
        client=first.client,
        model=first.model,
        treatment=first.treatment,
        tasks=len(counted),
        left_out=tuple(row.task for row in rows if row.left_out is not None),
        configurations=_clustered(counted),
        delta=round(fmean(deltas), DECIMALS) if deltas else None,
        delta_ci95=interval,
        verdict=verdict_of(interval) if interval else None,
        reason=_reason(len(counted)),
    )


def _reason(tasks: int) -> Literal["too_few_tasks", "no_task"] | None:
    if not tasks:
        return "no_task"
    return "too_few_tasks" if tasks < LEAST_TASKS else None


def _clustered(rows: Sequence[TaskSummary]) -> dict[str, ClusteredRate]:
    rates: dict[str, list[float]] = {}
    for row in rows:
        for name, rate in row.configurations.items():
            if rate.success_rate is not None:
                rates.setdefault(name, []).append(rate.success_rate)
    return {
        name: ClusteredRate(success_rate=round(fmean(values), DECIMALS), ci95=_interval(values))
        for name, values in rates.items()
    }


def _interval(values: Sequence[float]) -> Interval | None:
    """Return the interval of a mean over tasks; with few of them any would be too narrow."""
    return cluster_bootstrap(values).rounded(DECIMALS) if len(values) >= LEAST_TASKS else None


def _sentence(across: AcrossTasks) -> str:
    whose = f"{across.client} ({across.model})" if across.model else across.client
    if not across.tasks:
        return f"With {whose} no task can be counted."
    tasks = "1 task" if across.tasks == 1 else f"{across.tasks} tasks"
    if across.treatment is None or across.delta is None:
        rates = ", ".join(
            f"{name} {rate.success_rate:.2f}{_bounds(rate.ci95)}"
            for name, rate in across.configurations.items()
        )
        return f"Success rates with {whose} over {tasks}: {rates}."
    told = {
        Shown.HELPED: f"{across.treatment} helped",
        Shown.HARMED: f"{across.treatment} harmed",
        Shown.NO_DIFFERENCE: f"no difference is shown for {across.treatment}",
    }.get(
        across.verdict or Shown.TOO_FEW, f"too few tasks to tell whether {across.treatment} helped"
    )
    return (
        f"With {whose} over {tasks}: {told}, success rate {across.delta:+.2f}"
        f"{_bounds(across.delta_ci95, sign='+')}."
    )


def _bounds(interval: Interval | None, *, sign: str = "") -> str:
    if interval is None:
        return ""
    return f" (95 % from {interval.low:{sign}.2f} to {interval.high:{sign}.2f})"
