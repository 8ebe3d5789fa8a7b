"""The long table as CSV, which spreadsheets open, and as JSON, which says each column's type."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.reporting.exports.rows import COLUMNS, LongRow

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def csv_of(rows: Iterable[LongRow]) -> bytes:
    r"""Return rows as CSV by RFC 4180: UTF-8, a head, CRLF, quotes where they are needed.

    A null is an empty cell, a truth `true` or `false`. A text that a spreadsheet would run as a
    formula begins with an apostrophe here, as a foreign name may be `=HYPERLINK(…)`.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def long_json_of(rows: Iterable[LongRow]) -> bytes:
    """Return rows as one JSON document: `columns` with their types, and `rows` as objects."""
    return dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "columns": [{"name": name, "type": kind} for name, kind in COLUMNS.items()],
            "rows": [row._asdict() for row in rows],
        }
    )


def _cell(value: str | float | bool | None) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            shown = printable(value)
            # Looked at as it came: what is shown of a control no longer begins like one.
            return f"'{shown}" if value.startswith(_FORMULA) else shown
        case _:
            return repr(value)
