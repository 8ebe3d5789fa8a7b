"""Lines of a client's stream, read so that no content can raise or flood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import without_surrogates
from pytest_evalarc.model.base import JsonObject

LINE_BYTES = 16 * 1024 * 1024
"""The longest line that is decoded."""


class Reader(Protocol):
    """Folds the lines of a stream, in their order, into what they show."""

    def take(self, line: JsonObject | None, /) -> None:
        """Take one line's object, or None for a line that held none; no content raises."""
        ...


R = TypeVar("R", bound=Reader)


def read_into(reader: R, stream: Path, *, true_bytes: int) -> R:
    """Return a reader that has taken all of a stream.

    Args:
        reader: A new one.
        stream: The captured stream.
        true_bytes: How long the stream really was; more than was kept means a part is lost.

    Raises:
        OSError: The file cannot be read.
    """
    for event in read_events(stream, true_bytes=true_bytes):
        reader.take(event)
    return reader


def read_events(stream: Path, *, true_bytes: int) -> Iterator[JsonObject | None]:
    """Yield the stream's events in order, and None for each part that is not one.

    Not an event: a line that is no JSON object, that holds a key twice, a NUL, a number that
    JSON has no room for or bytes that are not UTF-8, that is longer than `LINE_BYTES`, and
    whatever the capture dropped. An empty line says nothing and is passed over.

    Args:
        stream: The captured stream.
        true_bytes: How long the stream really was; more than was kept means a part is lost.

    Raises:
        OSError: The file cannot be read.
    """
    kept_bytes = 0
    with stream.open("rb") as file:
        while line := file.readline(LINE_BYTES):
            kept_bytes += len(line)
            if len(line) == LINE_BYTES and not line.endswith(b"\n"):
                while (rest := file.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                    kept_bytes += len(rest)
                kept_bytes += len(rest)
                yield None
            elif line.strip():
                yield decode_event(line)
    if kept_bytes < true_bytes:
        yield None


def decode_event(line: bytes) -> JsonObject | None:
    """Return the object that one line holds, its text fit for any encoder; None if it has none."""
    try:
        value = _encodable(loads(line, where="stream"))
    except DocumentError:
        return None
    return value if isinstance(value, dict) else None


class EventWatch:
    """Sees a stream as it comes, in any chunks, and asks of each event whether it is the end.

    What holds no event is passed over: it is no end, and whoever reads the stream counts it.
    """

    def __init__(self, is_end: Callable[[JsonObject], bool]) -> None:
        self._is_end = is_end
        self._line = bytearray()
        self._is_finished = False

    def __call__(self, chunk: bytes) -> bool:
        """Take the next chunk; return whether the end has come, now or before."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            self._see()
        self._add(rest)
        return self._is_finished

    def _add(self, part: bytes) -> None:
        # One byte more than is ever decoded keeps a line too long from passing for an event.
        self._line += part[: max(0, LINE_BYTES + 1 - len(self._line))]

    def _see(self) -> None:
        event = decode_event(bytes(self._line)) if len(self._line) <= LINE_BYTES else None
        self._line.clear()
        if event is not None and not self._is_finished:
            self._is_finished = self._is_end(event)


def _encodable(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): _encodable(item) for key, item in value.items()}
    return value
