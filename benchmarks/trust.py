"""What was tried to get a wrong verdict, to lose a result or to leave something behind.

`python benchmarks/trust.py` audits our grader with the corpus of attacks, runs the tests of every
hazard, injects faults and fuzzes; it prints what came of all that, and writes the table into
docs/security.md. It ends with 1 when anything came through. What lies in `--folder` already is read
and not made again, so a long part can be run by itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from figures import require
from processes import ROOT

sys.path.insert(0, str(ROOT))

from tests.hazards.kinds import proofs

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- trust-figures: begin -->", "<!-- trust-figures: end -->"
HEADS = ("what was tried", "how many", "came through", "beside it")


class Told(NamedTuple):
    """One line of the table."""

    what: str
    tried: int
    came_through: int
    """Wrong verdicts, lost results, survivors and findings; 0 is what must be."""
    note: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text, one cell for each of HEADS."""
        return (self.what, f"{self.tried:,}", f"{self.came_through:,}", self.note or "-")


class Part(NamedTuple):
    """One way to try it: a document, what makes it, and what it tells."""

    document: str
    argv: Callable[[Path, argparse.Namespace], Sequence[str]]
    read: Callable[[Path], Iterator[Told]]


def _attacks(path: Path) -> Iterator[Told]:
    rows = _json(path)["rows"]
    stoppable = [row for row in rows if row["stoppable"]]
    open_ones = [row for row in rows if not row["stoppable"]]
    missed = sum(not (row["caught"] and row["as_declared"]) for row in stoppable)
    weakest = min(row["margin"] for row in stoppable)
    proven = sum(row["wins_unprotected"] for row in stoppable)
    note = f"{proven} proven to win where nothing protects, weakest margin {weakest}"
    yield Told("attacks on the grader and the machine", len(stoppable), missed, note)
    wrong = sum(not row["as_declared"] for row in open_ones)
    note = "win in the process of a check and lose in the child form; never counted as caught"
    yield Told("attacks that no harness can stop", len(open_ones), wrong, note)


def _hazards(path: Path) -> Iterator[Told]:
    suite = ET.parse(path).getroot().find("testsuite")
    require(suite is not None, f"{path} holds no tests")
    assert suite is not None
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    note = f"tests of {len(proofs())} kinds of fault; {skipped} skipped here"
    yield Told("inputs that broke other harnesses", tests - skipped, failed, note)


def _faults(path: Path) -> Iterator[Told]:
    found = _json(path)
    note = ", ".join(f"{number} {name}" for name, number in sorted(found["by_fault"].items()))
    yield Told("faults injected at system calls", found["injected"], len(found["broken"]), note)


def _fuzz(path: Path) -> Iterator[Told]:
    found = _json(path)
    note = f"{found['seconds'] / 60:.0f} minutes, {found['rounds']} whole rounds"
    yield Told("inputs made by fuzzing", found["examples"], len(found["findings"]), note)


PARTS = (
    Part(
        "attacks.json",
        lambda path, _: ("-m", "tests.adversarial", "--json", str(path)),
        _attacks,
    ),
    Part(
        "hazards.xml",
        lambda path, _: (
            *("-m", "pytest", "-q", "-n", "2", f"--junitxml={path}"),
            *(node for nodes in proofs().values() for node in nodes),
        ),
        _hazards,
    ),
    Part(
        "faults.json",
        lambda path, asked: (
            *("-m", "tests.faults", "--json", str(path)),
            *("--stride", str(asked.stride)),
        ),
        _faults,
    ),
    Part(
        "fuzz.json",
        lambda path, asked: (
            *("tests/fuzz/campaign.py", "--output", str(path)),
            *("--minutes", str(asked.minutes)),
        ),
        _fuzz,
    ),
)


def made(part: Part, asked: argparse.Namespace) -> Iterator[Told]:
    """Yield what a part tells, once it is there."""
    path = asked.folder / part.document
    if not path.exists():
        argv = [sys.executable, *part.argv(path, asked)]
        print(f"making {path}", flush=True)
        # It says itself what it does, and its document says what came of it.
        subprocess.run(argv, cwd=ROOT, check=False)
        require(path.exists(), f"{part.document} was not made; run: {' '.join(argv[:6])} …")
    yield from part.read(path)


def table(told: Sequence[Told]) -> str:
    """Return the table in Markdown."""
    rows = [HEADS, ("---", "---:", "---:", "---"), *(each.cells for each in told)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def written(page: str, told: Sequence[Told]) -> str:
    """Return the page with the table between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    require(bool(begin and end), f"{PAGE} has no place for the figures")
    date = datetime.now(UTC).date().isoformat()
    head = f"`python benchmarks/trust.py` on {date}; what came through is what must be 0."
    return f"{before}{begin}\n{head}\n\n{table(told)}\n{end}{after}"


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "trust", help="default: trust/")
    parser.add_argument("--minutes", type=float, default=60, help="of fuzzing (60)")
    parser.add_argument("--stride", type=int, default=1, help="each so-many-th fault alone (1)")
    asked = parser.parse_args(arguments)
    asked.folder = asked.folder.resolve()
    asked.folder.mkdir(parents=True, exist_ok=True)
    told = [line for part in PARTS for line in made(part, asked)]
    print(table(told))
    PAGE.write_text(written(PAGE.read_text("utf-8"), told), "utf-8")
    return int(any(each.came_through for each in told))


if __name__ == "__main__":
    sys.exit(main())
