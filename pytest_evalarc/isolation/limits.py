"""Limits of a process tree: control groups where they can be written, rlimits elsewhere.

A limit is applied by a shell that puts itself under it and then becomes the command, so nothing of
the command ever runs outside, and no code runs between fork and exec of the harness.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.model.task import Limits

CGROUP_ROOT = Path("/sys/fs/cgroup")
GROUP_PREFIX = "pytest-evalarc-"
SANDBOX_PROCESSES = 2
"""The sandbox's own two processes share the group of what they run."""

MIB = 1024 * 1024
CPU_PERIOD_US = 100_000
FILE_BLOCK_BYTES = 512

SWAP_FILES = ("memory.memsw.limit_in_bytes", "memory.swap.max")
"""There where the kernel counts swap: memory is then refused rather than paged out."""

_OOM_FILES = {"cgroup-v1": "memory.oom_control", "cgroup-v2": "memory.events"}

_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """Where a group of this process's own can be made, and with which controllers."""

    version: str
    """`cgroup-v1` or `cgroup-v2`."""
    parents: dict[str, Path]
    """Folder to make groups in, by controller: `memory`, `pids`, `cpu`."""


@lru_cache(maxsize=1)
def hierarchy() -> Hierarchy | None:
    """Return the control groups this process may use, or None when there are none."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return None
    return _version_1(lines) or _version_2(lines)


def _version_1(lines: Sequence[str]) -> Hierarchy | None:
    parents: dict[str, Path] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in {"memory", "pids", "cpu"} & set(controllers.split(",")):
            folder = CGROUP_ROOT / controller / path.lstrip("/")
            if os.access(folder, os.W_OK) and _is_group(folder):
                parents[controller] = folder
    return Hierarchy(version="cgroup-v1", parents=parents) if parents else None


def _version_2(lines: Sequence[str]) -> Hierarchy | None:
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return None
    folder = CGROUP_ROOT / own.lstrip("/")
    # A group with processes of its own cannot hand controllers down, so beside it is as good.
    for parent in (folder, folder.parent):
        try:
            handed_down = (parent / "cgroup.subtree_control").read_text("utf-8").split()
        except OSError:
            continue
        usable = {"memory", "pids", "cpu"} & set(handed_down)
        if usable and os.access(parent, os.W_OK) and _is_group(parent):
            return Hierarchy(version="cgroup-v2", parents=dict.fromkeys(sorted(usable), parent))
    return None


def _is_group(folder: Path) -> bool:
    """Whether the kernel keeps a folder: in any other, a limit would be a file that says so."""
    return (folder / "cgroup.procs").exists()


class Group:
    """One control group over all controllers, used by one process tree at a time."""

    def __init__(self, place: Hierarchy, name: str) -> None:
        self._version = place.version
        self._folders = {key: parent / name for key, parent in place.parents.items()}
        self._oom_file = self._file("memory", _OOM_FILES[place.version])
        self._count_file = self._file("pids", "pids.current")
        for folder in self._folders.values():
            folder.mkdir(exist_ok=True)
        groups = sorted(set(self._folders.values()))
        self.entrances = tuple(folder / "cgroup.procs" for folder in groups)
        """Files that a process writes its id to in order to be limited."""
        self._limits: Limits | None = None
        self._dead = 0
        self._oom_kills = 0

    def set(self, limits: Limits) -> None:
        """Apply limits to the empty group.

        Raises:
            OSError: The kernel refused one.
        """
        if limits != self._limits:
            for controller, file, value in self._settings(limits):
                self._write(controller, file, value)
        # Dead processes count until somebody collects them, and those of a sandbox are left to
        # the machine's first process, which takes its time.
        dead = self._count_processes()
        if limits != self._limits or dead != self._dead:
            self._write("pids", "pids.max", str(limits.processes + SANDBOX_PROCESSES + dead))
        self._limits, self._dead = limits, dead
        self._oom_kills = self._count_oom_kills()

    def _file(self, controller: str, name: str) -> str | None:
        folder = self._folders.get(controller)
        return None if folder is None else str(folder / name)

    def _write(self, controller: str, file: str, value: str) -> None:
        folder = self._folders.get(controller)
        if folder is None or (file in SWAP_FILES and not (folder / file).exists()):
            return
        (folder / file).write_text(value, "ascii")

    def _settings(self, limits: Limits) -> tuple[tuple[str, str, str], ...]:
        memory = str(limits.memory_mib * MIB)
        quota = str(int(limits.cpus * CPU_PERIOD_US))
        if self._version == "cgroup-v1":
            return (
                # Never below the other, which must be out of the way while that one grows.
                ("memory", "memory.memsw.limit_in_bytes", "-1"),
                ("memory", "memory.limit_in_bytes", memory),
                ("memory", "memory.memsw.limit_in_bytes", memory),
                ("cpu", "cpu.cfs_period_us", str(CPU_PERIOD_US)),
                ("cpu", "cpu.cfs_quota_us", quota),
            )
        return (
            ("memory", "memory.max", memory),
            ("memory", "memory.swap.max", "0"),
            ("cpu", "cpu.max", f"{quota} {CPU_PERIOD_US}"),
        )

    def enter(self) -> None:
        """Put this thread into the group, and so whatever it starts from now on.

        Raises:
            OSError: The kernel refused it, or its version knows no threads of groups.
        """
        if self._version != "cgroup-v1":
            raise OSError(errno.ENOTSUP, "only version 1 has threads in groups of their own")
        for folder in set(self._folders.values()):
            (folder / "tasks").write_text(str(threading.get_native_id()), "ascii")

    @property
    def is_empty(self) -> bool:
        """Whether no process is left in the group."""
        return not any(_content(entrance) for entrance in self.entrances)

    def _count_processes(self) -> int:
        return int(_content(self._count_file)) if self._count_file is not None else 0

    def _count_oom_kills(self) -> int:
        if self._oom_file is not None:
            with contextlib.suppress(OSError, ValueError):
                for line in _content(self._oom_file).splitlines():
                    key, _, value = line.partition(b" ")
                    if key == b"oom_kill":
                        return int(value)
        return 0

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended a process of the group for its memory since `set`."""
        return self._count_oom_kills() > self._oom_kills

    def remove(self) -> None:
        """Remove the group; one that still holds a process stays."""
        for folder in set(self._folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _content(file: str | Path) -> bytes:
    """Return what a file of the kernel says, which is little."""
    # Asked of several files at both ends of every process, so without a buffer.
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


_numbers = itertools.count(1)


class GroupPool:
    """Groups of this process, kept for reuse: a fresh one costs more and lingers."""

    def __init__(self, place: Hierarchy) -> None:
        self._place = place
        self._free: list[Group] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        _remove_abandoned(place)
        atexit.register(self.close)

    def take(self, limits: Limits) -> Group:
        """Return a group under these limits; give it back when its tree is gone.

        Raises:
            InfrastructureError: The kernel refused the group or one of its limits.
        """
        with self._lock:
            group = self._free.pop() if self._free else None
        if group is not None:
            # One that was removed behind our back, or cannot shrink that far, is no loss.
            with contextlib.suppress(OSError):
                group.set(limits)
                # Reads every entrance, so that it fails here and not where a process joins.
                if group.is_empty:
                    return group
            group.remove()
        return self._make(limits)

    def _make(self, limits: Limits) -> Group:
        name = f"{GROUP_PREFIX}{os.getpid()}-{next(_numbers)}"
        try:
            group = Group(self._place, name)
            group.set(limits)
        except OSError as error:
            raise InfrastructureError("limits", f"the control group {name}: {error}") from error
        return group

    def give_back(self, group: Group) -> None:
        """Take back a group; one with a process left in it would limit whoever comes next."""
        with contextlib.suppress(OSError):
            if group.is_empty:
                with self._lock:
                    self._free.append(group)

    def close(self) -> None:
        """Remove every group that is not in use."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            while self._free:
                self._free.pop().remove()


def remove_abandoned_groups() -> None:
    """Remove groups of harness processes that are gone; they cannot remove them any more."""
    place = hierarchy()
    if place is not None:
        _remove_abandoned(place)


def _remove_abandoned(place: Hierarchy) -> None:
    for parent in set(place.parents.values()):
        for folder in parent.glob(f"{GROUP_PREFIX}*"):
            owner = folder.name.removeprefix(GROUP_PREFIX).partition("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()


@lru_cache(maxsize=1)
def _pool(pid: int) -> GroupPool | None:  # noqa: ARG001 - a forked child needs a pool of its own.
    place = hierarchy()
    return GroupPool(place) if place is not None else None


@dataclass(frozen=True, kw_only=True)
class Limited:
    """A command in its control group, if there are any."""

    argv: tuple[str, ...]
    ran_out_of_memory: Callable[[], bool]
    release: Callable[[], None]


def rlimits(limits: Limits, *, reserved_mib: int = 0) -> str:
    """Return what a shell does to be under the limits of each process by itself.

    Args:
        limits: Applied as `enforced_by` says.
        reserved_mib: What the program maps and never fills: an rlimit, which cannot tell, counts
            it as memory, and is that much higher.
    """
    words = f"ulimit -c 0; ulimit -f {limits.disk_mib * MIB // FILE_BLOCK_BYTES}; "
    if "memory" not in pool_controllers():
        words += f"ulimit -d {(limits.memory_mib + reserved_mib) * 1024}; "
    return words


def in_group(argv: Sequence[str], limits: Limits) -> Limited:
    """Return the command in a control group, which it joins unless its thread is in one.

    Args:
        argv: The command; a prefix becomes it by exec, so its process id stays.
        limits: Applied as `enforced_by` says.

    Raises:
        InfrastructureError: A control group that should be writable is not.
    """
    pool = _pool(os.getpid())
    if pool is None:
        return Limited(argv=tuple(argv), ran_out_of_memory=bool, release=lambda: None)
    own = _thread.group if _thread.limits == limits else None
    if own is not None:
        _set_again(own, limits)
        return Limited(
            argv=tuple(argv),
            ran_out_of_memory=lambda: own.ran_out_of_memory,
            release=lambda: None,
        )
    group = pool.take(limits)
    entrances = (str(path) for path in group.entrances)
    return Limited(
        argv=("/bin/sh", "-c", _JOIN, "join", *entrances, "--", *argv),
        ran_out_of_memory=lambda: group.ran_out_of_memory,
        release=lambda: pool.give_back(group),
    )


def _set_again(group: Group, limits: Limits) -> None:
    try:
        group.set(limits)
    except OSError as error:
        raise InfrastructureError("limits", f"a thread's control group: {error}") from error


def _await_empty(group: Group) -> None:
    """Wait until the kernel has let go of a thread that has ended, which takes it a moment."""
    until_s = time.monotonic() + 1.0
    with contextlib.suppress(OSError):
        while not group.is_empty and time.monotonic() < until_s:
            time.sleep(0.001)


class Joined:
    """Threads that are in groups of their own: what they start is born under its limits.

    A process that joins a group makes the kernel wait for all others, ten milliseconds at times;
    one that a member starts need not join. Use it around the whole life of the threads.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._groups: list[Group] = []

    def __enter__(self) -> Callable[[], None]:
        """Return what each of the threads calls first; never the main one, which goes on."""
        return self._join

    def __exit__(self, *_: object) -> None:
        """Give the groups back; the threads have ended."""
        pool = _pool(os.getpid())
        while pool is not None and self._groups:
            group = self._groups.pop()
            _await_empty(group)
            pool.give_back(group)

    def _join(self) -> None:
        pool = _pool(os.getpid())
        # Where a thread cannot join, each process does as everywhere else, and tells what is wrong.
        with contextlib.suppress(OSError, InfrastructureError):
            if pool is not None:
                group = pool.take(self._limits)
                self._groups.append(group)
                group.enter()
                _thread.group, _thread.limits = group, self._limits


class _Thread(threading.local):
    """The group that this thread is in, and the limits of it."""

    group: Group | None = None
    limits: Limits | None = None


_thread = _Thread()


def pool_controllers() -> frozenset[str]:
    """Return the controllers that limits of this process are enforced with."""
    place = hierarchy()
    return frozenset(place.parents) if place is not None else frozenset()


def enforced_by(*, bounded_tmp: bool) -> dict[str, str | None]:
    """Return each limit by what enforces it here; None is not enforced.

    Args:
        bounded_tmp: Whether temporary folders are memory file systems of a fixed size.
    """
    place = hierarchy()
    version = place.version if place is not None else ""
    controllers = pool_controllers()
    return {
        "memory_mib": version if "memory" in controllers else "rlimit, each process",
        "processes": version if "pids" in controllers else None,
        "cpus": version if "cpu" in controllers else None,
        "tmp_mib": "tmpfs" if bounded_tmp else None,
        "output_mib": "supervisor",
        "disk_mib": "rlimit, each file",
    }
