"""`pytest-evalarc`: what can be done with results without running pytest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_evalarc import __version__
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.text import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 refused, 2 wrongly called."""
    parsed = _parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except EvalArcError as error:
        print(f"pytest-evalarc: {printable(str(error))}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pytest-evalarc", description=__doc__)
    parser.add_argument("--version", action="version", version=f"pytest-evalarc {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    benchmark = commands.add_parser(
        "benchmark",
        help="compute the documents of a folder again from what lies beside plan.json",
    )
    benchmark.add_argument("folder", type=Path, help="a folder that holds plan.json")
    benchmark.set_defaults(run=_benchmark)
    remove = commands.add_parser("prune", help="remove what batches left behind")
    remove.add_argument(
        "--root", type=Path, metavar="DIR", help="evaluation root (default: this user's own)"
    )
    remove.add_argument("--results", type=Path, metavar="DIR", help="remove old results here too")
    remove.add_argument(
        "--keep", type=int, metavar="N", help="batches of each task and client that stay"
    )
    remove.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    remove.set_defaults(run=_prune)
    return parser


def _benchmark(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.reporting.batch import write_document
    from pytest_evalarc.reporting.regrade import write_regrade
    from pytest_evalarc.runs.regrade import numbers

    folder: Path = parsed.folder
    _, path = write_document(folder)
    print(printable(str(path)))
    for number in numbers(folder):
        print(printable(str(write_regrade(folder, number).path)))
    return 0


def _prune(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.cli.prune import prune

    return prune(root=parsed.root, results=parsed.results, keep=parsed.keep, dry_run=parsed.dry_run)
