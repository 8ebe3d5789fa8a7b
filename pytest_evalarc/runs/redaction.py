"""Secrets struck out of what is kept of a trial, in every spelling that is looked for.

A secret is overwritten by as many asterisks as it has bytes, so that sizes stay true and a record
of JSON lines stays one. What is looked for: the text itself, its JSON escapes also within JSON
within JSON, base64 at any offset and wrapped or not, and hexadecimal. A secret in parts, or in
another spelling, is not found.
"""

from __future__ import annotations

import mmap
import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import Model

SECRET_BYTES = 8
"""A shorter secret would be found in what has nothing to do with it."""

M = TypeVar("M", bound=Model)

_MASK = b"*"
_ESCAPE = rb"\\{1,8}"
"""One level of JSON in JSON doubles the backslashes; more than a few levels nobody writes."""
_WRAP = rb"(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n)?"
"""A line that ends within base64, itself or as JSON has it."""
_SHORT_ESCAPES = {"\b": b"b", "\f": b"f", "\n": b"n", "\r": b"r", "\t": b"t", '"': b'"', "/": b"/"}


class Redaction:
    """What strikes some secrets out; false when there are none.

    Args:
        secrets: Each at least `SECRET_BYTES` long.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Whoever uses a secret may take the space around it off, as after `$(cat file)`.
        spellings = [spelling for secret in secrets for spelling in _spellings(secret.strip())]
        self._pattern = re.compile(b"|".join(spellings)) if spellings else None

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
            return {key: self._value(item) for key, item in value.items()}
        return value

    def _masked(self, data: bytes) -> bytes:
        if self._pattern is None:
            return data
        return self._pattern.sub(lambda found: _MASK * len(found[0]), data)

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
            spans = self._spans(content)
            for start, end in spans:
                content[start:end] = _MASK * (end - start)
        return bool(spans)

    def _spans(self, content: mmap.mmap) -> list[tuple[int, int]]:
        found = self._pattern.finditer(content) if self._pattern is not None else ()
        return [match.span() for match in found]


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


def _spellings(secret: str) -> Iterator[bytes]:
    """Yield a pattern for each way to spell a secret that is looked for."""
    data = os.fsencode(secret)
    yield b"".join(_character(character) for character in secret)
    for offset in range(3):
        yield _base64(data, offset)
    yield b"(?i:" + data.hex().encode() + b")"


def _character(character: str) -> bytes:
    """Return a pattern for a character as it is, and as JSON may escape it."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = b"".join(
        _ESCAPE + b"u(?i:" + units[at : at + 4].encode() + b")" for at in range(0, len(units), 4)
    )
    plain = _ESCAPE if character == "\\" else re.escape(os.fsencode(character))
    ways = [plain, escaped]
    if character in _SHORT_ESCAPES:
        ways.append(_ESCAPE + _SHORT_ESCAPES[character])
    return b"(?:" + b"|".join(ways) + b")"


def _base64(data: bytes, offset: int) -> bytes:
    """Return a pattern for the characters of base64 that a secret alone decides.

    Args:
        data: The secret.
        offset: How many bytes stand before it in its group of three.
    """
    whole = b64encode(b"\0" * offset + data + b"\0\0").decode("ascii")
    own = whole[-(-8 * offset // 6) : 8 * (offset + len(data)) // 6]
    either = {"+": b"[+-]", "/": rb"(?:\\{0,8}/|_)"}
    return _WRAP.join(either.get(character, character.encode("ascii")) for character in own)
