"""The command line: what is asked for, what is printed, and where the page goes."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from figures import HEADS, line
from machine import load, machine_facts
from page import Section, page, verdicts
from processes import ROOT
from sets import SETS, Run

PAGE = ROOT / "docs" / "performance.md"
EXTRAS = tuple(each for each in SETS if each.extra)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write the page; return 1 when something could not be measured."""
    given = parsed(arguments)
    facts = machine_facts() | {"form": "quick" if given.quick else "full", "load before": load()}
    for name, value in facts.items():
        say(f"{name}: {value}")
    runs = measured(chosen(given), quick=given.quick)
    facts["load after"] = load()
    conclude(runs, facts["load after"])
    if target := page_of(given):
        sections = [Section(run.set.title, run.figures, run.left_out) for run in runs]
        target.write_text(page(facts, sections, quick=given.quick), "utf-8")
    return int(any(run.failure for run in runs))


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what was asked for."""
    text = "Measure every figure in one run, each beside its bar and its peer."
    parser = argparse.ArgumentParser(prog="python benchmarks", description=text)
    parser.add_argument("--quick", action="store_true", help="measure less of each figure")
    for each in EXTRAS:
        text = f"of the extra sets only this and others that are named: {each.title.lower()}"
        parser.add_argument(f"--{each.name}", action="store_true", help=text)
    parser.add_argument("--no-extras", action="store_true", help="the foundation and audits alone")
    parser.add_argument(
        "--page",
        type=Path,
        help="write the page there; the full form of all sets writes docs/performance.md",
    )
    return parser.parse_args(arguments)


def chosen(given: argparse.Namespace) -> frozenset[str]:
    """Return the names of the sets to be measured: all, unless some extra ones are named."""
    named = {each.name for each in EXTRAS if getattr(given, each.name)}
    extras = named if named or given.no_extras else {each.name for each in EXTRAS}
    return frozenset(extras | {each.name for each in SETS if not each.extra})


def page_of(given: argparse.Namespace) -> Path | None:
    """Return where the page goes: less than all would take the place of better figures."""
    whole = len(chosen(given)) == len(SETS) and not given.quick
    return given.page or (PAGE if whole else None)


def measured(names: Collection[str], *, quick: bool) -> list[Run]:
    """Measure the sets of these names, and print a line for each figure once it is known."""
    runs = [Run(each) for each in SETS]
    for run in runs:
        if run.set.name not in names:
            # They stand on the page all the same, so that a row is missing from none.
            run.skip("it was not asked for")
            continue
        say(f"\n{run.set.title}\n{line(HEADS)}")
        with tempfile.TemporaryDirectory(prefix="evalarc-benchmark-") as name:
            for figure in run.measure(Path(name).resolve(), quick=quick):
                say(line(figure.cells))
    return runs


def conclude(runs: Sequence[Run], load_after: str) -> None:
    """Print what became of the bars, and what was left out and why, in a line each."""
    say(f"\nload after: {load_after}")
    for run in runs:
        if run.left_out is not None:
            say(f"left out, {run.set.title}: {run.failure or run.left_out}")
    say(verdicts(figure for run in runs for figure in run.figures))


def say(text: str) -> None:
    """Print at once, since what follows can take minutes."""
    print(text, flush=True)
