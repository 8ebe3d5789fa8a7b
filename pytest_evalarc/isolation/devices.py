"""Device nodes of a sandbox's own, where the harness's user owns the host's.

A sandbox borrows `/dev/null` and its like from the host. Who runs as root owns those, so a command
inside, which is the same user to the kernel, could take everybody's rights to them away. Such a
harness makes fresh nodes for every sandbox; for anybody else the kernel refuses the change.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pytest_evalarc.files.tree import remove_tree

NAMES = ("null", "zero", "full", "random", "urandom", "tty")
MODE = 0o666


@dataclass(frozen=True, kw_only=True)
class Devices:
    """The device nodes of one sandbox; remove them when its processes are gone."""

    folder: Path | None
    """None: the host's own are used."""

    @property
    def mounts(self) -> tuple[str, ...]:
        """Bubblewrap's options that put these nodes over the borrowed ones."""
        if self.folder is None:
            return ()
        return tuple(
            word
            for name in NAMES
            for word in ("--dev-bind", str(self.folder / name), f"/dev/{name}")
        )

    def remove(self) -> None:
        """Remove the nodes."""
        if self.folder is not None:
            for name in NAMES:
                os.unlink(f"{self.folder}/{name}")  # noqa: PTH108 - many starts, and Paths cost.
            self.folder.rmdir()


@cache
def _number(name: str) -> int:
    """Return what the kernel knows a device of the host by."""
    return Path("/dev", name).stat().st_rdev


def make_devices() -> Devices:
    """Return fresh device nodes when this process is root and may make them, else the host's."""
    if os.geteuid() != 0:
        return Devices(folder=None)
    folder = Path(tempfile.mkdtemp(prefix="pytest-evalarc-dev-"))
    # A container may lack the right to make nodes, or forbid their use where they would lie.
    try:
        for name in NAMES:
            node = f"{folder}/{name}"
            os.mknod(node, stat.S_IFCHR | MODE, _number(name))
            os.chmod(node, MODE)  # noqa: PTH101 - as above.
        with (folder / "null").open("wb"):
            return Devices(folder=folder)
    except OSError:
        with contextlib.suppress(OSError):
            remove_tree(folder)
        return Devices(folder=None)
