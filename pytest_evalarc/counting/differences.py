"""In which fields two JSON documents differ, by dotted path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic import JsonValue

from pytest_evalarc.files.text import printable

ABSENT: Final = object()
"""Stands for a key that is not there, which is not the same as null."""


class Difference(NamedTuple):
    """One field and its two values; a value is JSON data, or `ABSENT`."""

    field: str
    """As `mutants.2.killed`."""
    first: object
    second: object


def differences(first: JsonValue, second: JsonValue) -> Iterator[Difference]:
    """Yield each field in which two documents differ, in the order of the first one.

    Lists of different lengths are one field. `true` is not 1, and 1 is 1.0.
    """
    return _differences(first, second, "")


def shown(value: object) -> str:
    """Return a value as it stands in a document, short and safe to print."""
    if value is ABSENT:
        return "nothing"
    return printable(json.dumps(value, ensure_ascii=False), limit=120)


def _differences(first: object, second: object, field: str) -> Iterator[Difference]:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys((*first, *second)):
            path = f"{field}.{key}" if field else key
            yield from _differences(first.get(key, ABSENT), second.get(key, ABSENT), path)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, f"{field}.{index}" if field else str(index))
    elif isinstance(first, bool) is not isinstance(second, bool) or first != second:
        yield Difference(field or "the document", first, second)
