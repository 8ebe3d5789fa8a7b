"""`pytest-evalarc trajectory`: the score area of a submission over time."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.cli.output import put, require_other_files
from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.trajectory import trajectory
from pytest_evalarc.reporting.documents import write_text
from pytest_evalarc.reporting.evaluations import read_checkpoints, told_of
from pytest_evalarc.reporting.plot import step_plot


def run_trajectory(
    checkpoints: Path, *, budget_seconds: float, output: Path | None, svg: Path | None
) -> Status:
    """Write or print what the checkpoints amount to, and draw it where that is asked for.

    Raises:
        IncomparableError: The evaluations have no score, or were not made in the same way.
        DocumentError: A file cannot be read or written, or a time is out of order.
        UsageError: The budget is out of range, or an output is another file of the call.
    """
    require_other_files((checkpoints,), {"--output": output, "--svg": svg})
    entries = read_checkpoints(checkpoints)
    with told_of(str(checkpoints)):
        found = trajectory(entries, budget_seconds=budget_seconds)
    put(found, output)
    if svg is not None:
        write_text(svg, step_plot(found))
    return Status.DONE
