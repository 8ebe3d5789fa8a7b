"""What the numbers say, as sentences: whether the treatment helped, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_evalarc.model.audit import Audit, Evaluation
from pytest_evalarc.model.benchmark import Benchmark, ConfigurationBenchmark
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.reporting.cached import cached_of_audit, cached_sentence
from pytest_evalarc.reporting.page.gather import TrialsPart
from pytest_evalarc.reporting.page.trial import UNKNOWN

MOST_CHECKS = 3
"""Checks that are named where several differ."""
MINUS = "\N{MINUS SIGN}"
_INCOMPARABLE = {
    "not_enforced": "trials ran without an enforced boundary (exploratory)",
    "models_differ": "the trials were not all answered by the same models",
}

Word = Literal["helped", "hurt", "not shown", "not compared", "one configuration"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the trials of one task and client say of the treatment."""

    word: Word
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How often a step or check passed in a configuration, over eligible trials."""

    passed: int
    judged: int
    """Trials in which it was judged; where something failed before, it may not have been."""

    def __str__(self) -> str:
        return f"{self.passed} of {self.judged}" if self.judged else UNKNOWN


def sides(benchmark: Benchmark) -> tuple[str, str] | None:
    """Return the configurations with and without the treatment; None unless both were run."""
    names = (f"with-{benchmark.treatment}", f"without-{benchmark.treatment}")
    return names if all(name in benchmark.configurations for name in names) else None


def answer(benchmark: Benchmark) -> Answer:
    """Return whether the treatment helped, hurt, or was not shown to do either."""
    place = f"{benchmark.task} with {benchmark.client}"
    compared = sides(benchmark)
    if compared is None:
        told = "; ".join(
            f"{name}: {_succeeded(counted)}" for name, counted in benchmark.configurations.items()
        )
        return Answer(word="one configuration", sentence=f"{place}: {told}.")
    treated, untreated = (benchmark.configurations[name] for name in compared)
    told = f"{_succeeded(treated)} with it, {_succeeded(untreated)} without"
    obstacle = _obstacle(benchmark, treated, untreated)
    if obstacle is not None:
        sentence = f"{place}: {benchmark.treatment} is not compared, since {obstacle}. {told}."
        return Answer(word="not compared", sentence=sentence)
    difference, interval = _difference(benchmark)
    bounds = f"95 % interval from {points(interval.low)} to {points(interval.high)}"
    measured = f"{told}. The difference is {points(difference)}"
    if 0.0 in interval:
        chance = f"its {bounds} includes 0, so these trials cannot tell an effect from chance"
        sentence = f"{place}: no effect of {benchmark.treatment} is shown. {measured}; {chance}."
        return Answer(word="not shown", sentence=sentence)
    word: Word = "helped" if difference > 0 else "hurt"
    sure = f"its {bounds} leaves out 0"
    sentence = f"{place}: {benchmark.treatment} {word}. {measured}; {sure}."
    return Answer(word=word, sentence=sentence)


def cached_controls(audit: Audit) -> str:
    """Return how many gradings of an audit come from the cache, as a sentence; empty for none."""
    found = cached_of_audit(audit)
    return f"{found}; their seconds are of when they were made." if found.cached else ""


def cached_evaluation(evaluation: Evaluation) -> str:
    """Return where an evaluation's grading comes from, as a sentence; empty when made anew."""
    return cached_sentence(evaluation.cached)


def _succeeded(counted: ConfigurationBenchmark) -> str:
    if counted.success_rate is None:
        return no_rate(counted)
    return f"{counted.succeeded} of {counted.eligible} succeeded ({percent(counted.success_rate)})"


def _difference(benchmark: Benchmark) -> tuple[float, Interval]:
    delta = benchmark.delta
    assert delta is not None
    assert delta.success_rate is not None
    assert delta.success_rate_ci95 is not None
    return delta.success_rate, delta.success_rate_ci95


def _obstacle(
    benchmark: Benchmark, treated: ConfigurationBenchmark, untreated: ConfigurationBenchmark
) -> str | None:
    """Return what forbids a comparison."""
    if benchmark.selection == "partial":
        missing = sum(each.cancelled for each in benchmark.configurations.values())
        return f"the selection is partial: {missing} planned trials never reached their end"
    if benchmark.delta is not None and benchmark.delta.reason is not None:
        return _INCOMPARABLE[benchmark.delta.reason]
    empty = [
        word for word, side in (("with", treated), ("without", untreated)) if not side.eligible
    ]
    return f"no trial {' or '.join(empty)} it is eligible" if empty else None


def no_rate(counted: ConfigurationBenchmark) -> str:
    """Return why a configuration has no rate."""
    lost = {
        "setup failures": counted.setup_failures,
        "cancelled": counted.cancelled,
        "excluded": counted.excluded.isolation + counted.excluded.grading,
    }
    told = ", ".join(f"{count} {what}" for what, count in lost.items() if count)
    return f"no eligible trial ({told or 'none was planned'})"


def tally(part: TrialsPart, configuration: str, column: str) -> Tally:
    """Return how often a step or check passed over the eligible trials of a configuration."""
    cells = [
        row.cells[column]
        for row in part.trials
        if row.entry.configuration == configuration
        and row.is_eligible
        and row.is_graded
        and column in row.cells
    ]
    judged = [cell for cell in cells if cell.word != "unknown"]
    return Tally(passed=sum(cell.word == "pass" for cell in judged), judged=len(judged))


def deciding(part: TrialsPart) -> str:
    """Return which steps and checks tell the configurations apart, as a sentence."""
    compared = sides(part.benchmark)
    if compared is None:
        return _most_missed(part)
    found = []
    for column in part.columns:
        one, other = (tally(part, name, column) for name in compared)
        if one.judged and other.judged:
            gap = one.passed / one.judged - other.passed / other.judged
            found.append((abs(gap), column, one, other))
    if not found:
        return "No step or check was judged on both sides."
    differing = sorted((row for row in found if row[0]), key=lambda row: -row[0])
    if not differing:
        return "No step or check passed more often on one side than on the other."
    told = ", ".join(
        f"{column} ({one} with, {other} without)"
        for _, column, one, other in differing[:MOST_CHECKS]
    )
    return f"Checks that differ most: {told}."


def _most_missed(part: TrialsPart) -> str:
    names = part.benchmark.configurations
    counts = {column: [tally(part, name, column) for name in names] for column in part.columns}
    missed = {
        column: sum(each.judged - each.passed for each in found) for column, found in counts.items()
    }
    worst = sorted((name for name in missed if missed[name]), key=lambda name: -missed[name])
    if not worst:
        return "No step or check failed in an eligible trial."
    told = ", ".join(f"{name} ({missed[name]} trials)" for name in worst[:MOST_CHECKS])
    return f"Checks that failed most: {told}."


def audit_answer(audit: Audit) -> str:
    """Return how far an audit's checks can be trusted, and how narrow it was."""
    if audit.mutation_score is None:
        reason = (audit.reason or "").replace("_", " ")
        return f"{audit.task.name}: the audit has no score ({reason})."
    single = len(audit.detection.single_case_detections)
    hanging = f"{single} of them by a single case each" if single else "none by a single case alone"
    return (
        f"{audit.task.name}: the checks caught {audit.killed} of {audit.total} declared faults, "
        f"{hanging}; the weakest margin is {audit.detection.weakest_margin}."
    )


def percent(rate: float | None) -> str:
    """Return a fraction in percent, to a tenth; a dash for None."""
    return UNKNOWN if rate is None else f"{_tenths(100 * rate)} %"


def points(difference: float | None) -> str:
    """Return a difference of fractions in signed percentage points; a dash for None."""
    if difference is None:
        return UNKNOWN
    told = _tenths(abs(100 * difference))
    sign = "" if told == "0" else "+" if difference > 0 else MINUS
    return f"{sign}{told} points"


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
