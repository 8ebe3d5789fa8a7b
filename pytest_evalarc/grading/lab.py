"""Where grading happens: the sandbox, the staged tools, and what every process is denied."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.cache import GradingCache
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.grading.toolchain import Interpreter, Toolchain, Tools
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Exit, Policy, Sandbox
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.task import Limits

SYSTEM_PATH = ("/usr/bin", "/bin")
STARTUP_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Lab:
    """Everything that grading needs of its surroundings; it owns no decision."""

    sandbox: Sandbox
    toolchain: Toolchain
    work: Path
    """Folder in which grading copies are made and removed."""
    deny_read: tuple[Path, ...] = ()
    jobs: int = 1
    """How many checks of one submission run at once."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    cache: GradingCache | None = None
    """Gradings that were made before; None: every one is made anew."""


def _do_nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class PackLab(Lab):
    """A lab whose cases come from a pack."""

    pack: Pack
    interpreter: Interpreter
    threads: CaseThreads
    """What the cases run on; it outlives the lab."""
    on_last_cases: Callable[[], None] = _do_nothing
    """Called on one of the threads when a grading has so few cases left that threads get idle."""


@dataclass(frozen=True, kw_only=True)
class FileLab(Lab):
    """A lab whose checks are hidden files in a language."""

    tools: Tools

    def grading_env(self, tmp: Path) -> dict[str, str]:
        """Return the whole environment of a grading process."""
        return {
            "PATH": os.pathsep.join([*(str(path) for path in self.tools.bins), *SYSTEM_PATH]),
            "HOME": str(tmp),
            "TMPDIR": str(tmp),
            "LANG": "C.UTF-8",
            **self.tools.env,
        }

    def run(
        self,
        argv: Iterable[str],
        *,
        stdin: bytes,
        reads: tuple[Path, ...],
        writes: tuple[Path, ...] = (),
        limits: Limits,
        deadline_s: float,
        stdout: Capture,
        stderr: Capture,
    ) -> Exit:
        """Run one grading process in the sandbox, with a temporary folder of its own.

        Raises:
            InfrastructureError: The sandbox is not there.
        """
        watch = Watch(
            total_s=deadline_s,
            output_limit_bytes=limits.output_mib * MIB,
            cancelled=self.cancelled,
        )
        with self._tmp() as (tmp, write):
            command = Command(argv=tuple(argv), cwd=tmp, env=self.grading_env(tmp), stdin=stdin)
            policy = Policy(
                read=(*reads, self.tools.root, *self.tools.reads),
                deny_read=self.deny_read,
                write=(*write, *writes),
                limits=limits,
            )
            wrapped = self.sandbox.wrap(command, policy)
            return supervise(wrapped, watch, stdout=stdout, stderr=stderr)

    @contextmanager
    def _tmp(self) -> Iterator[tuple[Path, tuple[Path, ...]]]:
        """Give a process's temporary folder, and what of it the host has to let it write."""
        if self.sandbox.private_tmp is not None:
            yield self.sandbox.private_tmp, ()
            return
        with scratch(self.work, "tmp") as own:
            yield own, (own,)


def pack_of(lab: FileLab | PackLab) -> Pack | None:
    """Return the pack of a lab that has one."""
    return lab.pack if isinstance(lab, PackLab) else None


@contextmanager
def scratch(parent: Path, name: str) -> Iterator[Path]:
    """Make a folder of a name that nobody else has, and take it away again, whatever happens.

    Raises:
        InfrastructureError: It cannot be made or removed.
    """
    folder = parent / f"{name}-{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True)
        yield folder
    finally:
        try:
            remove_tree(folder)
        except OSError as error:
            raise InfrastructureError(str(folder), f"cannot be removed: {error}") from error


class Cancelled(threading.Event):
    """Set by whoever holds it, or from outside: one grading can be given up and others go on."""

    def __init__(self, outer: threading.Event) -> None:
        super().__init__()
        self._outer = outer

    def is_set(self) -> bool:
        """Whether either is set."""
        return super().is_set() or self._outer.is_set()


class Stopwatch:
    """Adds up the wall-clock seconds in which at least one command ran."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._running = 0
        self._since_s = 0.0
        self.total_s = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._running == 0:
                self._since_s = self._clock()
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self.total_s += self._clock() - self._since_s


def grader_digest(code: Path | None = None) -> str:
    """Return the digest of the code that grades: this floor and the one that isolates it.

    Args:
        code: The folder of the pack that judges; None for hidden checks.
    """
    import hashlib

    package = Path(sys.modules["pytest_evalarc"].__file__ or "").parent
    digest = hashlib.sha256()
    for floor in ("grading", "isolation"):
        manifest = read_manifest(package / floor, skip=is_cache)
        digest.update(f"{floor}\0{manifest.sha256}\0".encode())
    if code is not None:
        digest.update(f"pack\0{read_manifest(code, skip=is_cache).sha256}\0".encode())
    return digest.hexdigest()


def require(condition: bool, where: str, problem: str) -> None:
    """Raise an infrastructure error unless something holds that our own steps promise."""
    if not condition:
        raise InfrastructureError(where, problem)
