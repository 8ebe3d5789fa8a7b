"""What the numbers say, as sentences: whether the treatment helped, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_evalarc.counting.rates import LEAST_TRIALS
from pytest_evalarc.model.audit import Audit, Evaluation
from pytest_evalarc.model.benchmark import Benchmark, ConfigurationBenchmark
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.shown import Shown
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

Word = Literal[
    "helped",
    "harmed",
    "no difference shown",
    "too few trials",
    "too few tasks",
    "not compared",
    "one configuration",
]
Tone = Literal["good", "bad", "unsure", "plain"]
"""How a word is coloured; the word itself says all that the colour does."""
COMPARED: tuple[Word, ...] = ("helped", "harmed", "no difference shown")
WORDS: dict[Shown, Word] = {
    Shown.HELPED: "helped",
    Shown.HARMED: "harmed",
    Shown.NO_DIFFERENCE: "no difference shown",
    Shown.TOO_FEW: "too few trials",
}
_TONES: dict[Word, Tone] = {"helped": "good", "harmed": "bad", "one configuration": "plain"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What trials say of the treatment."""

    word: Word
    headline: str
    """The answer alone, for who reads nothing else."""
    sentence: str
    """What it rests on, and how sure it is."""

    @property
    def tone(self) -> Tone:
        """The tone of the word."""
        return _TONES.get(self.word, "unsure")


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
    """Return whether the treatment helped, harmed, or was not shown to do either.

    The word is the verdict of the benchmark, where it has one.
    """
    place = f"{benchmark.task} with {benchmark.client}"
    compared = sides(benchmark)
    if compared is None:
        told = "; ".join(
            f"{name}: {_succeeded(counted)}" for name, counted in benchmark.configurations.items()
        )
        return Answer(
            word="one configuration", headline=f"{place}: nothing is compared", sentence=f"{told}."
        )
    treated, untreated = (benchmark.configurations[name] for name in compared)
    told = f"{_succeeded(treated)} with it, {_succeeded(untreated)} without."
    obstacle = _obstacle(benchmark, treated, untreated)
    if obstacle is not None:
        headline = f"{place}: {benchmark.treatment} is not compared"
        return Answer(
            word="not compared",
            headline=headline,
            sentence=f"Not compared, since {obstacle}. {told}",
        )
    verdict, difference, interval = _found(benchmark)
    return Answer(
        word=WORDS[verdict],
        headline=f"{place}: {told_verdict(verdict, benchmark.treatment or '', difference)}",
        sentence=f"{told} The difference is {points(difference)}, {_certainty(verdict, interval)}.",
    )


def told_verdict(verdict: Shown, treatment: str, difference: float) -> str:
    """Return a verdict in a few words, with the difference where one is shown."""
    change = f"success rate {points(difference)}"
    return {
        Shown.HELPED: f"{treatment} helped, {change}",
        Shown.HARMED: f"{treatment} harmed, {change}",
        Shown.NO_DIFFERENCE: f"no difference is shown for {treatment}",
        Shown.TOO_FEW: f"too few trials to tell whether {treatment} helped",
    }[verdict]


def _certainty(verdict: Shown, interval: Interval) -> str:
    bounds = f"95 % interval from {points(interval.low)} to {points(interval.high)}"
    if verdict is Shown.TOO_FEW:
        least = f"with fewer than {LEAST_TRIALS} eligible trials on a side no verdict is given"
        return f"{bounds}, but {least}"
    if verdict is Shown.NO_DIFFERENCE:
        return f"{bounds}: it includes 0, so these trials cannot tell an effect from chance"
    return f"{bounds}: it leaves out 0"


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


def _found(benchmark: Benchmark) -> tuple[Shown, float, Interval]:
    delta = benchmark.delta
    assert delta is not None
    assert delta.verdict is not None
    assert delta.success_rate is not None
    assert delta.success_rate_ci95 is not None
    return delta.verdict, delta.success_rate, delta.success_rate_ci95


def _obstacle(
    benchmark: Benchmark, treated: ConfigurationBenchmark, untreated: ConfigurationBenchmark
) -> str | None:
    """Return what forbids a comparison."""
    if benchmark.selection == "partial":
        if benchmark.shard is not None and benchmark.shard.is_part:
            return f"this is shard {benchmark.shard} of the plan: merge the shards first"
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


def audit_word(audit: Audit) -> tuple[str, Tone]:
    """Return whether an audit passed, with the word's tone; one that is partial has not failed."""
    if audit.selection == "partial":
        return "audit partial", "unsure"
    return ("audit passed", "good") if audit.passed else ("audit not passed", "bad")


def audit_answer(audit: Audit) -> str:
    """Return how far an audit's checks can be trusted, and how narrow it was."""
    if audit.selection == "partial":
        return f"{audit.task.name}: not every control was run, so the audit has no score."
    if audit.mutation_score is None:
        reason = (audit.reason or "").replace("_", " ")
        return f"{audit.task.name}: the audit has no score ({reason})."
    return (
        f"{audit.task.name}: the checks caught {audit.killed} of {audit.total} declared faults, "
        f"{_narrowness(audit)}."
    )


def _narrowness(audit: Audit) -> str:
    """Return how many cases stood between the checks and missing a fault."""
    weakest = audit.detection.weakest_margin
    if weakest != 1:
        return f"each by at least {weakest} cases" if weakest else "so some of them go unnoticed"
    hanging = audit.detection.single_case_detections
    sole = audit.detection.sole_detector_cases
    faults = "fault" if len(hanging) == 1 else "faults"
    cases = "case" if len(sole) == 1 else "cases"
    return (
        f"{len(hanging)} of them by a single case "
        f"({faults}: {_some(hanging)}; {cases}: {_some(sole)})"
    )


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_CHECKS
    return ", ".join(names[:MOST_CHECKS]) + (f" and {more} more" if more > 0 else "")


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


def amount(value: float) -> str:
    """Return a count of seconds, tokens or dollars with the digits that a reader can use."""
    told = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 1 else None
    return (told or f"{value:.3g}").replace("-", MINUS)


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
