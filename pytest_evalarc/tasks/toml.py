"""Strict TOML, with the line of every table and key."""

from __future__ import annotations

import errno
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pytest_evalarc.errors import TaskError
from pytest_evalarc.files.text import in_line

Key: TypeAlias = tuple[str | int, ...]
"""Where a value is: the names of its tables and its own, list places from 0."""

MOST_BYTES = 1 << 20
"""Of a file that is written by hand."""
MOST_PROMPT_BYTES = 16 << 20
"""Of a prompt, which a program may have put together: far beyond what any model reads at once."""

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_STATEMENT = re.compile(
    rf"[ \t]*(?P<open>\[{{0,2}})[ \t]*(?P<key>{_PART}(?:[ \t]*\.[ \t]*{_PART})*)"
)
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)


@dataclass(frozen=True)
class TomlDocument:
    """A TOML file as plain data, with 1-based lines."""

    data: dict[str, Any]
    lines: Mapping[Key, int]

    def line(self, key: Key) -> int:
        """Return the line of a key, or of the nearest table around it that has one; else 1."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key, 1)


def read_toml(path: Path, *, where: str) -> TomlDocument:
    """Return the content of a TOML file.

    Args:
        path: The file.
        where: What a message calls it.

    Raises:
        TaskError: It cannot be read or is not TOML; a key or table that is there twice is not.
    """
    text = _text(path, where)
    try:
        data = tomllib.loads(text)
    except RecursionError as error:
        raise TaskError(where, "is nested too deeply", "flatten it") from error
    except ValueError as error:
        raise _not_toml(error, text, where) from error
    return TomlDocument(data, _lines(text))


def read_bounded(path: Path, *, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file that an author has written.

    Args:
        path: The file.
        most: Bytes that it may have.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger than any such file.
    """
    # Opening a pipe would wait for whoever writes to it, and a sparse file has no end to speak of.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes")
    return data


def _text(path: Path, where: str) -> str:
    try:
        data = read_bounded(path)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise TaskError(where, problem, "a task is a folder with a task.toml") from error
    if data.startswith(b"\xef\xbb\xbf"):
        hint = "save it as UTF-8 without one"
        raise TaskError(f"{where}:1", "starts with a byte order mark", hint)
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise TaskError(f"{where}:{line}", problem, "save it as UTF-8") from error


def _not_toml(error: ValueError, text: str, where: str) -> TaskError:
    said, _, place = str(error).partition(" (at ")
    found = re.match(r"line (\d+)", place)
    line = int(found[1]) if found else text.rstrip("\n").count("\n") + 1
    return TaskError(f"{where}:{line}", f"is not TOML: {in_line(said, limit=200)}", "mend it")


def _lines(text: str) -> dict[Key, int]:
    """Find the line of each table header and each key that starts a line; the text is valid."""
    lines: dict[Key, int] = {}
    lengths: dict[Key, int] = {}
    table: Key = ()
    for line, statement in _statements(text):
        names = tuple(_unquoted(part) for part in re.findall(_PART, statement["key"]))
        if not statement["open"]:
            _note(lines, table, names, line)
            continue
        table = _resolved(names, lengths)
        if statement["open"] == "[[":
            lengths[table] = lengths.get(table, 0) + 1
            lines.setdefault(table, line)
            table = (*table, lengths[table] - 1)
        lines[table] = line
        for length in range(1, len(table)):
            lines.setdefault(table[:length], line)
    return lines


def _statements(text: str) -> list[tuple[int, re.Match[str]]]:
    found = []
    text += "\n"
    start = depth = 0
    line = 1
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "[{":
            depth += 1
        elif word in "]}":
            depth -= 1
        elif word == "\n" and depth == 0:
            if statement := _STATEMENT.match(text, start, token.start()):
                found.append((line, statement))
            line += text.count("\n", start, token.end())
            start = token.end()
    return found


def _note(lines: dict[Key, int], table: Key, names: tuple[str, ...], line: int) -> None:
    for length in range(1, len(names) + 1):
        lines.setdefault((*table, *names[:length]), line)


def _resolved(names: tuple[str, ...], lengths: Mapping[Key, int]) -> Key:
    """Return the key of a header; one below a list of tables means the list's last table."""
    key: Key = ()
    for name in names:
        key = (*key, lengths[key] - 1, name) if key in lengths else (*key, name)
    return key


def _unquoted(part: str) -> str:
    if part[0] in "\"'":
        return str(next(iter(tomllib.loads(f"{part} = 0"))))
    return part
