"""The one process supervisor: deadlines, both pipes drained, and nothing left when it returns."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from pytest_evalarc.isolation import keeper
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Ended, Exit, Wrapped
from pytest_evalarc.isolation.host import base_python

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

CHUNK_BYTES = 1 << 16
POLL_S = 0.2
"""Longest pause between two looks at cancellation and deadlines."""
DRAIN_S = 2.0
"""How long a pipe may stay open after its tree has ended."""
END_S = 10.0
"""How long ending a tree may take."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When a process is ended, in seconds on the monotonic clock; None is no bound."""

    total_s: float
    startup_s: float | None = None
    """From start to the first byte of output."""
    idle_s: float | None = None
    """From one byte of output to the next."""
    grace_s: float = 2.0
    """From a polite signal, or from a delivered result, to the end of the tree."""
    output_limit_bytes: int | None = None
    """Of both streams together."""
    polite: bool = False
    """Whether the tree is asked to end before it is ended."""
    is_finished: Callable[[bytes], bool] | None = None
    """Sees each chunk of stdout; True once the result is delivered."""
    cancelled: threading.Event = field(default_factory=threading.Event)


class Running:
    """A started process tree with its pipes. Only the thread that made it may use it.

    The thread matters: a sandbox that dies with its parent dies when this very thread ends.

    Raises:
        OSError: The program could not be started.
    """

    def __init__(self, wrapped: Wrapped, *, stdout: Capture, stderr: Capture) -> None:
        self._wrapped = wrapped
        self._control: socket.socket | None = None
        self.stdout = stdout
        self.stderr = stderr
        self.started_s = time.monotonic()
        self.last_output_s: float | None = None
        self._on_stdout: Callable[[bytes], None] = _ignore
        self._input = bytearray()
        self._closes_input = False
        self._selector = selectors.DefaultSelector()
        self._process = self._start()
        self._exit_fd = _open_exit_fd(self._process.pid)
        self._watch_pipes()

    def _start(self) -> subprocess.Popen[bytes]:
        argv: tuple[str, ...] = self._wrapped.argv
        inherited: tuple[int, ...] = ()
        if not self._wrapped.dies_with_parent:
            ours, theirs = socket.socketpair()
            self._control = ours
            inherited = (theirs.fileno(),)
            argv = (*_keeper_argv(), str(theirs.fileno()), *argv)
        try:
            return subprocess.Popen(
                argv,
                cwd=self._wrapped.cwd,
                env=dict(self._wrapped.env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=inherited,
            )
        finally:
            if inherited:
                theirs.close()

    def _watch_pipes(self) -> None:
        for stream, capture in (
            (self._process.stdout, self.stdout),
            (self._process.stderr, self.stderr),
        ):
            if stream is None:  # pragma: no cover - both are pipes.
                continue
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, capture)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
        if self._exit_fd is not None:
            self._selector.register(self._exit_fd, selectors.EVENT_READ, None)

    @property
    def pid(self) -> int:
        """Process id of the outermost process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the outermost process has ended; its pipes may still hold bytes."""
        return self._process.poll() is not None

    @property
    def output_bytes(self) -> int:
        """Bytes of both streams so far."""
        return self.stdout.total_bytes + self.stderr.total_bytes

    def on_stdout(self, see: Callable[[bytes], None]) -> None:
        """Show each further chunk of stdout to a function."""
        self._on_stdout = see

    def feed(self, data: bytes, *, close: bool = False) -> None:
        """Queue bytes for stdin; `close` ends the stream after them."""
        self._input += data
        self._closes_input = self._closes_input or close
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            return
        if stdin not in self._selector.get_map():
            self._selector.register(stdin, selectors.EVENT_WRITE, None)

    def pump(self, timeout_s: float) -> None:
        """Move bytes both ways until something happened or the time is over."""
        for key, _ in self._selector.select(max(0.0, min(timeout_s, POLL_S))):
            if key.fileobj is self._process.stdin:
                self._write_input()
            elif isinstance(key.data, Capture):
                self._read_output(key.fileobj, key.data)
            elif self._exit_fd is not None:
                self._selector.unregister(self._exit_fd)
                os.close(self._exit_fd)
                self._exit_fd = None

    def _read_output(self, stream: FileDescriptorLike, capture: Capture) -> None:
        descriptor = stream if isinstance(stream, int) else stream.fileno()
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(stream)
            return
        self.last_output_s = time.monotonic()
        capture.add(chunk)
        if capture is self.stdout:
            self._on_stdout(chunk)

    def _write_input(self) -> None:
        stdin = self._process.stdin
        if stdin is None:  # pragma: no cover - it is a pipe.
            return
        try:
            written = os.write(stdin.fileno(), self._input[:CHUNK_BYTES]) if self._input else 0
        except BlockingIOError:
            return
        except OSError:
            # Nobody reads any more: what is left over is the reader's loss.
            written = len(self._input)
            self._closes_input = True
        del self._input[:written]
        if not self._input:
            self._selector.unregister(stdin)
            if self._closes_input:
                stdin.close()

    def drain(self, timeout_s: float) -> None:
        """Read what the pipes still hold, until they close or the time is over."""
        until = time.monotonic() + timeout_s
        while self._has_open_output() and time.monotonic() < until:
            self.pump(until - time.monotonic())

    def _has_open_output(self) -> bool:
        return any(isinstance(key.data, Capture) for key in self._selector.get_map().values())

    def end(self, *, polite: bool = False, grace_s: float = 2.0) -> tuple[int, ...]:
        """End the whole tree and wait for it; return process ids that survived."""
        if self._control is not None:
            return self._end_kept()
        if polite and not self.has_ended:
            self._ask_to_end(grace_s)
        if not self.has_ended:
            _kill_namespace(self._process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
        if not self.has_ended:
            self._process.kill()
        return () if self._is_gone() else (self._process.pid,)

    def _ask_to_end(self, grace_s: float) -> None:
        for process in _inside(self._process.pid):
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + grace_s
        while not self.has_ended and time.monotonic() < until:
            self.pump(until - time.monotonic())

    def _is_gone(self) -> bool:
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _end_kept(self) -> tuple[int, ...]:
        """Tell the keeper to end its tree; it sweeps also when the command has ended by itself."""
        control = self._control
        if control is None:
            return ()
        with contextlib.suppress(OSError):
            control.shutdown(socket.SHUT_WR)
        until = time.monotonic() + END_S
        # The tree may be blocked on a full pipe, so reading goes on while it ends.
        while not self.has_ended and time.monotonic() < until:
            self.pump(until - time.monotonic())
        if not self.has_ended:
            self._process.kill()
            self._process.wait(END_S)
        self._report = _read_report(control)
        control.close()
        self._control = None
        return self._report.survivors

    @property
    def status(self) -> int | None:
        """Exit status of the command, negative for a signal; None while it runs."""
        if not self._wrapped.dies_with_parent:
            return self._report.status if self._control is None else None
        return self._process.returncode

    _report: _Report

    def close(self) -> None:
        """Close every descriptor that is still open."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None and not stream.closed:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._exit_fd is not None:
            os.close(self._exit_fd)
            self._exit_fd = None
        self._selector.close()
        self.stdout.close()
        self.stderr.close()


def supervise(
    wrapped: Wrapped, watch: Watch, *, stdout: Capture, stderr: Capture | None = None
) -> Exit:
    """Run a command to its end, or end it, and return how it ended.

    Whatever happens, when this returns or raises the whole tree is gone and both streams are
    drained into their captures.

    Args:
        wrapped: The command as a sandbox renders it.
        watch: When it is ended.
        stdout: Takes standard output.
        stderr: Takes standard error; by default its last 64 KiB are kept and dropped.
    """
    stderr = stderr if stderr is not None else Capture(1 << 15, 1 << 15)
    started_s = time.monotonic()
    try:
        running = Running(wrapped, stdout=stdout, stderr=stderr)
    except OSError as error:
        wrapped.cleanup()
        return _never_started(str(error), started_s)
    try:
        return _watch_to_end(running, wrapped, watch)
    finally:
        running.close()
        wrapped.cleanup()


def _watch_to_end(running: Running, wrapped: Wrapped, watch: Watch) -> Exit:
    delivered_s: list[float] = []
    if watch.is_finished is not None:
        is_finished = watch.is_finished

        def see(chunk: bytes) -> None:
            if is_finished(chunk) and not delivered_s:
                delivered_s.append(time.monotonic())

        running.on_stdout(see)
    running.feed(wrapped.stdin, close=True)
    survivors: tuple[int, ...] = ()
    try:
        reason = None
        while reason is None:
            reason, next_look_s = _reason_to_stop(running, watch, delivered_s)
            if reason is None:
                running.pump(next_look_s)
        ended_s = time.monotonic()
    finally:
        survivors = running.end(polite=watch.polite, grace_s=watch.grace_s)
        running.drain(DRAIN_S)
    return Exit(
        reason=reason,
        status=running.status,
        stdout_bytes=running.stdout.total_bytes,
        stderr_bytes=running.stderr.total_bytes,
        wall_time_s=ended_s - running.started_s,
        survivors=survivors,
        out_of_memory=wrapped.ran_out_of_memory(),
    )


def _reason_to_stop(
    running: Running, watch: Watch, delivered_s: list[float]
) -> tuple[Ended | None, float]:
    """Return why the process is over, or None and the seconds until it must be asked again."""
    if running.has_ended:
        return Ended.EXITED, 0.0
    now = time.monotonic()
    bounds = [(running.started_s + watch.total_s, Ended.DEADLINE)]
    if delivered_s:
        bounds.append((delivered_s[0] + watch.grace_s, Ended.FINISHED))
    if watch.startup_s is not None and running.last_output_s is None:
        bounds.append((running.started_s + watch.startup_s, Ended.STARTUP))
    if watch.idle_s is not None:
        last_s = running.last_output_s or running.started_s
        bounds.append((last_s + watch.idle_s, Ended.IDLE))
    if watch.cancelled.is_set():
        return Ended.CANCELLED, 0.0
    if watch.output_limit_bytes is not None and running.output_bytes > watch.output_limit_bytes:
        return Ended.OUTPUT, 0.0
    due_s, reason = min(bounds)
    return (reason, 0.0) if due_s <= now else (None, due_s - now)


def _never_started(detail: str, started_s: float) -> Exit:
    return Exit(
        reason=Ended.NOT_STARTED,
        status=None,
        stdout_bytes=0,
        stderr_bytes=0,
        wall_time_s=time.monotonic() - started_s,
        detail=detail,
    )


@dataclass(frozen=True, kw_only=True)
class _Report:
    """What the keeper said at its end."""

    status: int | None
    survivors: tuple[int, ...]


def _read_report(control: socket.socket) -> _Report:
    control.settimeout(1.0)
    said = b""
    with contextlib.suppress(OSError):
        while chunk := control.recv(4096):
            said += chunk
    word, _, rest = said.decode("ascii", "replace").strip().partition(" ")
    if word == "start":
        return _Report(status=127, survivors=())
    status, _, left = rest.partition(" ")
    code = os.waitstatus_to_exitcode(int(status)) if status else None
    survivors = tuple(int(pid) for pid in left.strip("[]").split(",") if pid.strip())
    return _Report(status=code, survivors=survivors)


@lru_cache(maxsize=1)
def _keeper_argv() -> tuple[str, ...]:
    return (str(base_python()), "-I", "-S", "-B", str(Path(keeper.__file__)))


def _ignore(_chunk: bytes) -> None:
    """See nothing."""


def _open_exit_fd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends, where there is one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _inside(sandbox_pid: int) -> list[psutil.Process]:
    """Return the processes inside a namespace sandbox, its own two left out."""
    try:
        inits = psutil.Process(sandbox_pid).children()
        return [process for init in inits for process in init.children(recursive=True)]
    except psutil.Error:
        return []


def _kill_namespace(sandbox_pid: int) -> None:
    """Kill the first process of a namespace: the kernel then ends all others before it is gone."""
    try:
        inits = psutil.Process(sandbox_pid).children()
    except psutil.Error:
        inits = []
    for init in inits:
        with contextlib.suppress(psutil.Error):
            init.kill()
    if not inits:
        with contextlib.suppress(OSError):
            os.kill(sandbox_pid, signal.SIGKILL)
