"""Secrets that a stream of JSON events holds in pieces: what its readers join is joined here.

A model writes token by token, and many a client prints an event for each. No line of such a stream
holds a secret that the model has repeated, and whoever joins the lines again has it.
"""

from __future__ import annotations

import json
import mmap
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

MOST_BYTES = 32 << 20
"""A longer stream is not joined, for that takes several times its size."""

_STRING = re.compile(rb'"((?:[^"\\\n]|\\[^\n])*)"(\s*:)?')


class _Place(NamedTuple):
    """Where the content of a string stands."""

    start: int
    end: int


def spans_in_pieces(
    content: bytes | mmap.mmap, secrets: Iterable[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a secret stand that follow each other in one field of events.

    Args:
        content: Lines, of which those that begin as a JSON object does are looked at.
        secrets: As they are, none empty.
    """
    if len(content) > MOST_BYTES:
        return
    for places in _by_field(content).values():
        pieces = [_told(content[place.start : place.end]) for place in places]
        joined = b"".join(pieces)
        starts = [0, *accumulate(map(len, pieces))]
        for secret in secrets:
            for found in re.finditer(re.escape(secret), joined):
                yield from _parts(places, pieces, starts, found.span())


def _by_field(content: bytes | mmap.mmap) -> dict[bytes, list[_Place]]:
    """Return the strings of all events by the nearest name before each, in their order."""
    fields: dict[bytes, list[_Place]] = {}
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        if content[start : start + 1] == b"{":
            name = b""
            for string in _STRING.finditer(content, start, end):
                if string[2] is not None:
                    name = string[1]
                else:
                    fields.setdefault(name, []).append(_Place(*string.span(1)))
        start = end + 1
    return fields


def _told(string: bytes) -> bytes:
    """Return what the content of a JSON string stands for."""
    if b"\\" not in string:
        return string
    try:
        told: str = json.loads(b'"' + string + b'"')
    except ValueError:
        return string
    return told.encode("utf-8", "surrogatepass")


def _parts(
    places: Sequence[_Place], pieces: Sequence[bytes], starts: Sequence[int], span: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a find stand, which goes over more than one string."""
    first, last = bisect_right(starts, span[0]) - 1, bisect_right(starts, span[1] - 1) - 1
    # In one string it is found as it is spelled there.
    for number in range(first, last + 1) if last > first else ():
        place, piece = places[number], pieces[number]
        begin = max(span[0] - starts[number], 0)
        end = min(span[1] - starts[number], len(piece))
        is_spelled_out = len(piece) == place.end - place.start
        if begin < end and is_spelled_out:
            yield place.start + begin, place.start + end
        elif begin < end:
            yield place
