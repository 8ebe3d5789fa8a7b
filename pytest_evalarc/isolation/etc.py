"""What processes see of /etc: copies of a few files in one folder, for every mount costs time."""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.isolation.own_folders import (
    make_own_folder,
    remove_abandoned,
    remove_own_folder,
)

FILES = (
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "localtime",
    "nsswitch.conf",
    "os-release",
    "passwd",
)
FOLDERS = ("ld.so.conf.d",)
LINKS = "alternatives"
"""A folder of hundreds of links: a mount of its own costs less than copies of them."""
NAMES = (*FILES, *FOLDERS, LINKS)
"""What programs need below /etc when there is no network; the rest holds keys and password
hashes."""

_KIND = "etc"


@lru_cache(maxsize=1)
def copied_etc(pid: int) -> Path:
    """Return the folder that is shown as /etc, made once in this process and removed at its end.

    It holds an empty folder where `LINKS` is to be mounted.

    Args:
        pid: Of this process; a forked child needs a folder of its own.

    Raises:
        InfrastructureError: It cannot be made.
    """
    remove_abandoned(_KIND)
    try:
        folder = make_own_folder(_KIND)
        atexit.register(_remove, folder, pid)
        folder.chmod(0o755)
        (folder / LINKS).mkdir()
    except OSError as error:
        raise InfrastructureError("sandbox bwrap", f"no /etc can be made: {error}") from error
    write_tree(folder, dict(_contents()))
    return folder


def _contents() -> Iterator[tuple[str, bytes]]:
    """Yield what can be read of the files, by their paths below /etc."""
    etc = Path("/etc")
    paths = [etc / name for name in FILES]
    paths += [path for name in FOLDERS for path in (etc / name).glob("*")]
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.relative_to(etc).as_posix(), path.read_bytes()


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        remove_own_folder(folder)
