"""Device nodes of a sandbox's own, where the harness's user owns the host's.

A sandbox borrows `/dev/null` and its like from the host. Who runs as root owns those, so a command
inside, which is the same user to the kernel, could take everybody's rights to them away. Such a
harness gives every sandbox nodes that nobody else has at the time, and that are as new; for anybody
else the kernel refuses the change.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import threading
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

from pytest_evalarc.isolation.own_folders import (
    make_own_folder,
    remove_abandoned,
    remove_own_folder,
)

NAMES = ("null", "zero", "full", "random", "urandom", "tty")
MODE = 0o666
TIMES = (0, 0)
"""Of last use and of last change: the same for every node."""
_KIND = "dev"


@dataclass(frozen=True, kw_only=True)
class Devices:
    """The device nodes of one sandbox; give them back when its processes are gone."""

    folder: Path | None
    """None: the host's own are used."""

    @cached_property
    def mounts(self) -> tuple[str, ...]:
        """Bubblewrap's options that put these nodes over the borrowed ones."""
        if self.folder is None:
            return ()
        return tuple(
            word
            for name in NAMES
            for word in ("--dev-bind", str(self.folder / name), f"/dev/{name}")
        )

    def renew(self) -> bool:
        """Make them as new, if nobody took a right away or attached something; return whether.

        A sandbox owns its nodes: what it left on one, be it the time that it claims to have been
        changed, would tell the next sandbox something.
        """
        paths = [f"{self.folder}/{name}" for name in NAMES]
        for path in paths:
            if stat.S_IMODE(os.stat(path).st_mode) != MODE or os.listxattr(path):  # noqa: PTH116
                return False
            os.utime(path, TIMES)
        return True


class DevicePool:
    """Nodes of this process, kept for reuse: making and removing them is most of a start of ours.

    Each set is used by one sandbox at a time.
    """

    def __init__(self) -> None:
        self._free: list[Devices] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        remove_abandoned(_KIND)
        atexit.register(self.close)

    def take(self) -> Devices:
        """Return nodes that nobody uses."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return make_devices()

    def give_back(self, devices: Devices) -> None:
        """Take nodes back; those that a sandbox has changed are removed instead."""
        if devices.folder is None:
            return
        with contextlib.suppress(OSError):
            if devices.renew():
                with self._lock:
                    self._free.append(devices)
                return
        _remove(devices)

    def close(self) -> None:
        """Remove all nodes that are not in use."""
        if os.getpid() == self._owner:
            with self._lock:
                while self._free:
                    _remove(self._free.pop())


def _remove(devices: Devices) -> None:
    if devices.folder is not None:
        remove_own_folder(devices.folder)


@lru_cache(maxsize=1)
def device_pool(pid: int) -> DevicePool:  # noqa: ARG001 - a forked child needs a pool of its own.
    """Return the pool of this process."""
    return DevicePool()


@cache
def _number(name: str) -> int:
    """Return what the kernel knows a device of the host by."""
    return Path("/dev", name).stat().st_rdev


def make_devices() -> Devices:
    """Return fresh device nodes when this process is root and may make them, else the host's."""
    if os.geteuid() != 0:
        return Devices(folder=None)
    folder = make_own_folder(_KIND)
    # A container may lack the right to make nodes, or forbid their use where they would lie.
    try:
        for name in NAMES:
            node = f"{folder}/{name}"
            os.mknod(node, stat.S_IFCHR | MODE, _number(name))
            os.chmod(node, MODE)  # noqa: PTH101 - many starts, and a Path costs more.
            os.utime(node, TIMES)
        with (folder / "null").open("wb"):
            return Devices(folder=folder)
    except OSError:
        remove_own_folder(folder)
        return Devices(folder=None)
