"""Secrets that a stream of JSON events holds in pieces: what its readers join is joined here.

A model writes token by token, and many a client prints an event for each. No line of such a stream
holds a secret that the model has repeated, and whoever joins the lines again has it.
"""

from __future__ import annotations

import json
import mmap
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator

MOST_BYTES = 16 << 20
"""A longer stream is not joined, for that takes up to ten times its size."""

_STRING = re.compile(rb'"((?:[^"\\\n]|\\[^\n])*)"(\s*:)?')


class _Field:
    """The strings of one field, joined; a stream has many, so none is an object of its own."""

    def __init__(self) -> None:
        self.text = bytearray()
        self._offsets = array("q")
        """Where in the text each begins."""
        self._starts = array("q")
        self._ends = array("q")
        """Where in the stream the content of each stands."""

    def add(self, content: bytes, start: int) -> None:
        """Take the content of the next string, and where it stands."""
        if content:
            self._offsets.append(len(self.text))
            self._starts.append(start)
            self._ends.append(start + len(content))
            self.text += _told(content)

    def parts(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield where the parts of a text stand that goes over more than one string."""
        first, last = (bisect_right(self._offsets, at) - 1 for at in (begin, end - 1))
        # In one string it is found as it is spelled there.
        for number in range(first, last + 1) if last > first else ():
            yield self._part(number, begin, end)

    def _part(self, number: int, begin: int, end: int) -> tuple[int, int]:
        offset, start, stop = self._offsets[number], self._starts[number], self._ends[number]
        is_last = number + 1 == len(self._offsets)
        size = (len(self.text) if is_last else self._offsets[number + 1]) - offset
        # What is escaped is longer than what it stands for, and is taken whole.
        if size != stop - start:
            return start, stop
        return start + max(begin - offset, 0), start + min(end - offset, size)


def spans_in_pieces(
    content: bytes | mmap.mmap, secrets: Iterable[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a secret stand that follow each other in one field of events.

    Args:
        content: Lines, of which those that begin as a JSON object does are looked at.
        secrets: As they are, none empty.
    """
    wanted = tuple(secrets)
    if not wanted or len(content) > MOST_BYTES:
        return
    for field in _by_name(content).values():
        for secret in wanted:
            for found in re.finditer(re.escape(secret), field.text):
                yield from field.parts(*found.span())


def _by_name(content: bytes | mmap.mmap) -> dict[bytes, _Field]:
    """Return the strings of all events by the nearest name before each, in their order."""
    fields: dict[bytes, _Field] = {}
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
                    fields.setdefault(name, _Field()).add(string[1], string.start(1))
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
