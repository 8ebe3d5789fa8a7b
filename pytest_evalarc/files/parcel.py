"""A folder as a stream of bounded messages, and the same folder made of them elsewhere.

The stream is a listing (JSON) followed by the content of the listed files in their order. It
arrives beside the place where it belongs, and is put there only once every digest was right.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.manifest import (
    Entry,
    EntryType,
    Skip,
    TreeLimits,
    changed,
    open_regular,
    read_manifest,
)
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import in_line
from pytest_evalarc.files.tree import destination, remove_tree, write_all

CHUNK_BYTES = 1 << 20
"""The most content of one message."""
LIMITS = TreeLimits(bytes=1 << 30, files=100_000, depth=80)
"""Of a folder that is sent; a kept submission of the largest size is well within them."""
MOST_LISTED_BYTES = 64 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Opening(NamedTuple):
    """The first message: how much of the stream is the listing."""

    listing_bytes: int


class Content(NamedTuple):
    """The next part of the stream, of at most `CHUNK_BYTES`."""

    data: bytes


class Closing(NamedTuple):
    """The last message: the digest of the whole stream."""

    sha256: str


Message = Opening | Content | Closing


def parcel(root: Path, *, skip: Skip | None = None) -> Iterator[Message]:
    """Yield a folder as messages: its folders and regular files, with content and mode.

    Args:
        root: The folder, at rest; no link itself. Links and special files in it are left out.
        skip: Says of a relative path that it, and all below it, is not sent.

    Raises:
        SubmissionError: The folder is beyond `LIMITS`, cannot be read, or changes meanwhile.
        OSError: A file of it is gone.
    """
    manifest = read_manifest(root, limits=LIMITS, skip=skip)
    kinds = (EntryType.DIR, EntryType.FILE)
    entries = [entry for entry in manifest.entries if entry.type in kinds]
    listing = json.dumps([(e.path, e.mode, e.size, e.sha256) for e in entries]).encode()
    digest = hashlib.sha256(listing)
    yield Opening(len(listing))
    for start in range(0, len(listing), CHUNK_BYTES):
        yield Content(listing[start : start + CHUNK_BYTES])
    with Folder.at(root) as folder:
        for data in _batched(_contents(folder, entries)):
            digest.update(data)
            yield Content(data)
    yield Closing(digest.hexdigest())


def _contents(folder: Folder, entries: list[Entry]) -> Iterator[bytes]:
    for entry in entries:
        if entry.type is EntryType.FILE:
            yield from _content(folder, entry)


def _content(folder: Folder, entry: Entry) -> Iterator[bytes]:
    left = entry.size
    with os.fdopen(open_regular(folder, entry), "rb", buffering=0) as file:
        while left > 0 and (data := file.read(min(CHUNK_BYTES, left))):
            left -= len(data)
            yield data
    if left:
        raise changed(entry)


def _batched(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces as large as they may be: most files are small."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= CHUNK_BYTES:
            yield bytes(held[:CHUNK_BYTES])
            del held[:CHUNK_BYTES]
    if held:
        yield bytes(held)


@dataclass(frozen=True)
class _Listed:
    """One line of a listing; a folder has no digest."""

    path: str
    mode: int
    size: int
    sha256: str | None


class Arrival:
    """A parcel that is being received, in a folder of its own until it is whole."""

    def __init__(self, staging: Path, opening: Opening) -> None:
        """Begin to receive into a folder that is made new.

        Args:
            staging: On the file system of the place where the parcel belongs; what stands there,
                as from a controller that died, is removed.
            opening: The first message.

        Raises:
            DocumentError: No listing may be that long.
            InfrastructureError: The folder cannot be made.
        """
        self.staging = staging
        if not 0 < opening.listing_bytes <= MOST_LISTED_BYTES:
            raise self._wrong(f"has a listing of {opening.listing_bytes} bytes")
        self._listing_bytes = opening.listing_bytes
        self._listing = bytearray()
        self._whole = hashlib.sha256()
        self._folders: list[_Listed] = []
        self._coming: deque[_Listed] = deque()
        self._open: _OpenFile | None = None
        self._held = contextlib.ExitStack()
        remove_tree(staging)
        self._target = self._held.enter_context(destination(staging))

    def take(self, content: Content) -> None:
        """Receive the next part of the stream.

        Raises:
            DocumentError: It is not what the listing says.
            InfrastructureError: It cannot be written, as on a full disk.
            OSError: The same.
        """
        if len(content.data) > CHUNK_BYTES:
            raise self._wrong(f"has a part of {len(content.data)} bytes")
        self._whole.update(content.data)
        left = memoryview(content.data)
        missing = self._listing_bytes - len(self._listing)
        if missing:
            self._listing += left[:missing]
            left = left[missing:]
            if len(self._listing) == self._listing_bytes:
                self._read_listing()
        while left:
            left = self._fill(left)

    def finish(self, closing: Closing) -> None:
        """See that all has arrived, as it was sent.

        Raises:
            DocumentError: Something is missing, or a digest is another.
        """
        if len(self._listing) < self._listing_bytes or self._open or self._coming:
            raise self._wrong("ends before all that it lists has come")
        if self._whole.hexdigest() != closing.sha256:
            raise self._wrong("has another digest than was sent")
        # Inside out, as nothing can be put into a folder that is read-only.
        for folder in reversed(self._folders):
            self._target.set_mode(folder.path, folder.mode)
        self._held.close()

    def discard(self) -> None:
        """Leave nothing of it behind; what resists is no result of anything."""
        with contextlib.suppress(OSError):
            if self._open is not None:
                self._open.close()
        self._held.close()
        with contextlib.suppress(OSError):
            remove_tree(self.staging)

    def _read_listing(self) -> None:
        rows = loads(bytes(self._listing), where=str(self.staging))
        if not isinstance(rows, list):
            raise self._wrong("has no listing")
        listed = [self._listed(row) for row in rows]
        self._folders = [entry for entry in listed if entry.sha256 is None]
        self._coming.extend(entry for entry in listed if entry.sha256 is not None)
        for folder in self._folders:
            self._target.make_folder(folder.path)
        self._advance()

    def _listed(self, row: object) -> _Listed:
        match row:
            case [str(path), int(mode), int(size), None] if size == 0 and 0 <= mode <= 0o7777:
                return _Listed(path, mode, size, None)
            case [str(path), int(mode), int(size), str(sha256)] if (
                size >= 0 and 0 <= mode <= 0o7777 and _DIGEST.fullmatch(sha256)
            ):
                return _Listed(path, mode, size, sha256)
        raise self._wrong(f"lists {in_line(repr(row), limit=200)}, which is nothing")

    def _fill(self, data: memoryview) -> memoryview:
        """Write what belongs to the file that is open, and return the rest."""
        if self._open is None:
            raise self._wrong("holds more than it lists")
        rest = self._open.write(data)
        if not self._open.left:
            self._end_file(self._open)
            self._advance()
        return rest

    def _advance(self) -> None:
        """Open the next file that has any content; those that have none are whole at once."""
        while self._open is None and self._coming:
            opened = _OpenFile(self._coming.popleft())
            opened.begin(self._held_file(opened.listed))
            self._open = opened
            if not opened.left:
                self._end_file(opened)

    @contextlib.contextmanager
    def _held_file(self, listed: _Listed) -> Iterator[int]:
        with self._target.new_file(listed.path, replace=False) as descriptor:
            yield descriptor
            os.fchmod(descriptor, listed.mode & 0o777)

    def _end_file(self, opened: _OpenFile) -> None:
        opened.close()
        self._open = None
        if opened.sha256 != opened.listed.sha256:
            raise self._wrong(f"has {in_line(opened.listed.path, limit=400)} with another digest")

    def _wrong(self, problem: str) -> DocumentError:
        return DocumentError(str(self.staging.name), problem, "it counts as not arrived")


class _OpenFile:
    """The file that is being received."""

    def __init__(self, listed: _Listed) -> None:
        self.listed = listed
        self.left = listed.size
        self._digest = hashlib.sha256()
        self._held = contextlib.ExitStack()
        self._descriptor = -1

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def begin(self, file: contextlib.AbstractContextManager[int]) -> None:
        self._descriptor = self._held.enter_context(file)

    def write(self, data: memoryview) -> memoryview:
        own = data[: self.left]
        write_all(self._descriptor, own)
        self._digest.update(own)
        self.left -= len(own)
        return data[len(own) :]

    def close(self) -> None:
        self._held.close()


def place(staging: Path, folder: Path, *, last: str) -> None:
    """Put what has arrived where it belongs; the document that says it is whole comes last.

    Args:
        staging: What `Arrival` has filled.
        folder: Where to, on the same file system; what stands under the same names and has no
            such document beside it is a remainder, and is replaced.
        last: The name of that document, at the top of what arrived.

    Raises:
        DocumentError: The document is not there.
        OSError: It cannot be put there, as on a full disk.
    """
    if not (staging / last).is_file():
        raise DocumentError(last, "is not in what arrived", "it counts as not arrived")
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(staging.iterdir()):
        if path.name != last:
            target = folder / path.name
            remove_tree(target)
            path.rename(target)
    write_atomic(folder / last, (staging / last).read_bytes())
    remove_tree(staging)
