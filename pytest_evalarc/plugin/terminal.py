"""What a person reads at the end: one table a task and client, one paragraph an audit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.files.text import printable
from pytest_evalarc.plugin.evaluations import evaluation_lines, regrade_lines
from pytest_evalarc.plugin.nodes import EvalItem

if TYPE_CHECKING:
    from pytest_evalarc.model.audit import Audit
    from pytest_evalarc.model.benchmark import Benchmark, ConfigurationBenchmark, Delta, Mean
    from pytest_evalarc.reporting.batch import Documents

UNKNOWN = "-"
COLUMNS = ("configuration", "eligible", "succeeded", "rate", "code", "tokens", "agent s")
COST_COLUMN = "US $"
"""Only there when a session told what it cost."""
AUDIT_COLUMNS = ("audit", "score", "detected", "weakest margin", "single-case", "sole detectors")
MOST_MISSES = 20
MOST_NAMES = 3
MOST_CHARACTERS = 200


def summarise(reporter: pytest.TerminalReporter, documents: Documents) -> None:
    """Write the section of a session's benchmarks and audits; nothing when it has none."""
    if documents.is_empty:
        return
    reporter.write_sep("=", "evalarc")
    audits = [audit for audit, _ in documents.audits]
    for line in audit_table(audits):
        reporter.write_line(line)
    for audit, path in documents.audits:
        _write(reporter, audit_lines(audit, scored=len(audits) == 1), path)
    for benchmark, path in documents.benchmarks:
        _write(reporter, benchmark_lines(benchmark), path)
    for evaluation, path in documents.evaluations:
        _write(reporter, evaluation_lines(evaluation), path)
    for report in documents.regrades:
        lines = [*benchmark_lines(report.benchmark), *regrade_lines(report)]
        _write(reporter, lines, report.path)
    _write_misses(reporter)
    for remark in documents.remarks:
        reporter.write_line(remark)
    for problem in documents.problems:
        reporter.write_line(f"not written: {problem}", red=True)


def _write(reporter: pytest.TerminalReporter, lines: Iterable[str], path: Path) -> None:
    title, *rest = lines
    reporter.write_line(title, bold=True)
    for line in rest:
        reporter.write_line(f"  {line}")
    root = reporter.config.rootpath
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    reporter.write_line(f"  {shown}")
    reporter.write_line("")


def benchmark_lines(benchmark: Benchmark) -> list[str]:
    """Return a benchmark as a table: title, heads, a row for each configuration, remarks."""
    rows: list[tuple[str, ...]] = [(*COLUMNS, COST_COLUMN)]
    rows += [_row(name, counted) for name, counted in benchmark.configurations.items()]
    if benchmark.delta is not None:
        rows.append(_delta_row(benchmark.delta))
    counted = benchmark.configurations.values()
    if all(configuration.cost.eligible.cost_usd.trials == 0 for configuration in counted):
        rows = [row[:-1] for row in rows]
    title = f"{benchmark.task}: trials with {benchmark.client}"
    return [title, *_aligned(rows), *_remarks(benchmark)]


def _delta_row(delta: Delta) -> tuple[str, ...]:
    return (
        "delta",
        "",
        "",
        _signed(delta.success_rate),
        _signed(delta.code_rate),
        _signed(delta.cost["eligible"]["tokens"], digits=0),
        _signed(delta.cost["eligible"]["agent_secs"]),
        _signed(delta.cost["eligible"]["cost_usd"]),
    )


def _row(name: str, counted: ConfigurationBenchmark) -> tuple[str, ...]:
    return (
        name,
        f"{counted.eligible} of {counted.planned}",
        str(counted.succeeded),
        _rate(counted.success_rate),
        _rate(counted.code.rate),
        _mean(counted.cost.eligible.tokens, digits=0),
        _mean(counted.cost.eligible.agent_secs),
        _mean(counted.cost.eligible.cost_usd),
    )


def _remarks(benchmark: Benchmark) -> list[str]:
    """Return what a reader must know beside the rates."""
    lines: list[str] = []
    for name, counted in benchmark.configurations.items():
        causes = [
            f"{group.replace('_', ' ')}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items())
            for group, kinds in counted.causes.items()
            if kinds
        ]
        if counted.inconclusive:
            causes.append(f"inconclusive: {counted.inconclusive}")
        if causes:
            lines.append(f"{name}: {'; '.join(causes)}")
        for skill, loads in (counted.observed_load or {}).items():
            seen = ", ".join(f"{n} {load.value}" for load, n in loads.items() if n)
            lines.append(f"{name}: skill {skill}: {seen or 'no eligible trial'}")
    if benchmark.selection == "partial":
        lines.append("partial: not every planned trial reached its end; do not compare the rates")
    if benchmark.delta is not None and benchmark.delta.reason == "models_differ":
        lines.append(f"models differ, so there is no delta: {_served(benchmark)}")
    if benchmark.isolation not in ("enforced", None):
        lines.append(f"isolation: {benchmark.isolation}; such trials are not compared")
    return lines


def _served(benchmark: Benchmark) -> str:
    """Return which models answered how many trials of each configuration."""
    told = [
        f"{name} was answered by "
        + ", ".join(f"{printable(models, limit=200)} ({n})" for models, n in counted.served.items())
        for name, counted in benchmark.configurations.items()
        if counted.served
    ]
    return "; ".join(told)


def audit_table(audits: Sequence[Audit]) -> list[str]:
    """Return several audits side by side; nothing for a single one, which has its sentence."""
    if len(audits) < 2:
        return []
    rows: list[tuple[str, ...]] = [AUDIT_COLUMNS]
    rows += [_audit_row(audit) for audit in audits]
    return [*_aligned(rows), ""]


def _audit_row(audit: Audit) -> tuple[str, ...]:
    weakest = audit.detection.weakest_margin
    return (
        audit.task.name,
        _rate(audit.mutation_score),
        f"{audit.killed} of {audit.total}",
        UNKNOWN if weakest is None else str(weakest),
        str(len(audit.detection.single_case_detections)),
        str(len(audit.detection.sole_detector_cases)),
    )


def audit_lines(audit: Audit, *, scored: bool = True) -> list[str]:
    """Return an audit: title, the score in words, and every mutant that is not clearly caught.

    Args:
        audit: The audit.
        scored: Whether the score is told here; a table may have told it.
    """
    mode = ", fast" if audit.mode == "fast" else ""
    lines = [f"{audit.task.name}: audit{mode}"]
    if audit.mutation_score is None:
        reason = (audit.reason or "unknown").replace("_", " ")
        lines.append(
            f"no mutation score: {reason}; {audit.killed} of {audit.total} detected so far"
        )
    elif scored:
        weakest = audit.detection.weakest_margin
        lines.append(
            f"mutation score {audit.mutation_score:.2f} ({audit.killed} of {audit.total} detected)"
            f", weakest margin {UNKNOWN if weakest is None else weakest}"
        )
    if audit.detection.sole_detector_cases:
        faults = _some(audit.detection.single_case_detections)
        sole = _some(audit.detection.sole_detector_cases)
        lines.append(f"caught by a single case: {faults} (by {sole})")
    lines += [
        f"{mutant.name}: {mutant.class_}{f', {mutant.reason}' if mutant.reason else ''}"
        for mutant in audit.mutants
        if mutant.class_ not in ("detected", "not_run")
    ]
    if audit.coverage.idle_cases and audit.mutation_score is not None:
        lines.append(f"detects no declared fault: {', '.join(audit.coverage.idle_cases)}")
    if audit.coverage.flaky:
        lines.append(f"flaky: {', '.join(audit.coverage.flaky)}")
    return lines


def _write_misses(reporter: pytest.TerminalReporter) -> None:
    """List what the agents missed and what was excluded: no letter of `-r` does."""
    for status in ("missed", "inconclusive", "excluded"):
        reports = reporter.stats.get(status, [])
        for report in reports[:MOST_MISSES]:
            word = status.upper()
            detail = getattr(report, "evalarc", {}).get("detail", "").partition("\n")[0]
            reporter.write_line(f"{word} {report.nodeid} - {detail[:MOST_CHARACTERS]}")
        if len(reports) > MOST_MISSES:
            reporter.write_line(f"… and {len(reports) - MOST_MISSES} more {status}")


def show_plan(reporter: pytest.TerminalReporter, items: Sequence[pytest.Item]) -> None:
    """Write the plan of collected trials; nothing with `-q`, whose lines are ids."""
    if reporter.config.get_verbosity() >= 0:
        for line in plan_lines(items):
            reporter.write_line(line)


def plan_lines(items: Sequence[pytest.Item]) -> list[str]:
    """Return the plan of collected trials: how many, in which order, how long at the worst."""
    handles = [
        item.trial
        for item in items
        if isinstance(item, EvalItem) and item.trial is not None and item.leaf.kind == "run"
    ]
    if not handles:
        return []
    plans = {(handle.plan.task.name, handle.plan.client): handle.plan for handle in handles}
    lines = [f"plan: {_counted(len(handles), 'trial')}"]
    worst_s = 0.0
    for (task, client), plan in plans.items():
        deadlines = plan.task.deadlines
        each_s = deadlines.setup + deadlines.agent + deadlines.grading
        chosen = [handle.entry for handle in handles if handle.plan is plan]
        worst_s += each_s * len(chosen)
        order = ", ".join(f"{entry.configuration} {entry.trial}" for entry in chosen[:8])
        more = ", …" if len(chosen) > 8 else ""
        lines.append(f"  {task} with {client}: {order}{more}; at most {each_s:.0f} s each")
    minutes = math.ceil(worst_s / 60)
    lines.append(f"  at most {_counted(minutes, 'minute')} one after another")
    return lines


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def _mean(value: Mean, *, digits: int = 2) -> str:
    return UNKNOWN if value.mean is None else f"{value.mean:.{digits}f}"


def _signed(value: float | None, *, digits: int = 2) -> str:
    return UNKNOWN if value is None else f"{value:+.{digits}f}"
