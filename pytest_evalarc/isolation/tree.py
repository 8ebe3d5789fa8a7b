"""Two ways to hold a process tree so that nothing of it gets away: a keeper, a namespace."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.isolation import keeper
from pytest_evalarc.isolation.command import Wrapped
from pytest_evalarc.isolation.host import base_python
from pytest_evalarc.isolation.interrupts import held_back

END_S = 10.0
"""How long ending a tree may take."""


class Tree(ABC):
    """A started process tree. Its outermost process is a child of ours.

    Raises:
        OSError: The program could not be started.
    """

    def __init__(self, wrapped: Wrapped) -> None:
        theirs = self._open()
        process = None
        try:
            # Whatever raises in here or right after it, the process is known and is ended.
            with held_back():
                argv = self._argv(wrapped, str(theirs))
                process = self.process = _popen(argv, wrapped, theirs)
                self._started()
        except BaseException:
            if process is None:
                self._close()
            else:
                self.end()
                self.close()
            raise

    @abstractmethod
    def _open(self) -> int:
        """Open what leads to the outermost process; return the descriptor that it inherits."""

    @abstractmethod
    def _argv(self, wrapped: Wrapped, descriptor: str) -> tuple[str, ...]:
        """Return what is started, the number of the descriptor where it belongs."""

    @abstractmethod
    def _started(self) -> None:
        """Close what only the outermost process needs."""

    @property
    def has_ended(self) -> bool:
        """Whether the outermost process has ended."""
        return self.process.poll() is not None

    @abstractmethod
    def look(self) -> None:
        """Take note of what the outermost process tells; called now and then."""

    @abstractmethod
    def ask(self) -> None:
        """Ask every process of the tree to end."""

    @abstractmethod
    def end(self) -> tuple[int, ...]:
        """Kill what lives and wait until it is gone; return process ids that survived."""

    @property
    @abstractmethod
    def status(self) -> int | None:
        """Exit status of the command, negative for a signal; None while it is not known."""

    def _wait(self) -> bool:
        """Wait for the outermost process; return whether it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        return self.has_ended

    def close(self) -> None:
        """Close every descriptor."""
        self._close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            # Closing flushes, and there may be nobody left to read.
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    @abstractmethod
    def _close(self) -> None:
        """Close what `_open` opened."""


class KeptTree(Tree):
    """A tree below a keeper, which sweeps it when its socket closes; so also when we are gone."""

    _report = b""

    def _open(self) -> int:
        self._ours, self._theirs = socket.socketpair()
        return self._theirs.fileno()

    def _argv(self, wrapped: Wrapped, descriptor: str) -> tuple[str, ...]:
        return (*_keeper_argv(), descriptor, wrapped.env.get("LC_CTYPE", ""), *wrapped.argv)

    def _started(self) -> None:
        self._theirs.close()

    def look(self) -> None:
        """Do nothing: a keeper speaks at its end."""

    def ask(self) -> None:
        """Let the keeper ask: it alone knows what is below it."""
        with contextlib.suppress(OSError):
            self._ours.send(b"t")

    def end(self) -> tuple[int, ...]:
        """Close our side, and wait for the keeper's last words."""
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)
        if not self._wait():
            self.process.kill()
            return (self.process.pid,)
        self._report += self._last_words()
        _, _, survivors = self._report.decode("ascii").partition(" ")
        return tuple(int(pid) for pid in survivors.split(",") if pid.strip())

    def _last_words(self) -> bytes:
        # It has ended, so all it had to say is there.
        self._ours.setblocking(False)
        try:
            return self._ours.recv(1 << 16)
        except OSError:
            return b""

    @property
    def status(self) -> int | None:
        """What the keeper saw; None when it was killed itself."""
        status, _, _ = self._report.decode("ascii").partition(" ")
        return int(status) if status else None

    def _close(self) -> None:
        self._ours.close()
        self._theirs.close()


class NamespaceTree(Tree):
    """A tree in a process namespace: when its first process ends, the kernel ends all others.

    The outermost process ends with the command, before what the command left behind is gone. So
    the tree is gone when the first process is, whose id the sandbox tells.
    """

    _first: int | None = None
    _first_fd: int | None = None

    def _open(self) -> int:
        # A file in memory, since the sandbox would die of writing to a harness that is dead, and
        # at the worst of times: when its first process waits for it.
        self._told = os.memfd_create("first-process", os.MFD_CLOEXEC)
        return self._told

    def _argv(self, wrapped: Wrapped, descriptor: str) -> tuple[str, ...]:
        at = wrapped.descriptor_at or 0
        return (*wrapped.argv[:at], descriptor, *wrapped.argv[at + 1 :])

    def _started(self) -> None:
        """Keep the file: what the sandbox writes is read from it."""

    def look(self) -> None:
        """Learn the first process of the namespace as soon as there is one."""
        if self._first is not None:
            return
        told = os.pread(self._told, 4096, 0)
        if b"}" in told:
            self._first = int(json.loads(told)["child-pid"])
            # On a kernel without such descriptors the bare number has to do.
            with contextlib.suppress(OSError, AttributeError):
                self._first_fd = os.pidfd_open(self._first)

    def ask(self) -> None:
        """Send TERM to everything inside but the first process, which is the sandbox's own."""
        if self._first is None:
            return
        import psutil

        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._first).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGTERM)

    def end(self) -> tuple[int, ...]:
        """Kill the first process and wait until it is gone."""
        self._await_first()
        if self._first is None:
            self.process.kill()
            return () if self._wait() else (self.process.pid,)
        with contextlib.suppress(OSError):
            self._kill_first(self._first)
        is_gone = self._wait_for_first(self._first)
        return () if self._wait() and is_gone else (self._first,)

    def _await_first(self) -> None:
        """Let a sandbox that is just starting come so far that killing it leaves nothing."""
        until_s = time.monotonic() + END_S
        while True:
            was_over = self.has_ended
            self.look()
            if self._first is not None or was_over or time.monotonic() >= until_s:
                return
            time.sleep(0.001)

    def _kill_first(self, first: int) -> None:
        if self._first_fd is not None:
            signal.pidfd_send_signal(self._first_fd, signal.SIGKILL)
        elif not self.has_ended:
            # As long as the sandbox lives, the number is not given to anybody else.
            os.kill(first, signal.SIGKILL)

    def _wait_for_first(self, first: int) -> bool:
        if self._first_fd is not None:
            poll = select.poll()
            poll.register(self._first_fd, select.POLLIN)
            return bool(poll.poll(END_S * 1000))
        import psutil

        until_s = time.monotonic() + END_S
        while psutil.pid_exists(first) and time.monotonic() < until_s:
            time.sleep(0.001)
        return not psutil.pid_exists(first)

    @property
    def status(self) -> int | None:
        """The sandbox's own, which is the command's."""
        return self.process.returncode

    def _close(self) -> None:
        os.close(self._told)
        if self._first_fd is not None:
            os.close(self._first_fd)


def start_tree(wrapped: Wrapped) -> Tree:
    """Start a command so that the whole tree can be ended, and ends when the harness dies.

    Raises:
        OSError: The program could not be started.
    """
    return KeptTree(wrapped) if wrapped.descriptor_at is None else NamespaceTree(wrapped)


def _popen(argv: tuple[str, ...], wrapped: Wrapped, inherited: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            bufsize=0,
            cwd=wrapped.cwd,
            env=dict(wrapped.env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=(inherited,),
        )
    except ValueError as error:
        # A NUL byte in an argument or a variable: no system call would take it.
        raise OSError(errno.EINVAL, str(error)) from error


@lru_cache(maxsize=1)
def _keeper_argv() -> tuple[str, ...]:
    return (str(base_python()), "-I", "-S", "-B", str(Path(keeper.__file__)))
