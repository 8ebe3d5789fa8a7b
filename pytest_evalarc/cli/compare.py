"""`pytest-evalarc compare`: what became better and worse between two sets of results."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.cli.choices import FAIL_ON
from pytest_evalarc.cli.output import put, require_other_files
from pytest_evalarc.cli.status import Status
from pytest_evalarc.counting.comparison import compare
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.reporting.evaluations import read_evaluation_file

if TYPE_CHECKING:
    from pytest_evalarc.model.comparison import BatchComparison
    from pytest_evalarc.model.measured import Measured

PRINTED = Path("-")
"""In place of a file: the terminal."""


def run_compare(
    baseline: Path,
    current: Path,
    *,
    output: Path | None,
    markdown: Path | None = None,
    fail_on: Sequence[str] = (),
    across: Collection[str] = (),
    accepted: Path | None = None,
) -> Status:
    """Write or print the comparison and return whether anything got worse.

    Args:
        baseline: An evaluation.json, results, another program's results, or the word `accepted`.
        current: The same, but for that word.
        output: Where the document goes; None prints it, unless Markdown is printed.
        markdown: Where a summary goes; `-` prints it in place of the document.
        fail_on: Which changes, of `FAIL_ON`, give the status 1; none given is `regressed` alone.
        across: Conditions that may differ.
        accepted: Folder of accepted results; None is the usual one.

    Raises:
        IncomparableError: The evaluations were not made in the same way.
        DocumentError: A file cannot be read or written.
        UsageError: The output is one of the inputs, options do not go together, or nothing that
            can be compared is there.
    """
    outputs = {"--output": output, "--markdown": None if markdown == PRINTED else markdown}
    require_other_files((baseline, current), outputs)
    if _are_evaluations(baseline, current):
        _refuse_options({"--markdown": markdown, "--fail-on": fail_on, "--across": across})
        comparison = compare(read_evaluation_file(baseline), read_evaluation_file(current))
        put(comparison, output)
        return Status.NO if comparison.has_regressions else Status.DONE
    found = _compared(baseline, current, across=across, accepted=accepted)
    _tell(found, output=output, markdown=markdown)
    return _status(found, fail_on or FAIL_ON[:1])


def _are_evaluations(baseline: Path, current: Path) -> bool:
    """Whether both are evaluations; one beside results cannot be compared with them."""
    first, second = _is_evaluation(baseline), _is_evaluation(current)
    if first is not second:
        one, other = (baseline, current) if first else (current, baseline)
        problem = f"is no evaluation, and {one} is one"
        hint = "compare two evaluations, or two sets of results"
        raise UsageError(str(other), problem, hint)
    return first


def _is_evaluation(path: Path) -> bool:
    """Whether a file is an evaluation, or one that its reader shall refuse as none."""
    if str(path) == "accepted" or path.is_dir() or not path.name.endswith(".json"):
        return False
    try:
        document = loads(path.read_bytes(), where=str(path))
    except OSError:
        return path.suffix == ".json"
    return isinstance(document, dict) and "dimensions" in document


def _refuse_options(options: dict[str, object]) -> None:
    for option, value in options.items():
        if value:
            problem = "is for batches and audits, and an evaluation is given"
            raise UsageError(option, problem, "leave it out")


def _compared(
    baseline: Path, current: Path, *, across: Collection[str], accepted: Path | None
) -> BatchComparison:
    from pytest_evalarc.counting.batches_compared import compare_batches
    from pytest_evalarc.reporting.measured import ACCEPTED, DEFAULT_ACCEPTED, read_accepted

    is_accepted = str(baseline) == ACCEPTED
    before = read_accepted(accepted or DEFAULT_ACCEPTED) if is_accepted else _read(baseline)
    return compare_batches(before, _read(current), across=across, only_current=is_accepted)


def _read(path: Path) -> tuple[Measured, ...]:
    from pytest_evalarc.reporting.measured import read_measured

    return read_measured(path)


def _tell(comparison: BatchComparison, *, output: Path | None, markdown: Path | None) -> None:
    from pytest_evalarc.reporting.comparisons import markdown_of
    from pytest_evalarc.reporting.documents import write_text

    if output is not None or markdown != PRINTED:
        put(comparison, output)
    if markdown == PRINTED:
        sys.stdout.buffer.write(markdown_of(comparison).encode())
        sys.stdout.flush()
    elif markdown is not None:
        write_text(markdown, markdown_of(comparison))


def _status(comparison: BatchComparison, fail_on: Sequence[str]) -> Status:
    from pytest_evalarc.model.comparison import Change

    counts = comparison.changes
    grave = [Change(word.replace("-", "_")) for word in fail_on if word != "never"]
    if any(counts[change] for change in grave):
        return Status.NO
    return Status.INCOMPARABLE if counts[Change.INCOMPARABLE] else Status.DONE
