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
        help="compute benchmark.json or audit.json again from what lies beside plan.json",
    )
    benchmark.add_argument("folder", type=Path, help="a folder that holds plan.json")
    benchmark.set_defaults(run=_benchmark)
    return parser


def _benchmark(parsed: argparse.Namespace) -> int:
    from pytest_evalarc.reporting.batch import write_document

    folder: Path = parsed.folder
    _, path = write_document(folder)
    print(printable(str(path)))
    return 0
