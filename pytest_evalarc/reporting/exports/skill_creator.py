"""Trials in the layout of skill-creator's benchmark.json, which its viewer reads."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_evalarc.counting.measured import ELIGIBLE, judged_in
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.trial import PlanDoc, TrialResult

WITH, WITHOUT = "with_skill", "without_skill"
_DECIMALS = 4


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The plan and the results of one task and client."""

    plan: PlanDoc
    results: Sequence[TrialResult]


def skill_creator_of(batches: Sequence[Batch]) -> bytes:
    """Return trials as the bytes of skill-creator's benchmark.json.

    A run is an eligible trial, and its expectations are all that was judged in it. What their
    format has a key for and nobody knows is null; a configuration that it has no word for, as
    `noise`, and trials that do not count are told in `notes`.

    Args:
        batches: Of one client and treatment, each of another task, in the order of their numbers.

    Raises:
        UsageError: There is no trial with or without a treatment.
    """
    runs = [
        _run(number, batch, result)
        for number, batch in enumerate(batches, start=1)
        for result in batch.results
        if _word(result.mode) is not None and result.outcome in ELIGIBLE
    ]
    if not runs:
        problem = "hold no eligible trial with or without a treatment"
        raise UsageError("the results", problem, "export them as csv")
    notes: list[JsonValue] = [note for batch in batches for note in _notes(batch)]
    return dumps(
        {
            "metadata": _metadata(batches),
            "runs": list(runs),
            "run_summary": _summary(runs),
            "notes": notes,
        }
    )


def _word(configuration: str) -> str | None:
    """Return their word for a configuration; a baseline has no skill, and noise has no word."""
    if configuration.startswith("with-"):
        return WITH
    is_without = configuration.startswith("without-") or configuration == "baseline"
    return WITHOUT if is_without else None


def _metadata(batches: Sequence[Batch]) -> JsonObject:
    plans = [batch.plan for batch in batches]
    results = [result for batch in batches for result in batch.results]
    skills = sorted(
        {skill for result in results if result.expectations for skill in result.expectations.skills}
    )
    started = [result.started_at for result in results if result.started_at is not None]
    counts = {
        (batch.plan.task.name, trial.configuration): trial.trial
        for batch in batches
        for trial in batch.plan.trials
    }
    served = sorted({name for result in results for name in result.model.served})
    return {
        "skill_name": ", ".join(skills) or plans[0].treatment,
        "skill_path": None,
        "executor_model": " + ".join(served) or plans[0].model,
        "analyzer_model": None,
        "timestamp": min(started).isoformat() if started else None,
        "evals_run": list(range(1, len(batches) + 1)),
        "runs_per_configuration": max(counts.values()),
    }


def _run(number: int, batch: Batch, result: TrialResult) -> JsonObject:
    judged = [found for found in judged_in(result) if found.passed is not None]
    passed = sum(bool(found.passed) for found in judged)
    usage = result.usage
    return {
        "eval_id": number,
        "eval_name": batch.plan.task.name,
        "configuration": _word(result.mode),
        "run_number": result.trial,
        "result": {
            "pass_rate": round(passed / len(judged), _DECIMALS) if judged else None,
            "passed": passed,
            "failed": len(judged) - passed,
            "total": len(judged),
            "time_seconds": result.elapsed_secs,
            "tokens": usage.total if usage else None,
            "errors": 0 if result.execution is Execution.COMPLETED else 1,
        },
        "expectations": [
            {"text": f"{found.part} {found.name}", "passed": found.passed, "evidence": ""}
            for found in judged
        ],
        "notes": [printable(result.cause.detail or result.cause.kind)] if result.cause else [],
    }


def _summary(runs: Sequence[JsonObject]) -> JsonObject:
    found: dict[str, Mapping[str, float | None]] = {}
    summary: JsonObject = {}
    for word in (WITH, WITHOUT):
        results = [run["result"] for run in runs if run["configuration"] == word]
        if results:
            figures = {
                key: _spread([result[key] for result in results if isinstance(result, dict)])
                for key in ("pass_rate", "time_seconds", "tokens")
            }
            summary[word] = {key: dict(spread) for key, spread in figures.items()}
            found[word] = {key: spread["mean"] for key, spread in figures.items()}
    if len(found) == 2:
        summary["delta"] = {
            key: _minus(found[WITH][key], found[WITHOUT][key], decimals=decimals)
            for key, decimals in (("pass_rate", 2), ("time_seconds", 1), ("tokens", 0))
        }
    return summary


def _spread(values: Iterable[JsonValue]) -> Mapping[str, float | None]:
    """Return mean, sample deviation and ends; all null where no run tells the figure."""
    known = [float(value) for value in values if isinstance(value, (int, float))]
    if not known:
        return dict.fromkeys(("mean", "stddev", "min", "max"))
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return {
        "mean": round(statistics.fmean(known), _DECIMALS),
        "stddev": round(deviation, _DECIMALS),
        "min": round(min(known), _DECIMALS),
        "max": round(max(known), _DECIMALS),
    }


def _minus(first: float | None, other: float | None, *, decimals: int) -> str | None:
    return None if first is None or other is None else f"{first - other:+.{decimals}f}"


def _notes(batch: Batch) -> Iterable[str]:
    """Yield a sentence for each trial that the runs leave out."""
    for result in batch.results:
        where = f"{batch.plan.task.name}: trial {result.trial} of {result.mode}"
        if _word(result.mode) is None:
            yield f"{where} is left out, as this format has no word for its configuration."
        elif result.outcome not in ELIGIBLE:
            yield f"{where} is left out, as it does not count: {result.outcome.value}."
