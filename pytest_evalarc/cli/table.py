"""Rows as a table that lines up in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines whose columns are as wide as their widest cell.

    Args:
        head: One cell for each column.
        rows: shape (n_rows, n_columns).
    """
    lines = (head, *rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()
