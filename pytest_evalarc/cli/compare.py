"""`pytest-evalarc compare`: what became better and worse between two evaluations."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.cli.output import put, require_other_files
from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.comparison import compare
from pytest_evalarc.reporting.evaluations import read_evaluation_file


def run_compare(baseline: Path, current: Path, *, output: Path | None) -> Status:
    """Write or print the comparison and return whether anything regressed.

    Raises:
        IncomparableError: The evaluations were not made in the same way.
        DocumentError: A file cannot be read or written.
        UsageError: The output is one of the inputs.
    """
    require_other_files((baseline, current), {"--output": output})
    comparison = compare(read_evaluation_file(baseline), read_evaluation_file(current))
    put(comparison, output)
    return Status.NO if comparison.has_regressions else Status.DONE
