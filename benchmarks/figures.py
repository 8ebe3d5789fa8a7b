"""What a figure is, how it is judged, and how a line of their table is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

HEADS = ("figure", "value", "unit", "bar", "verdict", "beside it", "note")
WIDTHS = (46, 9, 6, 8, 7, 42, 0)


class MissingError(Exception):
    """The machine lacks what a figure needs; the message says what, in one sentence."""


class BrokenError(Exception):
    """What was measured is not what was meant; the message says why."""


class Known(NamedTuple):
    """A figure that can be measured; without a bar it is told and not judged."""

    name: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def bar(self) -> str:
        """The bar as text."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "-" if self.at_least is None else f">= {self.at_least:g}"

    def of(self, value: float, note: str = "", *, beside: str = "") -> Figure:
        """Return the figure as it was measured."""
        return Figure(self, value, note, beside)

    def left_out(self, reason: str = "") -> Figure:
        """Return the figure as one that was not measured, for a reason of its own or its set's."""
        return Figure(self, None, f"not measured: {reason}" if reason else "not measured")


class Figure(NamedTuple):
    """One line of the table."""

    known: Known
    value: float | None
    """None when it was left out; the note then says why."""
    note: str = ""
    beside: str = ""
    """What a peer, named with it, took in the same run."""

    @property
    def verdict(self) -> str:
        """PASS or FAIL, or a dash when there is no bar or no value."""
        if self.value is None:
            return "-"
        if self.known.at_most is not None:
            return "PASS" if self.value <= self.known.at_most else "FAIL"
        if self.known.at_least is not None:
            return "PASS" if self.value >= self.known.at_least else "FAIL"
        return "-"

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text, one cell for each of HEADS."""
        name, unit, *_ = self.known
        value = "-" if self.value is None else f"{self.value:.2f}"
        return (name, value, unit, self.known.bar, self.verdict, self.beside or "-", self.note)


def require(condition: bool, problem: str) -> None:
    """Stop when what is measured is not what is meant.

    Raises:
        BrokenError: The condition does not hold.
    """
    if not condition:
        raise BrokenError(problem)


def line(cells: Sequence[str]) -> str:
    """Return a line of the printed table, whose values stand right and all else left."""
    name, value, *rest = cells
    words = [name.ljust(WIDTHS[0]), value.rjust(WIDTHS[1])]
    words += [cell.ljust(width) for cell, width in zip(rest, WIDTHS[2:], strict=True)]
    return "  ".join(words).rstrip()
