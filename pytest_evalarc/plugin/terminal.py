"""What a person reads at the end: one table a task and client, one paragraph an audit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.plugin.benchmark_table import (
    benchmark_line,
    benchmark_lines,
    verdict_colour,
    verdict_line,
)
from pytest_evalarc.plugin.evaluations import (
    evaluation_line,
    evaluation_lines,
    regrade_line,
    regrade_lines,
)
from pytest_evalarc.plugin.nodes import EvalItem
from pytest_evalarc.plugin.tables import UNKNOWN, aligned, counted, rate, wrapped

if TYPE_CHECKING:
    from pytest_evalarc.model.audit import Audit
    from pytest_evalarc.model.benchmark import Benchmark
    from pytest_evalarc.reporting.batch import Documents

AUDIT_COLUMNS = ("audit", "score", "detected", "weakest margin", "single-case", "sole detectors")
MOST_MISSES = 20
MOST_NAMES = 3
MOST_CHARACTERS = 200


def summarise(reporter: pytest.TerminalReporter, documents: Documents) -> None:
    """Write the section of a session's benchmarks and audits; nothing when it has none.

    With `-q` each document has one line, and with `-v` each cause.
    """
    if documents.is_empty:
        return
    reporter.write_sep("=", "evalarc")
    if reporter.config.get_verbosity() < 0:
        _write_briefly(reporter, documents)
    else:
        _write_whole(reporter, documents)
    for remark in documents.remarks:
        reporter.write_line(remark)
    for problem in documents.problems:
        reporter.write_line(f"not written: {problem}", red=True)


def _write_briefly(reporter: pytest.TerminalReporter, documents: Documents) -> None:
    told = [(audit_line(audit), path) for audit, path in documents.audits]
    told += [(benchmark_line(benchmark), path) for benchmark, path in documents.benchmarks]
    told += [(evaluation_line(evaluation), path) for evaluation, path in documents.evaluations]
    told += [(regrade_line(report), report.path) for report in documents.regrades]
    told += [(" ".join(lines), path) for lines, path in _across_tasks(documents)]
    for line, path in told:
        reporter.write_line(f"{line} ({_shown(reporter, path)})")


def _write_whole(reporter: pytest.TerminalReporter, documents: Documents) -> None:
    verbose = reporter.config.get_verbosity() > 0
    # Many of them fill a screen, and what a reader is left with is the answer.
    _write_misses(reporter)
    audits = [audit for audit, _ in documents.audits]
    for line in audit_table(audits):
        reporter.write_line(line)
    for audit, path in documents.audits:
        _write(reporter, audit_lines(audit, scored=len(audits) == 1, verbose=verbose), path)
    for benchmark, path in documents.benchmarks:
        _write_benchmark(reporter, benchmark, path, verbose=verbose)
    for evaluation, path in documents.evaluations:
        _write(reporter, evaluation_lines(evaluation), path)
    for report in documents.regrades:
        more = regrade_lines(report)
        _write_benchmark(reporter, report.benchmark, report.path, verbose=verbose, more=more)
    for lines, path in _across_tasks(documents):
        _write(reporter, ["all tasks", *lines], path)


def _across_tasks(documents: Documents) -> Iterator[tuple[list[str], Path]]:
    """Yield what trials of several tasks show together; of one, its benchmark says it all."""
    if documents.summary is None:
        return
    from pytest_evalarc.counting.summary import summary_sentences

    summary, path = documents.summary
    if len({row.task for row in summary.tasks}) > 1:
        yield summary_sentences(summary.across_tasks), path


def _write_benchmark(
    reporter: pytest.TerminalReporter,
    benchmark: Benchmark,
    path: Path,
    *,
    verbose: bool,
    more: Sequence[str] = (),
) -> None:
    lines = [*benchmark_lines(benchmark, verbose=verbose), *more]
    verdict = verdict_line(benchmark)
    _write(reporter, lines, path, marked=verdict, colour=verdict_colour(benchmark))


def _write(
    reporter: pytest.TerminalReporter,
    lines: Iterable[str],
    path: Path,
    *,
    marked: str | None = None,
    colour: str = "yellow",
) -> None:
    """Write a document's title in bold, its other lines, and where it lies.

    Args:
        reporter: The terminal, which has colours or leaves them out.
        lines: The title and what follows.
        path: Of the document.
        marked: The line that has a colour; None for none.
        colour: Its colour.
    """
    title, *rest = lines
    reporter.write_line(title, bold=True)
    for line in rest:
        colours = {colour: True} if line == marked else {}
        for part in wrapped(line):
            reporter.write_line(f"  {part}", **colours)
    reporter.write_line(f"  {_shown(reporter, path)}")
    reporter.write_line("")


def _shown(reporter: pytest.TerminalReporter, path: Path) -> str:
    root = reporter.config.rootpath
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def audit_table(audits: Sequence[Audit]) -> list[str]:
    """Return several audits side by side; nothing for a single one, which has its sentence."""
    if len(audits) < 2:
        return []
    rows: list[tuple[str, ...]] = [AUDIT_COLUMNS]
    rows += [_audit_row(audit) for audit in audits]
    return [*aligned(rows), ""]


def _audit_row(audit: Audit) -> tuple[str, ...]:
    weakest = audit.detection.weakest_margin
    return (
        audit.task.name,
        rate(audit.mutation_score),
        f"{audit.killed} of {audit.total}",
        UNKNOWN if weakest is None else str(weakest),
        str(len(audit.detection.single_case_detections)),
        str(len(audit.detection.sole_detector_cases)),
    )


def audit_line(audit: Audit) -> str:
    """Return an audit in one line."""
    return f"{_audit_title(audit)}: {_score(audit)}"


def audit_lines(audit: Audit, *, scored: bool = True, verbose: bool = False) -> list[str]:
    """Return an audit: title, the score in words, and every mutant that is not clearly caught.

    Args:
        audit: The audit.
        scored: Whether the score is told here; a table may have told it.
        verbose: Whether mutants that are caught have a line too.
    """
    lines = [_audit_title(audit)]
    if scored or audit.mutation_score is None:
        lines.append(_score(audit))
    if audit.detection.sole_detector_cases:
        faults = _some(audit.detection.single_case_detections)
        sole = _some(audit.detection.sole_detector_cases)
        lines.append(f"caught by a single case: {faults} (by {sole})")
    lines += [
        f"{mutant.name}: {mutant.class_}{f', {mutant.reason}' if mutant.reason else ''}"
        for mutant in audit.mutants
        if mutant.class_ not in ("detected", "not_run")
    ]
    if verbose:
        lines += [
            f"{mutant.name}: detected, margin {mutant.detection_margin} "
            f"(by {_some(mutant.failing_cases)})"
            for mutant in audit.mutants
            if mutant.class_ == "detected"
        ]
    if audit.coverage.idle_cases and audit.mutation_score is not None:
        lines.append(f"detects no declared fault: {', '.join(audit.coverage.idle_cases)}")
    if audit.coverage.flaky:
        lines.append(f"flaky: {', '.join(audit.coverage.flaky)}")
    return lines


def _audit_title(audit: Audit) -> str:
    return f"{audit.task.name}: audit{', fast' if audit.mode == 'fast' else ''}"


def _score(audit: Audit) -> str:
    detected = f"{audit.killed} of {audit.total} detected"
    if audit.mutation_score is None:
        reason = (audit.reason or "unknown").replace("_", " ")
        return f"no mutation score: {reason}; {detected} so far"
    weakest = audit.detection.weakest_margin
    told = UNKNOWN if weakest is None else str(weakest)
    return f"mutation score {audit.mutation_score:.2f} ({detected}), weakest margin {told}"


def _write_misses(reporter: pytest.TerminalReporter) -> None:
    """List what the agents missed and what was excluded: no letter of `-r` does."""
    found = {word: _reported(reporter, word) for word in ("missed", "inconclusive", "excluded")}
    for status, reports in found.items():
        for report in reports[:MOST_MISSES]:
            word = status.upper()
            detail = getattr(report, "evalarc", {}).get("detail", "").partition("\n")[0]
            reporter.write_line(f"{word} {report.nodeid} - {detail[:MOST_CHARACTERS]}")
        if len(reports) > MOST_MISSES:
            reporter.write_line(f"… and {len(reports) - MOST_MISSES} more {status}")
    if any(found.values()):
        reporter.write_line("")


def _reported(reporter: pytest.TerminalReporter, status: str) -> list[pytest.TestReport]:
    """Return the reports of a status, those that fail the run left out: they have a section.

    A report is known by what it carries. Its category is that of whoever shows it, and a plugin
    that shows results in its own way knows none of ours.
    """
    return [
        report
        for reports in reporter.stats.values()
        for report in reports
        if getattr(report, "evalarc", {}).get("status") == status and report.skipped
    ]


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
    lines = [f"plan: {counted(len(handles), 'trial')}"]
    worst_s = 0.0
    for (task, client), plan in plans.items():
        deadlines = plan.task.deadlines
        each_s = deadlines.trial
        chosen = [handle.entry for handle in handles if handle.plan is plan]
        worst_s += each_s * len(chosen)
        order = ", ".join(f"{entry.configuration} {entry.trial}" for entry in chosen[:8])
        more = ", …" if len(chosen) > 8 else ""
        lines.append(f"  {task} with {client}: {order}{more}; at most {each_s:.0f} s each")
    minutes = math.ceil(worst_s / 60)
    lines.append(f"  at most {counted(minutes, 'minute')} one after another")
    # What only a plan tells is not waited for by what has none.
    from pytest_evalarc.plugin.power import power_of_trials

    told = (wrapped(sentence) for sentence in power_of_trials(handles))
    return [*lines, *(f"  {line}" for part in told for line in part)]


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
