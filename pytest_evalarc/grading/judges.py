"""What of a toolchain decides a grading, by its bytes: an update must not go unnoticed."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.isolation.host import base_python, python_home

READ_BYTES = 32 << 20
"""A larger file of the host's is known by its size and time alone; reading it takes longer than
many a grading."""


@dataclass(frozen=True, kw_only=True)
class Judges:
    """The programs and libraries that decide what a grading finds.

    Compiled forms and other caches in their folders are left out.
    """

    staged: tuple[Path, ...] = ()
    """What a batch staged: it counts by its name and its content, wherever it lies."""
    host: tuple[Path, ...] = ()
    """What is used in place: a file counts by its path and its content, a folder by its path and
    by path, size and time of each file in it."""


def python_judges() -> tuple[Path, ...]:
    """Return the base interpreter and what it may import, as far as that is there."""
    home = python_home()
    library = sysconfig.get_config_var("INSTSONAME") or "libpython3.so"
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = (home / "lib" / str(library), home / "lib" / minor, home / "lib" / "python3")
    return (base_python(), *(path for path in own if path.exists()))


def system_programs(*names: str, path: tuple[str, ...]) -> tuple[Path, ...]:
    """Return where programs of the system lie, those left out that are not there."""
    found = (shutil.which(name, path=os.pathsep.join(path)) for name in names)
    return tuple(Path(os.path.realpath(place)) for place in found if place)


@lru_cache
def identity(judges: Judges) -> str:
    """Return a digest of programs and libraries; found once in a process.

    Raises:
        OSError: One is not there, or cannot be read.
        SubmissionError: A staged folder is larger than any that is read.
    """
    digest = hashlib.sha256()
    for path in judges.staged:
        digest.update(os.fsencode(path.name) + f"\0{_content(path)}\0".encode())
    for path in judges.host:
        digest.update(os.fsencode(path) + f"\0{_on_host(path)}\0".encode())
    return digest.hexdigest()


def _content(path: Path) -> str:
    if path.is_dir():
        return read_manifest(path, skip=is_cache).sha256
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _on_host(path: Path) -> str:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return _listed(path)
    return _content(path) if status.st_size <= READ_BYTES else _facts(status)


def _listed(folder: Path) -> str:
    digest = hashlib.sha256()
    for path, status in _files(folder):
        name = os.fsencode(os.path.relpath(path, folder))
        digest.update(name + f"\0{_facts(status)}\0".encode())
    return digest.hexdigest()


def _facts(status: os.stat_result) -> str:
    return f"{status.st_mode} {status.st_size} {status.st_mtime_ns}"


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a folder but folders and caches, in an order of its own."""
    for at, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = f"{at}/{name}"
            yield path, os.lstat(path)


def _refuse(error: OSError) -> None:
    raise error
