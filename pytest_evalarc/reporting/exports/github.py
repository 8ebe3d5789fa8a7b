"""What a run says to GitHub Actions: a summary of the step, and annotations.

Source: docs.github.com, workflow commands for GitHub Actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.append import append_text
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.benchmark import Benchmark, ConfigurationBenchmark
from pytest_evalarc.reporting.batch import Documents
from pytest_evalarc.reporting.comparisons import escaped

MOST_ANNOTATIONS = 10
"""Errors, and warnings, that GitHub shows of one step; more are dropped without a word."""
MOST_ROWS = 200
"""Rows of a table in the summary, which may hold 1 MiB."""
SUMMARY = "GITHUB_STEP_SUMMARY"


def publish(documents: Documents, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Add the summary to the step's, and return the lines that make annotations.

    Args:
        documents: What a session adds up to.
        environ: The environment; nothing is said unless GITHUB_ACTIONS is `true`.

    Raises:
        DocumentError: The summary cannot be written.
    """
    if environ.get("GITHUB_ACTIONS") != "true" or documents.is_empty:
        return ()
    path = environ.get(SUMMARY)
    if path:
        try:
            append_text(Path(path), step_summary(documents))
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise DocumentError(f"{SUMMARY} {path}", problem) from error
    return tuple(annotation_lines(documents))


def step_summary(documents: Documents) -> str:
    """Return benchmarks and audits as Markdown: a table of each kind that there is."""
    lines = ["## Evaluations", ""]
    audits = [audit for audit, _ in documents.audits]
    benchmarks = [benchmark for benchmark, _ in documents.benchmarks]
    if audits:
        lines += ["| audit | passed | score | detected | weakest margin |", "|---|---|---|---|---|"]
        lines += [_audit_row(audit) for audit in audits[:MOST_ROWS]]
        lines += [*_left_out(len(audits)), ""]
    if benchmarks:
        lines += [
            "| task | client | configuration | succeeded | rate | code |",
            "|---|---|---|---|---|---|",
        ]
        rows = [row for benchmark in benchmarks for row in _benchmark_rows(benchmark)]
        lines += [*rows[:MOST_ROWS], *_left_out(len(rows)), ""]
    for evaluation, _ in documents.evaluations:
        word = "resolved" if evaluation.resolved else "not resolved"
        lines += [f"{escaped(evaluation.task.name)}: {word}, score {_number(evaluation.score)}", ""]
    lines += [f"Not written: {escaped(str(problem))}" for problem in documents.problems]
    return "\n".join(lines) + "\n"


def annotation_lines(documents: Documents) -> Iterator[str]:
    """Yield a workflow command for each thing that a person has to look at, errors first.

    That are audits that did not pass, and documents that could not be written. A benchmark that is
    partial is a warning; a trial that failed is a measurement, and none.
    """
    errors = [
        *(_command("error", str(problem), title="not written") for problem in documents.problems),
        *(_audit_error(audit) for audit, _ in documents.audits if not audit.passed),
    ]
    short = [benchmark for benchmark, _ in documents.benchmarks if _falls_short(benchmark)]
    warnings = [
        _command(
            "warning",
            "A planned trial did not reach its end, so the rates of this batch are not compared.",
            title=f"{benchmark.task} with {benchmark.client}",
        )
        for benchmark in short
    ]
    yield from errors[:MOST_ANNOTATIONS]
    yield from warnings[:MOST_ANNOTATIONS]


def _audit_row(audit: Audit) -> str:
    margin = audit.detection.weakest_margin
    cells = (
        escaped(audit.task.name),
        "yes" if audit.passed else "**no**",
        _number(audit.mutation_score),
        f"{audit.killed} of {audit.total}",
        "unknown" if margin is None else str(margin),
    )
    return f"| {' | '.join(cells)} |"


def _benchmark_rows(benchmark: Benchmark) -> Iterator[str]:
    for name, counted in benchmark.configurations.items():
        cells = (
            escaped(benchmark.task),
            escaped(benchmark.client),
            escaped(name),
            f"{counted.succeeded} of {counted.eligible}",
            _rate(counted),
            _number(counted.code.rate),
        )
        yield f"| {' | '.join(cells)} |"


def _rate(counted: ConfigurationBenchmark) -> str:
    """Return a rate with what it may really be, since few trials say little."""
    if counted.ci95 is None:
        return _number(counted.success_rate)
    interval = f"{counted.ci95.low:.2f} to {counted.ci95.high:.2f}"
    return f"{_number(counted.success_rate)} ({interval})"


def _left_out(count: int) -> list[str]:
    return ["", f"{count - MOST_ROWS} more rows are left out."] if count > MOST_ROWS else []


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _falls_short(benchmark: Benchmark) -> bool:
    """Whether a trial that was planned here did not reach its end; a shard alone is no defect."""
    return any(counted.cancelled for counted in benchmark.configurations.values())


def _audit_error(audit: Audit) -> str:
    missed = [f"{mutant.name} ({mutant.class_})" for mutant in audit.mutants if not mutant.killed]
    told = f"Not detected: {', '.join(missed)}. " if missed else ""
    title = f"the audit of {audit.task.name} did not pass"
    return _command("error", f"{told}{audit.interpretation}", title=title)


def _command(word: str, message: str, *, title: str) -> str:
    """Return a workflow command on one line, whatever stands in its message."""
    return f"::{word} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Return a message as the runner reads it back; a line break must not end the command."""
    shown = printable(text)
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
