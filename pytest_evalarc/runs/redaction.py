"""Secrets struck out of what is kept of a trial, in every spelling that is looked for.

A secret is overwritten by as many asterisks as it has bytes, so that sizes stay true and a record
of JSON lines stays one. What is looked for: the text itself and what programs make of it unasked,
which are escapes as of JSON, also within JSON within JSON, of URLs, of HTML and of Python, base64
at any offset and wrapped or not, and hexadecimal. Where a text was cut, a piece of a secret at the
cut is looked for too, and so are the pieces of one in a stream of events. A secret that somebody
took apart, or spelled otherwise, is not found.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from html.entities import codepoint2name
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import Model
from pytest_evalarc.runs.pieces import spans_in_pieces

SECRET_BYTES = 8
"""A shorter secret would be found in what has nothing to do with it."""

M = TypeVar("M", bound=Model)

_MASK = b"*"
_ESCAPE = rb"\\{1,8}"
"""One level of JSON in JSON doubles the backslashes; more than a few levels nobody writes."""
_WRAP = rb"(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n)?"
"""A line that ends within base64, itself or as JSON has it."""
_SHORT_ESCAPES = {
    **{"\b": b"b", "\f": b"f", "\n": b"n", "\r": b"r", "\t": b"t"},
    **{'"': b'"', "'": b"'", "/": b"/"},
}
_CUT = re.compile(
    # As `Capture` and `printable` mark what they leave out, and the channel of a check at a start.
    rb"\n\[\d{1,20} bytes dropped\]\n"
    rb"|\[(?P<mark>\xe2\x80\xa6|\\u2026) \d{1,20} characters dropped (?P=mark)\]"
    rb"|\A\xe2\x80\xa6"
)
_CUT_PART_BYTES = 6
"""Of one part of a spelling at a cut, at most."""
_TORN = rb"(?s:.{0,5})"
"""What is left of the part that a cut went through."""
_MOST_CUTS = 1000
"""A text with more cuts has made them up; what may be a piece at one of those is taken for one."""


class _Spelling(NamedTuple):
    """One way to spell a secret: parts that follow each other, a pattern for each."""

    parts: tuple[bytes, ...]
    few: int
    """So many parts of it tell too much already."""

    @property
    def whole(self) -> bytes:
        """Pattern for all of it."""
        return b"".join(self.parts)

    @property
    def head(self) -> bytes:
        """Pattern for the least first part of it that is looked for."""
        return b"".join(self.parts[: self.few])

    @property
    def tail(self) -> bytes:
        """Pattern for the least last part of it that is looked for."""
        return b"".join(self.parts[-self.few :])

    def ends_at(self, text: bytes) -> bool:
        """Whether a text is the beginning of this spelling, cut off within it."""
        counts = range(self.few, len(self.parts))
        return not self._is_in(text) and any(
            _in_full(b"".join(self.parts[:count]), text, rb"", _TORN) for count in counts
        )

    def begins_in(self, text: bytes) -> bool:
        """Whether a text is the end of this spelling, what is before it cut off."""
        starts = range(1, len(self.parts) - self.few + 1)
        return not self._is_in(text) and any(
            _in_full(b"".join(self.parts[start:]), text, _TORN, rb"") for start in starts
        )

    def _is_in(self, text: bytes) -> bool:
        return _compiled(self.whole).search(text) is not None


def _in_full(pattern: bytes, text: bytes, before: bytes, behind: bytes) -> bool:
    return _compiled(before + pattern + behind).fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


class Redaction:
    """What strikes some secrets out; false when there are none.

    Args:
        secrets: Each at least `SECRET_BYTES` long.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Whoever uses a secret may take the space around it off, as after `$(cat file)`.
        stripped = [secret.strip() for secret in secrets]
        self._plain = tuple(os.fsencode(secret) for secret in stripped)
        spellings = [spelling for secret in stripped for spelling in _spellings(secret)]
        self._pattern = _any(spelling.whole for spelling in spellings)
        self._in_pieces = [
            (spelling, re.compile(spelling.head), re.compile(spelling.tail))
            for spelling in spellings
            if len(spelling.parts) > spelling.few
        ]
        longest = max((len(spelling.parts) for spelling in spellings), default=0)
        self._reach = _CUT_PART_BYTES * longest

    def __bool__(self) -> bool:
        return self._pattern is not None

    def strike(self, folder: Path) -> tuple[str, ...]:
        """Strike the secrets out of every file below a folder, and out of every name there.

        Args:
            folder: A folder of ours that nothing writes to any more; modes in it stay as they are.

        Returns:
            The paths that were changed, relative, POSIX style and printable, sorted.

        Raises:
            OSError: Something there cannot be read or written, so a secret may be left.
        """
        if not self:
            return ()
        with Folder.at(folder) as root:
            return tuple(sorted(self._strike_folder(root, "")))

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        return self._masked(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def document(self, document: M) -> M:
        """Return a document whose texts are without the secrets."""
        if not self:
            return document
        return type(document).model_validate(self._value(document.to_json()))

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return self._object(value)
        return value

    def _object(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        struck: dict[str, JsonValue] = {}
        for key, item in value.items():
            name = self.text(key)
            while name in struck:
                name += _MASK.decode()
            struck[name] = self._value(item)
        return struck

    def _masked(self, data: bytes) -> bytes:
        spans = self._spans(data)
        if not spans:
            return data
        content = bytearray(data)
        for start, end in spans:
            content[start:end] = _MASK * (end - start)
        return bytes(content)

    def _strike_folder(self, folder: Folder, prefix: str) -> Iterator[str]:
        for name, status in list(folder.scan()):
            new_name = self._rename(folder, name)
            path = prefix + new_name
            is_struck = new_name != name
            if stat.S_ISDIR(status.st_mode):
                with _accessible(folder, new_name, status), folder.child(new_name) as inner:
                    yield from self._strike_folder(inner, f"{path}/")
            elif stat.S_ISREG(status.st_mode) and status.st_size:
                with _accessible(folder, new_name, status):
                    is_struck |= self._strike_file(folder, new_name)
            if is_struck:
                yield printable(path, limit=400)

    def _rename(self, folder: Folder, name: str) -> str:
        new_name = os.fsdecode(self._masked(os.fsencode(name)))
        if new_name == name:
            return name
        taken = {other for other, _ in folder.scan()}
        while new_name in taken:
            new_name += os.fsdecode(_MASK)
        folder.move(name, folder, new_name)
        return new_name

    def _strike_file(self, folder: Folder, name: str) -> bool:
        """Overwrite the secrets in a file where they stand; return whether there were any."""
        with (
            os.fdopen(folder.open(name, os.O_RDWR), "r+b", buffering=0) as file,
            mmap.mmap(file.fileno(), 0) as content,
        ):
            spans = [*self._spans(content), *spans_in_pieces(content, self._plain)]
            for start, end in spans:
                content[start:end] = _MASK * (end - start)
        return bool(spans)

    def _spans(self, content: bytes | mmap.mmap) -> list[tuple[int, int]]:
        """Return where the secrets stand, and what is left of one that a cut went through."""
        if self._pattern is None:
            return []
        spans = [found.span() for found in self._pattern.finditer(content)]
        for number, cut in enumerate(_CUT.finditer(content)):
            is_sure = number >= _MOST_CUTS
            spans += self._before(content, cut.start(), is_sure=is_sure)
            spans += self._behind(content, cut.end(), is_sure=is_sure)
        # A stream may end in the middle of anything.
        return [*spans, *self._before(content, len(content))]

    def _before(
        self, content: bytes | mmap.mmap, cut: int, *, is_sure: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Yield where the first part of a secret stands that a cut took the rest of."""
        start = max(0, cut - self._reach)
        shown = content[start:cut]
        for spelling, head, _ in self._in_pieces:
            for found in head.finditer(shown):
                if is_sure or spelling.ends_at(shown[found.start() :]):
                    yield start + found.start(), cut

    def _behind(
        self, content: bytes | mmap.mmap, cut: int, *, is_sure: bool
    ) -> Iterator[tuple[int, int]]:
        """Yield where the last part of a secret stands that a cut took the rest of."""
        shown = content[cut : cut + self._reach]
        for spelling, _, tail in self._in_pieces:
            found = tail.search(shown)
            if found is not None and (is_sure or spelling.begins_in(shown[: found.end()])):
                yield cut, cut + found.end()


@contextmanager
def _accessible(folder: Folder, name: str, status: os.stat_result) -> Iterator[None]:
    """Let the owner read and write what a session may have protected, for as long as it takes."""
    mode = stat.S_IMODE(status.st_mode)
    is_open = mode & stat.S_IRWXU == stat.S_IRWXU
    if not is_open:
        folder.chmod(name, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        if not is_open:
            folder.chmod(name, mode)


def _any(patterns: Iterable[bytes]) -> re.Pattern[bytes] | None:
    """Return what finds any of some patterns, the first of those that begin at one place."""
    joined = b"|".join(patterns)
    return re.compile(joined) if joined else None


def _spellings(secret: str) -> Iterator[_Spelling]:
    """Yield each way to spell a secret that is looked for."""
    data = os.fsencode(secret)
    yield _Spelling(tuple(map(_character, secret)), SECRET_BYTES)
    for offset in range(3):
        first, *rest = _base64(data, offset)
        yield _Spelling((first, *(_WRAP + part for part in rest)), 8 * SECRET_BYTES // 6)
    yield _Spelling(tuple(b"(?i:%02x)" % byte for byte in data), SECRET_BYTES)


def _character(character: str) -> bytes:
    """Return a pattern for a character as it is, and as programs escape it."""
    data = os.fsencode(character)
    plain = _ESCAPE if character == "\\" else re.escape(data)
    units = character.encode("utf-16-be", "surrogatepass").hex()
    ways = [
        plain,
        # JSON.
        _each(_ESCAPE + b"u", [units[at : at + 4] for at in range(0, len(units), 4)]),
        # Python and other languages, byte by byte; and a URL, which may be part of another one.
        _each(_ESCAPE + b"x", [f"{byte:02x}" for byte in data]),
        _each(rb"%(?:25){0,3}", [f"{byte:02x}" for byte in data]),
        *_entities(ord(character)),
    ]
    if character in _SHORT_ESCAPES:
        ways.append(_ESCAPE + _SHORT_ESCAPES[character])
    return b"(?:" + b"|".join(ways) + b")"


def _each(prefix: bytes, numbers: Iterable[str]) -> bytes:
    """Return a pattern for hexadecimal numbers, each behind a prefix."""
    return b"".join(prefix + b"(?i:" + number.encode() + b")" for number in numbers)


def _entities(code: int) -> Iterator[bytes]:
    """Yield patterns for a character as HTML may have it."""
    yield b"&#0{0,4}%d;" % code
    yield b"&#[xX]0{0,4}(?i:%x);" % code
    if code in codepoint2name:
        yield f"&{codepoint2name[code]};".encode()


def _base64(data: bytes, offset: int) -> list[bytes]:
    """Return patterns for the characters of base64 that a secret alone decides.

    Args:
        data: The secret.
        offset: How many bytes stand before it in its group of three.
    """
    whole = b64encode(b"\0" * offset + data + b"\0\0").decode("ascii")
    own = whole[-(-8 * offset // 6) : 8 * (offset + len(data)) // 6]
    # In a URL the signs are others, or escaped.
    either = {"+": b"(?:[+-]|%2[bB])", "/": rb"(?:\\{0,8}/|_|%2[fF])"}
    return [either.get(character, character.encode("ascii")) for character in own]
