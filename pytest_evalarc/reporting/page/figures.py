"""Numbers of a benchmark as rows of tables, each exact beside what is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pytest_evalarc.counting.benchmark import CostFigure
from pytest_evalarc.model.benchmark import Benchmark, ConfigurationBenchmark, Delta, Mean
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.reporting.page import words
from pytest_evalarc.reporting.page.trial import UNKNOWN

End: TypeAlias = Literal["low", "high"]
"""Of an interval."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number of a document, and how it is told; None where there is none."""

    value: float | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measure of every configuration, and the difference that the treatment makes."""

    label: str
    cells: tuple[Number, ...]
    difference: Number | None = None
    is_lead: bool = False
    """Whether it is what a reader looks for first."""


def figures(benchmark: Benchmark) -> list[Figure]:
    """Return what a benchmark counts, as rows of a table with a column each configuration."""
    counted = list(benchmark.configurations.values())
    delta = benchmark.delta
    return [
        Figure(
            label="success rate",
            cells=tuple(_rate(each.success_rate, each) for each in counted),
            difference=told_points(delta.success_rate) if delta else None,
            is_lead=True,
        ),
        *_bounds(delta, counted),
        Figure(
            label="code alone passed",
            cells=tuple(_rate(each.code.rate, each) for each in counted),
            difference=told_points(delta.code_rate) if delta else None,
        ),
        _count("eligible", [each.eligible for each in counted]),
        _count("succeeded", [each.succeeded for each in counted]),
        _count("failed", [each.failed for each in counted]),
        _count("inconclusive", [each.inconclusive for each in counted]),
        _count("planned", [each.planned for each in counted]),
        _count("setup failures", [each.setup_failures for each in counted]),
        _count("cancelled", [each.cancelled for each in counted]),
        _count("excluded: isolation", [each.excluded.isolation for each in counted]),
        _count("excluded: grading", [each.excluded.grading for each in counted]),
        _mean("mean tokens", "tokens", counted, delta),
        _mean("mean session seconds", "agent_secs", counted, delta),
        _mean("mean cost in US dollars", "cost_usd", counted, delta),
    ]


def _count(label: str, counts: Sequence[int | None]) -> Figure:
    cells = (Number(value=n, text=UNKNOWN if n is None else f"{n:,}") for n in counts)
    return Figure(label=label, cells=tuple(cells))


def _rate(rate: float | None, counted: ConfigurationBenchmark) -> Number:
    if rate is None:
        why = words.no_rate(counted) if not counted.eligible else "none of them is known"
        return Number(value=None, text=f"{UNKNOWN} {why}")
    return told_rate(rate)


def told_rate(rate: float | None) -> Number:
    """Return a rate, which may be unknown."""
    return Number(value=rate, text=words.percent(rate))


def told_points(difference: float | None) -> Number:
    """Return a difference of rates."""
    return Number(value=difference, text=words.points(difference))


_ENDS: tuple[tuple[str, End], ...] = (("95 % interval from", "low"), ("95 % interval to", "high"))


def _bounds(delta: Delta | None, counted: Sequence[ConfigurationBenchmark]) -> Iterator[Figure]:
    """Yield the ends of the intervals, each a row: a number stands alone in its cell."""
    apart = delta.success_rate_ci95 if delta else None
    for label, end in _ENDS:
        yield Figure(
            label=label,
            cells=tuple(told_end(each.ci95, end, signed=False) for each in counted),
            difference=told_end(apart, end, signed=True) if delta else None,
        )


def told_end(interval: Interval | None, end: End, *, signed: bool) -> Number:
    """Return one end of an interval; signed for that of a difference."""
    value = None if interval is None else float(getattr(interval, end))
    return Number(value=value, text=words.points(value) if signed else words.percent(value))


def _mean(
    label: str, key: CostFigure, counted: Sequence[ConfigurationBenchmark], delta: Delta | None
) -> Figure:
    means: list[Mean] = [getattr(each.cost.eligible, key) for each in counted]
    cells = (
        Number(
            value=mean.mean,
            text=UNKNOWN
            if mean.mean is None
            else f"{words.amount(mean.mean)} ({mean.trials} trials)",
        )
        for mean in means
    )
    if delta is None:
        return Figure(label=label, cells=tuple(cells))
    value = delta.cost["eligible"][key]
    told = UNKNOWN if value is None else f"{'+' if value > 0 else ''}{words.amount(value)}"
    return Figure(label=label, cells=tuple(cells), difference=Number(value=value, text=told))


def causes(benchmark: Benchmark) -> list[Figure]:
    """Return why trials ended where they did, and what was seen of skills, as rows of a table.

    Skills and expectations are judged under the treatment alone; elsewhere stands a dash.
    """
    counted = list(benchmark.configurations.values())
    found: dict[str, list[int | None]] = {}
    for column, each in enumerate(counted):
        for label, count in _reasons(each):
            found.setdefault(label, [0] * len(counted))[column] = count
    for column, each in enumerate(counted):
        for label, count in _observations(each):
            usual = [None if other.observed_load is None else 0 for other in counted]
            found.setdefault(label, usual)[column] = count
    return [_count(label, counts) for label, counts in found.items()]


def _reasons(counted: ConfigurationBenchmark) -> Iterator[tuple[str, int]]:
    for group, kinds in counted.causes.items():
        for kind, count in kinds.items():
            yield f"{group.replace('_', ' ')}: {kind.replace('_', ' ')}", count
    for models, count in counted.served.items():
        yield f"answered by {models}", count


def _observations(counted: ConfigurationBenchmark) -> Iterator[tuple[str, int]]:
    for skill, loads in (counted.observed_load or {}).items():
        for load, count in loads.items():
            yield f"load of {skill}: {load.value.replace('_', ' ')}", count
    for name, verdicts in (counted.expectations or {}).items():
        for verdict, count in verdicts.items():
            yield f"expectation {name}: {verdict}", count
