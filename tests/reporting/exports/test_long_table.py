from __future__ import annotations

import csv
import io

import pytest

from pytest_evalarc.reporting.exports.long_table import csv_of
from pytest_evalarc.reporting.exports.rows import COLUMNS, LongRow

ROW = LongRow(
    batch="b1",
    task="tiny",
    content_hash="c" * 64,
    kind="trial",
    client="claude",
    client_version=None,
    model=None,
    served=None,
    configuration="baseline",
    trial=1,
    control=None,
    isolation="enforced",
    outcome="failed",
    cause="code",
    part="check",
    name="adds",
    dimension="adds",
    seed=None,
    passed=False,
    agent_s=0.1,
    tokens=0,
    cost_usd=1e-07,
)


def read(data: bytes) -> dict[str, str]:
    head, row = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    assert head == list(COLUMNS)
    return dict(zip(head, row, strict=True))


@pytest.mark.parametrize(
    ("model", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@cf/model", "'@cf/model"),
        ("\tx", "'\tx"),
        ("\rx", "'\\x0dx"),
        ("a=b", "a=b"),
        ('a "b", c', 'a "b", c'),
        ("a\nb", "a\nb"),
        ("naïve", "naïve"),
    ],
)
def test_a_text_is_no_formula_and_comes_back_whole(model: str, cell: str) -> None:
    """A spreadsheet runs what a cell begins with, and a model may be called anything."""
    assert read(csv_of([ROW._replace(model=model)]))["model"] == cell


def test_nulls_truths_and_numbers_have_one_form_each() -> None:
    """0 is measured, and an empty cell is not; a float keeps all its digits."""
    row = read(csv_of([ROW]))

    assert (row["seed"], row["tokens"], row["passed"]) == ("", "0", "false")
    assert (row["agent_s"], row["cost_usd"]) == ("0.1", "1e-07")


def test_quotes_are_only_where_they_are_needed_and_lines_end_as_the_standard_says() -> None:
    """RFC 4180: CRLF after each record, and a quote in a quoted cell is doubled."""
    data = csv_of([ROW._replace(name='say "hi"')])

    assert data.endswith(b"\r\n")
    assert b',"say ""hi""",' in data
    assert data.count(b'"') == 6
