"""`submission.json`: what was in a submission, so that it can be read back as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import StringConstraints

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files.manifest import Entry, EntryType, Manifest
from pytest_evalarc.files.strict import dumps, read_model
from pytest_evalarc.model.base import SCHEMA_VERSION, Count, Model, Sha256

Hex: TypeAlias = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2})+$")]


class KeptEntry(Model):
    """One path of a kept submission."""

    path: str
    """Relative, POSIX style; bytes that are not UTF-8 are spelled as `\\xNN`."""
    path_hex: Hex | None = None
    """The bytes of such a path, which its spelling does not tell."""
    type: EntryType
    mode: Annotated[str, StringConstraints(pattern=r"^[0-7]{4}$")]
    """Permission bits, in octal."""
    size: Count
    sha256: Sha256 | None = None
    target: str | None = None
    """A link's text, spelled as a path is."""
    target_hex: Hex | None = None


class KeptSubmission(Model):
    """`submission.json`: all that was in a submission, links and special files included."""

    schema_version: str
    sha256: Sha256
    """Digest of the submission."""
    entries: tuple[KeptEntry, ...]


def manifest_document(manifest: Manifest) -> bytes:
    """Return a manifest as the JSON document that is kept with a submission."""
    document = KeptSubmission(
        schema_version=SCHEMA_VERSION,
        sha256=manifest.sha256,
        entries=tuple(
            KeptEntry(
                path=spelled(entry.path),
                path_hex=_hex(entry.path),
                type=entry.type,
                mode=f"{entry.mode:04o}",
                size=entry.size,
                sha256=entry.sha256,
                target=None if entry.target is None else spelled(entry.target),
                target_hex=None if entry.target is None else _hex(entry.target),
            )
            for entry in manifest.entries
        ),
    )
    return dumps(document.to_json())


def kept_manifest(path: Path) -> Manifest:
    """Return the manifest that `manifest_document` wrote.

    Raises:
        DocumentError: The document cannot be read.
        SubmissionError: Its entries are not those of its digest.
    """
    kept = read_model(path, KeptSubmission)
    manifest = Manifest(tuple(_entry(row) for row in kept.entries))
    if manifest.sha256 != kept.sha256:
        raise SubmissionError(str(path), "its entries are not those that were kept")
    return manifest


def _entry(row: KeptEntry) -> Entry:
    target = None if row.target is None else _unspelled(row.target, row.target_hex)
    return Entry(
        path=_unspelled(row.path, row.path_hex),
        type=row.type,
        mode=int(row.mode, 8),
        size=row.size,
        sha256=row.sha256,
        target=target,
    )


def spelled(path: str) -> str:
    """Return a path in characters that every reader of JSON can hold."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _hex(path: str) -> str | None:
    """Return the bytes of a path that a text cannot hold, None for every other path."""
    data = os.fsencode(path)
    return None if spelled(path) == path else data.hex()


def _unspelled(spelled: str, data: str | None) -> str:
    return spelled if data is None else os.fsdecode(bytes.fromhex(data))
