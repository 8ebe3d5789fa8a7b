"""The page of figures, which a run writes whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from figures import HEADS, Figure

HEAD = """\
# Performance

`python benchmarks` measures every figure in one run, and writes this page whole.
How each is measured stands [with the benchmarks](../benchmarks/README.md).
A figure with a bar passes or fails; one without is told and not judged.
"""
QUICK = """\
This is the quick form, which measures less of each figure: an impression, and no evidence.
"""


class Section(NamedTuple):
    """The figures of one set."""

    title: str
    figures: Sequence[Figure]
    left_out: str | None = None
    """Why some or all were not measured, or None when all were."""


def page(facts: Mapping[str, str], sections: Sequence[Section], *, quick: bool) -> str:
    """Return the page as Markdown, which depends on nothing but its arguments.

    Args:
        facts: What the machine was like, each by its name.
        sections: The sets in the order of the page.
        quick: Whether less of each figure was measured.
    """
    figures = [figure for section in sections for figure in section.figures]
    parts = [HEAD + QUICK if quick else HEAD, f"{verdicts(figures)}\n"]
    parts.append("## Machine\n\n" + table(("fact", "value"), facts.items()))
    parts += [_section(section) for section in sections]
    return "\n".join(parts)


def verdicts(figures: Iterable[Figure]) -> str:
    """Return in a sentence or two how many bars were reached, and which were missed."""
    judged = [figure for figure in figures if figure.known.bar != "-"]
    passed = sum(figure.verdict == "PASS" for figure in judged)
    unknown = sum(figure.value is None for figure in judged)
    missed = [f"`{figure.known.name.strip()}`" for figure in judged if figure.verdict == "FAIL"]
    told = f"Of {len(judged)} bars {passed} were reached"
    told += f" and {unknown} not measured." if unknown else "."
    return f"{told} Missed: {', '.join(missed)}." if missed else told


def _section(section: Section) -> str:
    rows = table(HEADS, (figure.cells for figure in section.figures))
    if section.left_out is None:
        return f"## {section.title}\n\n{rows}"
    return f"## {section.title}\n\nLeft out here: {section.left_out}.\n\n{rows}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown; a bar inside a cell does not end it."""
    return "".join(_rows(heads, rows))


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(heads)
    yield _row(["---"] * len(heads))
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.strip().replace('|', '&#124;') for cell in cells)} |\n"
