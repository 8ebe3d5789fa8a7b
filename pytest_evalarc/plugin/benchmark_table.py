"""A benchmark on a terminal: the verdict, a row for each configuration, and what stands behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.plugin.tables import aligned, counted, interval, mean, rate, signed

if TYPE_CHECKING:
    from pytest_evalarc.model.benchmark import Benchmark, ConfigurationBenchmark, Delta

COLUMNS = ("configuration", "succeeded", "rate", "95 % interval", "code", "tokens", "agent s")
COST_COLUMN = "US $"
"""Only there when a session told what it cost."""
_VERDICTS = {
    Shown.HELPED: "{} helped",
    Shown.HARMED: "{} harmed",
    Shown.NO_DIFFERENCE: "no difference is shown for {}",
    Shown.TOO_FEW: "too few trials to tell whether {} helped",
}
_COLOURS = {Shown.HELPED: "green", Shown.HARMED: "red"}


def benchmark_title(benchmark: Benchmark) -> str:
    """Return what a benchmark is of."""
    return f"{benchmark.task}: trials with {benchmark.client}"


def verdict_line(benchmark: Benchmark) -> str | None:
    """Return what the trials show of the treatment; None where nothing is compared."""
    delta = benchmark.delta
    # A batch that is not whole yet has rates that the rest of its trials may turn around.
    if delta is None or delta.verdict is None or benchmark.selection == "partial":
        return None
    return _VERDICTS[delta.verdict].format(benchmark.treatment)


def verdict_colour(benchmark: Benchmark) -> str:
    """Return the colour that tells the verdict at a glance."""
    verdict = benchmark.delta.verdict if benchmark.delta is not None else None
    return _COLOURS.get(verdict, "yellow") if verdict is not None else "yellow"


def benchmark_lines(benchmark: Benchmark, *, verbose: bool = False) -> list[str]:
    """Return a benchmark: title, verdict, heads, a row for each configuration, remarks.

    Args:
        benchmark: The benchmark.
        verbose: Whether each cause has a line of its own, and more is told of each configuration.
    """
    rows: list[tuple[str, ...]] = [(*COLUMNS, COST_COLUMN)]
    rows += [_row(name, found) for name, found in benchmark.configurations.items()]
    if benchmark.delta is not None:
        rows.append(_delta_row(benchmark.delta))
    found = benchmark.configurations.values()
    if all(configuration.cost.eligible.cost_usd.trials == 0 for configuration in found):
        rows = [row[:-1] for row in rows]
    verdict = verdict_line(benchmark)
    return [
        benchmark_title(benchmark),
        *([verdict] if verdict is not None else []),
        *aligned(rows),
        *_remarks(benchmark, verbose=verbose),
    ]


def benchmark_line(benchmark: Benchmark) -> str:
    """Return a benchmark in one line: the verdict, and each rate with what it is a rate of."""
    told = [
        f"{name} {found.succeeded} of {found.eligible}"
        for name, found in benchmark.configurations.items()
    ]
    if benchmark.delta is not None and benchmark.delta.success_rate is not None:
        bounds = interval(benchmark.delta.success_rate_ci95, sign="+")
        told.append(f"delta {signed(benchmark.delta.success_rate)} ({bounds})")
    if benchmark.shard is not None and benchmark.shard.is_part:
        told.append(f"shard {benchmark.shard}")
    elif benchmark.selection == "partial":
        told.append("partial")
    told += [verdict for verdict in [verdict_line(benchmark)] if verdict is not None]
    return f"{benchmark_title(benchmark)}: {', '.join(told)}"


def _row(name: str, found: ConfigurationBenchmark) -> tuple[str, ...]:
    return (
        name,
        f"{found.succeeded} of {found.eligible}",
        rate(found.success_rate),
        interval(found.ci95),
        rate(found.code.rate),
        mean(found.cost.eligible.tokens, digits=0),
        mean(found.cost.eligible.agent_secs),
        mean(found.cost.eligible.cost_usd),
    )


def _delta_row(delta: Delta) -> tuple[str, ...]:
    return (
        "delta",
        "",
        signed(delta.success_rate),
        interval(delta.success_rate_ci95, sign="+"),
        signed(delta.code_rate),
        signed(delta.cost["eligible"]["tokens"], digits=0),
        signed(delta.cost["eligible"]["agent_secs"]),
        signed(delta.cost["eligible"]["cost_usd"]),
    )


def _remarks(benchmark: Benchmark, *, verbose: bool) -> Iterator[str]:
    """Yield what a reader must know beside the rates."""
    for name, found in benchmark.configurations.items():
        if found.eligible < found.planned:
            yield f"{name}: {found.eligible} of {counted(found.planned, 'planned trial')} count"
        yield from (_each_cause(name, found) if verbose else _causes(name, found))
        for skill, loads in (found.observed_load or {}).items():
            seen = ", ".join(f"{n} {load.value}" for load, n in loads.items() if n)
            yield f"{name}: skill {skill}: {seen or 'no eligible trial'}"
        if verbose:
            yield from _details(name, found)
    if benchmark.shard is not None and benchmark.shard.is_part:
        yield f"partial: shard {benchmark.shard} of the plan; merge the shards before comparing"
    elif benchmark.selection == "partial":
        yield "partial: not every planned trial reached its end; do not compare the rates"
    if benchmark.delta is not None and benchmark.delta.reason == "models_differ":
        yield f"models differ, so there is no delta: {_served(benchmark)}"
    if benchmark.isolation not in ("enforced", None):
        yield f"isolation: {benchmark.isolation}; such trials are not compared"


def _causes(name: str, found: ConfigurationBenchmark) -> Iterator[str]:
    """Yield why trials failed or do not count, in one line."""
    causes = [
        f"{_spelt(group)}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        for group, kinds in found.causes.items()
        if kinds
    ]
    if found.inconclusive:
        causes.append(f"inconclusive: {found.inconclusive}")
    if causes:
        yield f"{name}: {'; '.join(causes)}"


def _each_cause(name: str, found: ConfigurationBenchmark) -> Iterator[str]:
    for group, kinds in found.causes.items():
        for kind, number in kinds.items():
            yield f"{name}: {_spelt(group)}: {kind}: {counted(number, 'trial')}"
    if found.inconclusive:
        yield f"{name}: inconclusive: {counted(found.inconclusive, 'trial')}"


def _details(name: str, found: ConfigurationBenchmark) -> Iterator[str]:
    for expectation, verdicts in (found.expectations or {}).items():
        seen = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items() if n)
        yield f"{name}: {expectation}: {seen or 'not judged'}"
    for models, number in found.served.items():
        yield f"{name}: answered by {printable(models, limit=200)}: {counted(number, 'trial')}"
    tokens = found.cost.eligible.tokens
    if 0 < tokens.trials < found.eligible:
        yield f"{name}: tokens are known of {counted(tokens.trials, 'trial')}"


def _spelt(group: str) -> str:
    return group.replace("_", " ")


def _served(benchmark: Benchmark) -> str:
    """Return which models answered how many trials of each configuration."""
    told = [
        f"{name} was answered by "
        + ", ".join(f"{printable(models, limit=200)} ({n})" for models, n in found.served.items())
        for name, found in benchmark.configurations.items()
        if found.served
    ]
    return "; ".join(told)
