"""Tables of a terminal: columns that line up, and never a row wider than the terminal shows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_evalarc.model.benchmark import Mean
    from pytest_evalarc.model.interval import Interval

UNKNOWN = "-"
ELLIPSIS = "…"
WIDTH = 78
"""Characters of a row: 80 are what a terminal has at least, and rows are indented by two."""
LEAST_NAME = 8
_GAP = "  "
_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_LONG = 100_000
"""Numbers from here on are told in thousands, so that columns stay narrow."""
_WHOLE = 1_000
"""Numbers from here on have no decimals."""


def aligned(rows: Sequence[Sequence[str]], *, width: int = WIDTH) -> list[str]:
    """Return rows as lines: the first column to the left, numbers to the right.

    Args:
        rows: Cells, as many in each row.
        width: What a line has at most. The first column gives way, down to 8 characters, with an
            ellipsis in its longest names.
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    others = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(width - others, LEAST_NAME))
    return [_line(row, widths) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = row
    cells = [shortened(first, widths[0]).ljust(widths[0])]
    cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
    return _GAP.join(cells).rstrip()


def shortened(text: str, width: int) -> str:
    """Return a text that is no longer than a width, with an ellipsis where its end is left out."""
    return text if len(text) <= width else text[: width - len(ELLIPSIS)] + ELLIPSIS


def wrapped(text: str, *, width: int = WIDTH) -> list[str]:
    """Return a text as lines that a terminal shows whole, all but the first indented by two.

    A word that is longer than a line, as a path, stays in one piece: it is there to be copied.
    """
    if len(text) <= width:
        return [text]
    return textwrap.wrap(
        text,
        width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def rate(value: float | None) -> str:
    """Return a fraction with two decimals, or what stands for the unknown."""
    return UNKNOWN if value is None else f"{value:.2f}"


def mean(value: Mean, *, digits: int = 2) -> str:
    """Return a mean that is 0 or more."""
    return UNKNOWN if value.mean is None else _number(value.mean, sign="", digits=digits)


def signed(value: float | None, *, digits: int = 2) -> str:
    """Return a difference with its sign."""
    return UNKNOWN if value is None else _number(value, sign="+", digits=digits)


def interval(found: Interval | None, *, sign: str = "") -> str:
    """Return the bounds of an interval; `sign` is `+` for those of a difference."""
    if found is None:
        return UNKNOWN
    return f"{found.low:{sign}.2f} to {found.high:{sign}.2f}"


def _number(value: float, *, sign: str, digits: int) -> str:
    size = abs(value)
    for unit, letter in _UNITS:
        if size >= max(unit, _LONG):
            return f"{value / unit:{sign}.1f}{letter}"
    shown = f"{value:{sign}.{0 if size >= _WHOLE else digits}f}"
    # What rounds to nothing has no direction, and a minus would claim one.
    return shown if float(shown) else shown.replace("-", sign)


def counted(number: int, word: str) -> str:
    """Return a number with its word, as `1 trial` and `2 trials`."""
    return f"{number} {word}{'' if number == 1 else 's'}"
