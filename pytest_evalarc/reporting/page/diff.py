"""What an agent changed: its kept submission against the task's starter, file by file."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.manifest import (
    Entry,
    EntryType,
    Manifest,
    is_cache,
    open_regular,
    read_manifest,
)
from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.kept import kept_manifest, spelled
from pytest_evalarc.grading.submission import LEFT_OUT, is_editable

MOST_FILE_BYTES = 256 << 10
"""A larger file is named and not compared line by line: nobody reads that on a page."""
MOST_LINES = 4000
"""Lines of a file that are compared; the time that takes may grow with their square."""
MOST_FILES = 200
"""Files whose lines are shown; of more, the paths alone."""
MOST_CHARACTERS = 2000
"""Of one line that is shown."""

Starter: TypeAlias = Path | Mapping[str, bytes]
"""A folder, or the content of files by their POSIX paths."""
Word = Literal["added", "removed", "changed"]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One path that differs."""

    path: str
    """Safe to print."""
    word: Word
    lines: tuple[str, ...] = ()
    """A unified diff without its two heads, each line safe to print."""
    note: str = ""
    """Why there are no lines, or what they do not tell; empty where they tell everything."""


def changes(starter: Starter, folder: Path) -> tuple[FileChange, ...]:
    """Return how a trial's kept submission differs from the starter, sorted by path.

    Caches, and the folders that a treatment fills, are left out: no agent wrote them.

    Args:
        starter: The project that the trial started from: a task's folder, or a pack's files.
        folder: The trial's result folder, with `submission.json` and `submission/`.

    Raises:
        DocumentError: No manifest was kept, or it cannot be read.
        SubmissionError: The manifest is not the one that was kept, or a folder cannot be read.
    """
    before = _stored(starter) if isinstance(starter, Path) else _given(starter)
    kept = folder / "submission"
    after = _Side(kept_manifest(folder / "submission.json"), partial(_content, kept))
    return tuple(_changes(before, after))


def _stored(folder: Path) -> _Side:
    return _Side(read_manifest(folder), partial(_content, folder))


def _given(files: Mapping[str, bytes]) -> _Side:
    """Return files as they are written for a trial, none of them executable."""
    entries = (
        Entry(
            path=path,
            type=EntryType.FILE,
            mode=0o644,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )
        for path, content in files.items()
    )
    return _Side(Manifest(entries=tuple(entries)), lambda entry: files[entry.path])


def _changes(before: _Side, after: _Side) -> Iterator[FileChange]:
    old, new = before.entries, after.entries
    paths = [
        path
        for path in sorted(old.keys() | new.keys())
        if _facts(old.get(path)) != _facts(new.get(path))
    ]
    for number, path in enumerate(paths):
        one, other = old.get(path), new.get(path)
        word: Word = "added" if one is None else "removed" if other is None else "changed"
        lines, note = (
            _compared(before, one, after, other)
            if number < MOST_FILES
            else ((), f"only the first {MOST_FILES} files are compared line by line")
        )
        yield FileChange(path=printable(spelled(path)), word=word, lines=lines, note=note)


def _facts(entry: Entry | None) -> tuple[object, ...] | None:
    if entry is None:
        return None
    return entry.type, entry.is_executable, entry.sha256, entry.target


def _compared(
    before: _Side, one: Entry | None, after: _Side, other: Entry | None
) -> tuple[tuple[str, ...], str]:
    try:
        old, new = before.lines(one), after.lines(other)
    except _Unshown as unshown:
        return (), str(unshown)
    return tuple(_unified(old, new)), _mode_note(one, other)


def _mode_note(one: Entry | None, other: Entry | None) -> str:
    if one is None or other is None or one.is_executable == other.is_executable:
        return ""
    return "it is executable now" if other.is_executable else "it is no longer executable"


def _unified(old: list[str], new: list[str]) -> Iterator[str]:
    for index, line in enumerate(difflib.unified_diff(old, new, lineterm="")):
        # The first two lines name the files, which the page does above them.
        if index >= 2:
            yield printable(line, limit=MOST_CHARACTERS)


class _Unshown(Exception):  # noqa: N818 - it reads as what it says of a file.
    """Why a file's lines are not shown."""


class _Side:
    """What is compared: the starter, or the submission."""

    def __init__(self, manifest: Manifest, content: Callable[[Entry], bytes]) -> None:
        self._content = content
        self.entries = {
            entry.path: entry
            for entry in manifest.entries
            if entry.type is not EntryType.DIR
            and not is_cache(entry.path)
            and not is_editable(entry.path, LEFT_OUT)
        }

    def lines(self, entry: Entry | None) -> list[str]:
        """Return the lines of a path; a link is one line, and no path is none.

        Raises:
            _Unshown: It has no lines that can be shown.
        """
        if entry is None:
            return []
        if entry.type is EntryType.SYMLINK:
            return [f"link to {spelled(entry.target or '')}"]
        if entry.type is EntryType.SPECIAL:
            raise _Unshown("a FIFO, socket or device")
        if entry.size > MOST_FILE_BYTES:
            raise _Unshown(f"{entry.size:,} bytes: too large to be compared here")
        lines = self._text(entry).split("\n")
        if len(lines) > MOST_LINES:
            raise _Unshown(f"{len(lines):,} lines: too many to be compared here")
        # A newline at the end ends the last line, and its absence is a difference.
        return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]} (no newline)"]

    def _text(self, entry: Entry) -> str:
        try:
            text = self._content(entry).decode()
        except (EvalArcError, OSError) as error:
            raise _Unshown("what is stored is not what was left") from error
        except UnicodeDecodeError as error:
            raise _Unshown("it is no text") from error
        if "\0" in text:
            raise _Unshown("it is no text")
        return text


def _content(folder: Path, entry: Entry) -> bytes:
    with Folder.at(folder) as root, os.fdopen(open_regular(root, entry), "rb") as file:
        return file.read(MOST_FILE_BYTES)
