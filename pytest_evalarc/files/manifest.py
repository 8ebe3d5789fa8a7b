"""What is in a folder: every path with its kind, mode, size and digest, no link followed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files.folder import READ, Folder
from pytest_evalarc.files.text import in_line

_CHUNK = 1 << 20
_CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", "target", "node_modules", ".git"}
)

Skip = Callable[[str], bool]


class EntryType(StrEnum):
    """What a path is, itself: a link is a link, wherever it leads."""

    FILE = "file"
    DIR = "dir"
    SYMLINK = "symlink"
    SPECIAL = "special"
    """FIFO, socket or device; never opened."""


class TreeTooLarge(SubmissionError):  # noqa: N818 - it reads as what was found.
    """A folder has more in it than may be read; nothing of it was."""


@dataclass(frozen=True, kw_only=True)
class TreeLimits:
    """What a folder may hold before anything in it is read."""

    bytes: int = 256 << 20
    """Apparent sizes of all files together, so the holes of a sparse file count."""
    files: int = 20_000
    """Paths of every kind."""
    depth: int = 64
    """Components of the longest path below the folder."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One path of a folder."""

    path: str
    """Relative, POSIX style; bytes that are not UTF-8 stand as surrogate escapes."""
    type: EntryType
    mode: int
    """Permission bits."""
    size: int
    """Bytes of a file, or of a link's text; 0 for everything else."""
    sha256: str | None = None
    """Digest of a file's content."""
    target: str | None = None
    """A link's text."""

    @property
    def is_executable(self) -> bool:
        """Whether this is a file that its owner may execute."""
        return self.type is EntryType.FILE and bool(self.mode & stat.S_IXUSR)


@dataclass(frozen=True)
class Manifest:
    """All paths of a folder, sorted by their bytes, so a folder comes before what is in it."""

    entries: tuple[Entry, ...]

    @cached_property
    def sha256(self) -> str:
        """Digest over path, type, exec bit, size and content digest of every entry."""
        digest = hashlib.sha256()
        for entry in self.entries:
            content = entry.sha256 or _text_digest(entry.target or "")
            facts = f"{entry.type} {int(entry.is_executable)} {entry.size} {content}"
            # No path holds a NUL, so no two manifests spell the same bytes.
            digest.update(os.fsencode(entry.path) + b"\0" + facts.encode() + b"\0")
        return digest.hexdigest()

    @cached_property
    def by_path(self) -> dict[str, Entry]:
        """Every entry by its path."""
        return {entry.path: entry for entry in self.entries}

    @property
    def files(self) -> tuple[Entry, ...]:
        """The regular files."""
        return tuple(entry for entry in self.entries if entry.type is EntryType.FILE)

    @property
    def total_bytes(self) -> int:
        """Apparent size of all files together."""
        return sum(entry.size for entry in self.files)


def read_manifest(
    root: Path, *, limits: TreeLimits = TreeLimits(), skip: Skip | None = None
) -> Manifest:
    """Return what is in a folder, files hashed, links not followed, special files not opened.

    Args:
        root: The folder; must not be a link itself.
        limits: Checked over the whole folder before the first file is opened.
        skip: Says of a relative path that it, and all below it, is not part of the folder.

    Raises:
        TreeTooLarge: A limit is passed; names what was found and the limit.
        SubmissionError: The folder or something in it cannot be read, or it changes meanwhile.
    """
    try:
        with Folder.at(root) as folder:
            listed = sorted(
                _listed(folder, limits, skip), key=lambda entry: os.fsencode(entry.path)
            )
            return Manifest(tuple(_hashed(folder, listed)))
    except OSError as error:
        where = in_line(str(error.filename or root), limit=400)
        problem = f"cannot be read below {root}: {error.strerror or error}"
        raise SubmissionError(where, problem, "it must be readable and at rest") from error


def is_cache(path: str) -> bool:
    """Whether a relative path lies in what tools leave behind, which no content hash counts."""
    return any(part in _CACHES or part.endswith(".pyc") for part in path.split("/"))


def open_regular(root: Folder, entry: Entry) -> int:
    """Return a descriptor of a manifest's file, checked to be the file that was listed.

    Args:
        root: The folder that the manifest was read from.
        entry: A regular file of it.

    Raises:
        SubmissionError: Something else stands there now, or its size changed.
        OSError: It is gone or cannot be read, or a link stands in its way.
    """
    *parents, name = PurePosixPath(entry.path).parts
    with root.descend(tuple(parents)) as folder:
        descriptor = folder.open(name, READ)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size != entry.size:
        os.close(descriptor)
        raise changed(entry)
    return descriptor


def changed(entry: Entry) -> SubmissionError:
    """Return the error that says of a file that it changed after it was listed."""
    where = in_line(entry.path, limit=400)
    return SubmissionError(where, "changed while it was read", "no process may write there")


def _listed(root: Folder, limits: TreeLimits, skip: Skip | None) -> list[Entry]:
    entries: list[Entry] = []
    total = 0
    pending: list[tuple[str, ...]] = [()]
    while pending:
        parts = pending.pop()
        with root.descend(parts) as folder:
            for entry in _scanned(folder, "/".join((*parts, "")), skip):
                entries.append(entry)
                total += entry.size if entry.type is EntryType.FILE else 0
                _check_limits(root.path, limits, entry, count=len(entries), total=total)
                if entry.type is EntryType.DIR:
                    pending.append(tuple(entry.path.split("/")))
    return entries


def _scanned(folder: Folder, prefix: str, skip: Skip | None) -> Iterator[Entry]:
    for name, status in folder.scan():
        path = prefix + name
        if skip is not None and skip(path):
            continue
        kind = _type(status.st_mode)
        yield Entry(
            path=path,
            type=kind,
            mode=stat.S_IMODE(status.st_mode),
            size=status.st_size if kind in (EntryType.FILE, EntryType.SYMLINK) else 0,
            target=folder.readlink(name) if kind is EntryType.SYMLINK else None,
        )


def _type(mode: int) -> EntryType:
    if stat.S_ISREG(mode):
        return EntryType.FILE
    if stat.S_ISDIR(mode):
        return EntryType.DIR
    return EntryType.SYMLINK if stat.S_ISLNK(mode) else EntryType.SPECIAL


def _check_limits(root: Path, limits: TreeLimits, entry: Entry, *, count: int, total: int) -> None:
    if count > limits.files:
        raise TreeTooLarge(str(root), f"holds more than {limits.files} paths, which is the limit")
    path = in_line(entry.path, limit=400)
    if total > limits.bytes:
        found = f"{path} has {entry.size} bytes, and the files listed so far {total}"
        raise TreeTooLarge(str(root), f"{found}; the limit is {limits.bytes}")
    if (depth := entry.path.count("/") + 1) > limits.depth:
        raise TreeTooLarge(str(root), f"{path} is {depth} levels deep; the limit is {limits.depth}")


def _hashed(root: Folder, entries: list[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.type is not EntryType.FILE:
            yield entry
            continue
        with open(open_regular(root, entry), "rb", buffering=0) as file:
            yield replace(entry, sha256=_file_digest(file.read, entry))


def _file_digest(read: Callable[[int], bytes | None], entry: Entry) -> str:
    digest = hashlib.sha256()
    left = entry.size
    while left > 0 and (chunk := read(min(_CHUNK, left))):
        digest.update(chunk)
        left -= len(chunk)
    # A file that grows is not read for ever, and one that shrank is not hashed as if whole.
    if left or read(1):
        raise changed(entry)
    return digest.hexdigest()


def _text_digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()
