"""Words of a command with places for what differs between sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.files.text import printable

PLACES = ("prompt", "model", "project")

_PART = re.compile(r"\{\{|\}\}|\{(\w*)\}|[{}]")


def places_in(word: str, *, where: str) -> frozenset[str]:
    """Return the places that a word names, each written as `{prompt}`.

    Args:
        word: One word of a command; a literal brace is doubled.
        where: What a message calls it.

    Raises:
        UsageError: A brace stands alone, a place is not known, or the word holds a NUL.
    """
    if "\0" in word:
        raise UsageError(where, "holds a NUL, which no argument can", "take it out")
    found = [part for part in _PART.finditer(word) if part[0] not in ("{{", "}}")]
    for part in found:
        if part[1] is None:
            shown = printable(word, limit=100)
            raise UsageError(where, f"has a single brace in {shown!r}", "double a literal brace")
        if part[1] not in PLACES:
            hint = f"{nearest(part[1], PLACES)}; double a literal brace"
            raise UsageError(where, f"names {part[0]}, which is no place", hint)
    return frozenset(part[1] for part in found)


def filled(word: str, values: Mapping[str, str]) -> str:
    """Return a word that `places_in` accepted, with every place filled and braces undoubled."""
    return _PART.sub(lambda part: part[0][0] if part[1] is None else values[part[1]], word)
