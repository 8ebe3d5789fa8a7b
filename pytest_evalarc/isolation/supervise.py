"""The one process supervisor: deadlines, both pipes drained, and nothing left when it returns."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.clock import AWAKE
from pytest_evalarc.isolation.command import Ended, Exit, Wrapped
from pytest_evalarc.isolation.interrupts import held_back
from pytest_evalarc.isolation.readiness import Readiness
from pytest_evalarc.isolation.tree import start_tree

CHUNK_BYTES = 1 << 16
POLL_S = 0.2
"""Longest pause between two looks at cancellation and deadlines."""
_INT_BYTES = 4
DRAIN_S = 2.0
"""How long a pipe may stay open after its tree has ended."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """When a process is ended, in seconds in which the harness ran; None is no bound."""

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
        self.stdout = stdout
        self.stderr = stderr
        self.started_s = AWAKE.now_s()
        self.last_output_s: float | None = None
        self._on_stdout: Callable[[bytes], None] = _ignore
        self._input = bytearray()
        self._closes_input = False
        self._watches_reading = False
        self._open_outputs = 0
        self._ready = Readiness()
        self._tree = start_tree(wrapped)
        self._process = self._tree.process
        try:
            self._watch()
        except BaseException:
            self.end()
            self.close()
            raise
        self._looked_s = AWAKE.monotonic()

    def _watch(self) -> None:
        for stream, capture in (
            (self._process.stdout, self.stdout),
            (self._process.stderr, self.stderr),
        ):
            if stream is None:  # pragma: no cover - both are pipes.
                continue
            output = stream.fileno()
            os.set_blocking(output, False)
            self._ready.watch_reading(output, partial(self._read_output, output, capture))
            self._open_outputs += 1
        if self._process.stdin is not None:
            self._stdin = self._process.stdin.fileno()
            os.set_blocking(self._stdin, False)
        self._exit_fd = _open_exit_fd(self._process.pid)
        if self._exit_fd is not None:
            self._ready.watch_reading(self._exit_fd, self._close_exit_fd)

    _stdin: int | None = None
    """None once it is closed."""
    _exit_fd: int | None = None

    @property
    def pid(self) -> int:
        """Process id of the outermost process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the outermost process has ended; its pipes may still hold bytes."""
        # As long as the last `pump` has not been told of it there is no need to ask.
        return self._exit_fd is None and self._tree.has_ended

    @property
    def output_bytes(self) -> int:
        """Bytes of both streams so far."""
        return self.stdout.total_bytes + self.stderr.total_bytes

    @property
    def unread_input_bytes(self) -> int:
        """Bytes fed to stdin that nobody has read yet, as far as the system can tell."""
        # Where there is no such call no sandbox starts either; the import must do all the same.
        import fcntl
        import termios

        held = b""
        if self._stdin is not None:
            with contextlib.suppress(OSError):
                held = fcntl.ioctl(self._stdin, termios.FIONREAD, bytes(_INT_BYTES))
        return len(self._input) + int.from_bytes(held, sys.byteorder)

    def watch_reading(self) -> bool:
        """Let `feed` be able to tell when all has been read; return whether that is possible.

        A pipe of a single page has room for more only when it is empty, and the system tells of
        room. Elsewhere who wants to know must ask again and again.
        """
        import fcntl
        import resource

        if self._stdin is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                page = resource.getpagesize()
                size = fcntl.fcntl(self._stdin, fcntl.F_SETPIPE_SZ, page)
                self._watches_reading = size == page
        return self._watches_reading

    def now_s(self) -> float:
        """Return the seconds of the clock of deadlines; ask between any two of `pump`."""
        self._looked_s = AWAKE.look(self._looked_s)
        return AWAKE.now_s()

    def on_stdout(self, see: Callable[[bytes], None]) -> None:
        """Show each further chunk of stdout to a function."""
        self._on_stdout = see

    def feed(self, data: bytes, *, close: bool = False, tells: bool = False) -> None:
        """Write bytes to stdin, and queue those for which there is no room yet.

        Args:
            data: What is written.
            close: Whether the stream ends after it.
            tells: Whether `pump` ends also when all of it has been read, as `watch_reading` lets
                it.
        """
        self._input += data
        self._closes_input = self._closes_input or close
        if self._stdin is None:
            return
        self._write_input()
        if tells and self._watches_reading and self._stdin is not None and not self._input:
            self._ready.watch_writing(self._stdin, self._write_input)

    def pump(self, timeout_s: float) -> None:
        """Move bytes both ways until something happened or the time is over."""
        self._ready.wait(min(timeout_s, POLL_S))
        self._tree.look()

    def _read_output(self, stream: int, capture: Capture) -> None:
        try:
            chunk = os.read(stream, CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._ready.forget(stream)
            self._open_outputs -= 1
            return
        self.last_output_s = self.now_s()
        capture.add(chunk)
        if capture is self.stdout:
            self._on_stdout(chunk)

    def _write_input(self) -> None:
        """Write what is queued as far as there is room, and watch for more room if it must."""
        stdin = self._stdin
        if stdin is None:
            return
        written = 0
        try:
            written = os.write(stdin, self._input[:CHUNK_BYTES]) if self._input else 0
        except BlockingIOError:
            pass
        except OSError:
            # Nobody reads any more: what is left over is the reader's loss.
            written = len(self._input)
            self._closes_input = True
        del self._input[:written]
        if self._input:
            self._ready.watch_writing(stdin, self._write_input)
        elif self._closes_input:
            self._close_input()
        else:
            self._ready.forget(stdin)

    def _close_input(self) -> None:
        if self._stdin is not None and self._process.stdin is not None:
            self._ready.forget(self._stdin)
            self._process.stdin.close()
            self._stdin = None

    def _close_exit_fd(self) -> None:
        if self._exit_fd is not None:
            self._ready.forget(self._exit_fd)
            os.close(self._exit_fd)
            self._exit_fd = None

    def drain(self, timeout_s: float) -> None:
        """Read what the pipes still hold, until they close or the time is over."""
        until = time.monotonic() + timeout_s
        while self._open_outputs and time.monotonic() < until:
            self.pump(until - time.monotonic())

    def end(self, *, polite: bool = False, grace_s: float = 2.0) -> tuple[int, ...]:
        """End the whole tree and wait for it; return process ids that survived.

        Args:
            polite: Whether the tree is asked first, and killed only when it does not end.
            grace_s: How long it may then take.
        """
        with held_back():
            if polite and not self.has_ended:
                self._ask_to_end(grace_s)
            return self._tree.end()

    def _ask_to_end(self, grace_s: float) -> None:
        self._tree.ask()
        until = time.monotonic() + grace_s
        # What it says at the end is read meanwhile: a full pipe would keep it from ending.
        while not self.has_ended and time.monotonic() < until:
            self.pump(until - time.monotonic())

    @property
    def status(self) -> int | None:
        """Exit status of the command, negative for a signal; known once `end` has returned."""
        return self._tree.status

    def close(self) -> None:
        """Close every descriptor that is still open."""
        self._close_exit_fd()
        self._tree.close()
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
    try:
        return _run(wrapped, watch, stdout, stderr)
    finally:
        with held_back():
            stdout.close()
            stderr.close()
            wrapped.cleanup()


def _run(wrapped: Wrapped, watch: Watch, stdout: Capture, stderr: Capture) -> Exit:
    started_s, stood_still_s = AWAKE.now_s(), AWAKE.stood_still_s
    try:
        running = Running(wrapped, stdout=stdout, stderr=stderr)
    except OSError as error:
        return _never_started(str(error), started_s)
    survivors: tuple[int, ...] = ()
    try:
        reason = _watch_to_end(running, wrapped, watch)
        ended_s = running.now_s()
    finally:
        with held_back():
            survivors = running.end(polite=watch.polite, grace_s=watch.grace_s)
            running.drain(DRAIN_S)
            running.close()
    return Exit(
        reason=reason,
        status=running.status,
        stdout_bytes=stdout.total_bytes,
        stderr_bytes=stderr.total_bytes,
        wall_time_s=ended_s - running.started_s,
        stood_still_s=AWAKE.stood_still_s - stood_still_s,
        survivors=survivors,
        out_of_memory=wrapped.ran_out_of_memory(running.status),
    )


def _watch_to_end(running: Running, wrapped: Wrapped, watch: Watch) -> Ended:
    """Move bytes until there is a reason to stop, and return it."""
    delivered_s: list[float] = []
    if watch.is_finished is not None:
        is_finished = watch.is_finished

        def see(chunk: bytes) -> None:
            if is_finished(chunk) and not delivered_s:
                delivered_s.append(running.now_s())

        running.on_stdout(see)
    running.feed(wrapped.stdin, close=True)
    while True:
        reason, next_look_s = _reason_to_stop(running, watch, delivered_s)
        if reason is not None:
            return reason
        running.pump(next_look_s)


def _reason_to_stop(
    running: Running, watch: Watch, delivered_s: list[float]
) -> tuple[Ended | None, float]:
    """Return why the process is over, or None and the seconds until it must be asked again."""
    if running.has_ended:
        return Ended.EXITED, 0.0
    now = running.now_s()
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
    if due_s > now:
        return None, due_s - now
    # A result that is there counts, whichever bound then ends the process.
    return (Ended.FINISHED if delivered_s else reason), 0.0


def _never_started(detail: str, started_s: float) -> Exit:
    return Exit(
        reason=Ended.NOT_STARTED,
        status=None,
        stdout_bytes=0,
        stderr_bytes=0,
        wall_time_s=AWAKE.now_s() - started_s,
        detail=detail,
    )


def _ignore(_chunk: bytes) -> None:
    """See nothing."""


def _open_exit_fd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends, where there is one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
