"""Gradings that were made before, by all that decided them: an entry is right, or it is none."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_atomic, write_model
from pytest_evalarc.files.strict import document_bytes, read_model
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.settled import is_settled
from pytest_evalarc.model.base import SCHEMA_VERSION, Model, Name, Sha256
from pytest_evalarc.model.grading import CachedFrom, Grading

_UNSIGNED = "0" * 64


class CacheEntry(Model):
    """One grading with what its processes printed, as it lies in the cache."""

    schema_version: str
    sha256: Sha256
    """Digest of this document with 64 zeros in the place of the digest."""
    key: Sha256
    """Digest of all that decides the grading."""
    graded_at: datetime
    grading: Grading
    outputs: dict[Name, str]
    """What the process of a step or check printed, by the name of that."""

    def signed(self) -> CacheEntry:
        """Return this entry with the digest of what it says."""
        blank = self.model_copy(update={"sha256": _UNSIGNED})
        digest = hashlib.sha256(document_bytes(blank)).hexdigest()
        return self.model_copy(update={"sha256": digest})


@dataclass(frozen=True, kw_only=True)
class GradingCache:
    """A folder of gradings that only this user writes, and that no sandboxed process sees.

    Any number of processes may read and write it at once: an entry appears whole, and whoever
    writes the same one writes the same.
    """

    folder: Path
    turn: int = 1
    """Which of several gradings of one submission this is of; each turn has its own entry."""
    reads: bool = True
    """Whether an entry may stand for a grading."""
    writes: bool = True
    """Whether a grading may become an entry."""

    def read(self, key: str, *, is_ours: Callable[[Grading], bool]) -> CacheEntry | None:
        """Return the entry of a key, its grading marked as cached; None when there is none.

        What stands there and is no entry, is torn, was edited or belongs elsewhere is removed.

        Args:
            key: Digest of all that decides the grading.
            is_ours: Whether a grading says of itself what would be said of a new one.
        """
        path = self._path(key)
        if not self.reads or not os.path.lexists(path):
            return None
        entry = _read(path)
        if entry is None or entry.key != key or not is_ours(entry.grading):
            # Whoever replaced it meanwhile loses an entry, which is only graded once more.
            with contextlib.suppress(OSError):
                remove_tree(path)
            return None
        cached = CachedFrom(key=key, graded_at=entry.graded_at)
        return entry.model_copy(
            update={"grading": entry.grading.model_copy(update={"cached": cached})}
        )

    def store(self, key: str, grading: Grading, outputs: Mapping[str, str]) -> None:
        """Keep a grading, if it is settled; a disk that takes no more only costs the entry."""
        if not self.writes or not is_settled(grading):
            return
        entry = CacheEntry(
            schema_version=SCHEMA_VERSION,
            sha256=_UNSIGNED,
            key=key,
            graded_at=datetime.now(UTC),
            grading=grading,
            outputs=dict(outputs),
        )
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True, mode=0o700)
            write_model(path, entry.signed())

    def _path(self, key: str) -> Path:
        return entry_path(self.folder, key)


def entry_path(folder: Path, key: str) -> Path:
    """Return where the entry of a key lies; 256 folders keep each of them small."""
    return folder / key[:2] / f"{key}.json"


def _read(path: Path) -> CacheEntry | None:
    """Return a whole and unaltered entry; None for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        entry = read_model(path, CacheEntry)
    except (OSError, DocumentError):
        return None
    is_whole = entry.signed().sha256 == entry.sha256
    is_first = entry.grading.cached is None
    return entry if is_whole and is_first and is_settled(entry.grading) else None


def write_outputs(outputs: Mapping[str, str], folder: Path) -> None:
    """Write what the processes of a grading printed, as the grading itself would have.

    Raises:
        OSError: It cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in outputs.items():
        write_atomic(output_path(folder, name), text.encode())


def read_outputs(grading: Grading, folder: Path) -> dict[str, str]:
    """Return what the processes of a grading printed, by step and check.

    Raises:
        OSError: It cannot be read.
    """
    names = (*(step.name for step in grading.steps), *(row.check for row in grading.rows))
    paths = {name: output_path(folder, name) for name in names}
    return {name: path.read_bytes().decode() for name, path in paths.items() if path.is_file()}


def output_path(folder: Path, name: str) -> Path:
    """Return the file of what the process of a step or check printed."""
    return folder / f"{name}.log"
