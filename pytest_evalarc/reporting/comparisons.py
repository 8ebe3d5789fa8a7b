"""A comparison as Markdown that fits a pull request: what got worse first, nothing unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.comparison import BatchComparison, Change, ComparedRow, Tally

MOST_ROWS = 50
"""Rows that are told; a comment on a pull request holds some 65,000 characters."""

_WORDS = {
    Change.REGRESSED: "regressed",
    Change.LESS_RELIABLE: "less reliable",
    Change.REMOVED: "removed",
    Change.INCOMPARABLE: "incomparable",
    Change.NEWLY_COVERED: "newly covered",
    Change.IMPROVED: "improved",
    Change.UNCHANGED: "unchanged",
}
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#!|~@&])")


def markdown_of(comparison: BatchComparison) -> str:
    """Return a comparison as Markdown: a verdict, then a table of the rows that changed.

    What foreign names hold is shown as it is: it makes no markup, no link and no mention.
    """
    changed = [row for row in comparison.rows if row.change is not Change.UNCHANGED]
    order = list(Change)
    changed.sort(key=lambda row: order.index(row.change))
    return "\n".join((*_head(comparison), *_table(changed), "", comparison.interpretation, ""))


def _head(comparison: BatchComparison) -> Iterator[str]:
    counts = comparison.changes
    worst = next((change for change in Change if counts.get(change)), Change.UNCHANGED)
    title = {
        Change.REGRESSED: "Something regressed",
        Change.LESS_RELIABLE: "Nothing regressed, but something is less reliable",
        Change.REMOVED: "Nothing regressed, but something is no longer there",
        Change.INCOMPARABLE: "Nothing regressed among what can be compared",
    }.get(worst, "Nothing regressed")
    yield f"### {title}"
    yield ""
    told = [f"{counts[change]} {_WORDS[change]}" for change in Change if counts.get(change)]
    yield f"{', '.join(told) or 'There was nothing to compare'}."
    if comparison.across:
        yield f"Allowed to differ: {', '.join(comparison.across)}."
    yield ""


def _table(changed: list[ComparedRow]) -> Iterator[str]:
    if not changed:
        return
    yield "| change | task | what | before | now | difference (95 %) |"
    yield "|---|---|---|---|---|---|"
    for row in changed[:MOST_ROWS]:
        cells = (
            f"**{_WORDS[row.change]}**",
            escaped(f"{row.task} / {row.client or 'audit'}"),
            escaped(_what(row)),
            _rate(row.before),
            _rate(row.after),
            _difference(row),
        )
        yield f"| {' | '.join(cells)} |"
    left_out = len(changed) - MOST_ROWS
    if left_out > 0:
        yield ""
        yield f"{left_out} more rows changed; the document of the comparison lists them."


def escaped(text: str) -> str:
    """Return foreign text as Markdown that shows it on one line and means nothing else."""
    return _SPECIAL.sub(r"\\\1", printable(text, limit=200).replace("\n", " ").replace("\t", " "))


def _what(row: ComparedRow) -> str:
    name = "success" if row.part == "success" else f"{row.part} {row.name}"
    return f"{row.configuration}: {name}" if row.configuration else name


def _rate(tally: Tally | None) -> str:
    if tally is None:
        return "none"
    margin = "" if tally.margin is None else f", margin {tally.margin}"
    return f"{tally.passed} of {tally.judged}{margin}"


def _difference(row: ComparedRow) -> str:
    if row.reason is not None:
        return escaped(row.reason)
    interval = row.difference_ci95
    return "" if interval is None else f"{interval.low:+.2f} to {interval.high:+.2f}"
