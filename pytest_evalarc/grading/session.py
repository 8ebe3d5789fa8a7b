"""One process of a candidate, asked line by line: what it says is a reply, or its own fault."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import threading
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, Self

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError, InfrastructureError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.lab import STARTUP_S
from pytest_evalarc.grading.pack import CandidateError
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.clock import AWAKE
from pytest_evalarc.isolation.command import Command, Ended, Policy, Sandbox, Wrapped
from pytest_evalarc.isolation.supervise import DRAIN_S, Running
from pytest_evalarc.model.grading import ProcessRow

RESPONSE_S = 10.0
OUTPUT_BYTES = 1 << 20
STDERR_TAIL_BYTES = 2048
LOOK_S = 1e-3
"""Between two looks whether a request has been read, where no event tells of that."""
TOO_LATE = "it did not answer in time"


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What one session may take."""

    case_ends_s: float
    """When the case must be over, on the clock of deadlines; all of its sessions share it."""
    startup_s: float = STARTUP_S
    """From the start of the sandbox to the candidate's own program; ours to keep."""
    response_s: float = RESPONSE_S
    """From a request to its reply, and from the end of input to the exit."""
    output_bytes: int = OUTPUT_BYTES
    """Of both streams together."""
    request_bytes: int = 8192
    """Of a request line, newline included."""


class CandidateSession:
    """A sandboxed process of a candidate that speaks JSON lines; close it whatever happens.

    Only the thread that made it may use it.

    Args:
        sandbox: What the process is started in.
        command: The candidate's own; its `stdin` must be empty.
        policy: What the process may touch.
        bounds: How long it may take and how much it may say.
        cancelled: Set when the harness gives up; every wait then raises KeyboardInterrupt.

    Raises:
        InfrastructureError: The sandbox did not come as far as the candidate's program.
        CandidateError: The case had used up its time before this session.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        command: Command,
        policy: Policy,
        *,
        bounds: Bounds,
        cancelled: threading.Event | None = None,
    ) -> None:
        if AWAKE.now_s() >= bounds.case_ends_s:
            raise CandidateError("timeout", "its case was over before this session could start")
        self.replies = 0
        """Well-formed replies so far."""
        place = f"sandbox {sandbox.name}"
        self._where = f"{place}, image {sandbox.image}" if sandbox.image else place
        self._bounds = bounds
        self._cancelled = cancelled if cancelled is not None else threading.Event()
        self._transcript = hashlib.sha256()
        self._unread = bytearray()
        self._reason: str | None = None
        self._row: ProcessRow | None = None
        self._ran_out_of_memory = False
        ready = f"ready {secrets.token_hex(16)}"
        self._announcement = f"{ready}\n".encode()
        self._wrapped = sandbox.wrap(replace(command, ready=ready), policy)
        self._running = self._start(self._wrapped)
        try:
            self._await_program()
        except BaseException:
            self.close()
            raise

    def _start(self, wrapped: Wrapped) -> Running:
        try:
            running = Running(wrapped, stdout=Capture(0), stderr=Capture(0, STDERR_TAIL_BYTES))
        except OSError as error:
            wrapped.cleanup()
            raise InfrastructureError(self._where, f"it could not be started: {error}") from error
        running.on_stdout(self._see)
        self._look_s = math.inf if running.watch_reading() else LOOK_S
        return running

    def _await_program(self) -> None:
        """Wait until the sandbox stands; what fails up to here cannot be the candidate's doing."""
        until_s = self._running.now_s() + self._bounds.startup_s
        while b"\n" not in self._unread and not self._has_said_all():
            self._heed_cancel()
            left_s = until_s - self._running.now_s()
            if left_s <= 0:
                break
            self._running.pump(left_s)
        if not self._unread.startswith(self._announcement):
            said = printable(self._running.stderr.tail).strip() or "it said nothing"
            raise InfrastructureError(self._where, f"the candidate was not started: {said}")
        del self._unread[: len(self._announcement)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: JsonValue) -> JsonValue:
        """Send one request and return the reply.

        Raises:
            CandidateError: The reply is late, no strict JSON or too long, it came unasked, more
                than one came, or the process ended instead.
            InfrastructureError: The request is longer than the pack's requests may be.
        """
        line = self._encoded(request)
        self._note("request", request)
        self._deliver(line)
        reply = self._parsed(self._next_line())
        self.replies += 1
        self._note("reply", reply)
        return reply

    def _encoded(self, request: JsonValue) -> bytes:
        line = _REQUEST.encode(request).encode("ascii") + b"\n"
        if len(line) > self._bounds.request_bytes:
            problem = f"{len(line)} bytes, more than its {self._bounds.request_bytes}"
            raise InfrastructureError("request of a pack", problem)
        return line

    def _deliver(self, line: bytes) -> None:
        """Send a request, and its end only once the candidate has read all before that.

        What a candidate printed before it read is in its pipe when its reading is seen, so by
        then whatever was said blindly has come; nobody who reads lines can answer half of one.
        """
        until_s = self._until()
        self._running.feed(line[:-1], tells=True)
        while not self._unread and self._running.unread_input_bytes and not self._has_said_all():
            self._move(until_s, TOO_LATE, most_s=self._look_s)
        self._running.pump(0.0)
        if self._unread:
            raise CandidateError("unsolicited", "it printed something before it was asked")
        self._running.feed(line[-1:])

    def _next_line(self) -> bytes:
        until_s = self._until()
        while b"\n" not in self._unread:
            if not self._has_said_all():
                self._move(until_s, TOO_LATE)
            elif b"\n" not in self._unread:
                self._fail_without_reply()
        line, _, rest = bytes(self._unread).partition(b"\n")
        self._unread = bytearray(rest)
        if rest.strip():
            raise CandidateError("unsolicited", "it printed more than one line for one request")
        return line

    def _has_said_all(self) -> bool:
        """Whether the process has ended; what was still in its pipes has then been read."""
        # Asked once: one that ends between two questions would be left with what it last said.
        if not self._running.has_ended:
            return False
        self._running.drain(DRAIN_S)
        return True

    def _parsed(self, line: bytes) -> JsonValue:
        try:
            return loads(line, where="reply")
        except DocumentError as error:
            # The hint of a document speaks to whoever wrote a file, so it is left out.
            detail = printable(f"{error.where}: {error.problem}")
            raise CandidateError("protocol", detail) from error

    def _fail_without_reply(self) -> NoReturn:
        self.close()
        if self._ran_out_of_memory:
            raise CandidateError("out_of_memory", "it needed more memory than it may use")
        detail = f"it ended with status {self._running.status} before it answered"
        raise CandidateError("early_exit", detail)

    def end(self, how: Literal["eof", "kill"]) -> None:
        """End the process: `eof` closes its input and wants a clean exit, `kill` is SIGKILL.

        Raises:
            CandidateError: After `eof` it said more, did not exit, or exited with an error.
            InfrastructureError: Something of the process outlived its end.
        """
        self._note("end", how)
        if how == "eof":
            self._running.feed(b"", close=True)
            until_s = self._until()
            while not self._running.has_ended:
                self._move(until_s, "it did not exit when its input ended")
        self.close()
        if how == "eof":
            self._check_exit()

    def _check_exit(self) -> None:
        if self._running.output_bytes > self._output_limit:
            self._fail_output()
        if self._ran_out_of_memory:
            raise CandidateError("out_of_memory", "it needed more memory than it may use")
        if self._running.status != 0:
            detail = f"it exited with status {self._running.status} when its input ended"
            raise CandidateError("exit_status", detail)
        if self._unread.strip():
            raise CandidateError("unsolicited", "it printed more than it was asked for")

    def close(self) -> None:
        """End the process tree if it still lives, and give everything back; once is enough.

        Raises:
            InfrastructureError: Something of the process outlived its end.
        """
        if self._row is not None:
            return
        running = self._running
        reason = self._reason or (Ended.EXITED.value if running.has_ended else "killed")
        survivors: tuple[int, ...] = ()
        try:
            survivors = running.end()
            running.drain(DRAIN_S)
            self._ran_out_of_memory = self._wrapped.ran_out_of_memory(running.status)
        finally:
            self._row = ProcessRow(
                exit_code=running.status,
                reason=reason,
                output_bytes=max(0, running.output_bytes - len(self._announcement)),
                stderr_tail=printable(running.stderr.tail),
            )
            running.close()
            self._wrapped.cleanup()
        if survivors:
            raise InfrastructureError(self._where, f"processes {survivors} outlived their end")

    @property
    def row(self) -> ProcessRow:
        """How the process ended and how much it said; there once the session is closed."""
        if self._row is None:
            raise ValueError("the session is still open")
        return self._row

    @property
    def transcript_sha256(self) -> str:
        """Digest of all requests and replies so far, in canonical JSON, and of how it was ended."""
        return self._transcript.hexdigest()

    def _note(self, what: str, value: JsonValue) -> None:
        self._transcript.update(canonical({what: value}).encode("ascii") + b"\n")

    def _until(self) -> float:
        return min(self._running.now_s() + self._bounds.response_s, self._bounds.case_ends_s)

    def _move(self, until_s: float, complaint: str, *, most_s: float = math.inf) -> None:
        """Move bytes both ways once, unless the process has used up its time or its output.

        Args:
            until_s: When its time is over, on the clock of deadlines.
            complaint: What it then did not do.
            most_s: How long to wait for bytes at the most.
        """
        self._heed_cancel()
        if self._running.output_bytes > self._output_limit:
            self._fail_output()
        left_s = until_s - self._running.now_s()
        if left_s <= 0:
            self._reason = Ended.DEADLINE.value
            raise CandidateError("timeout", complaint)
        self._running.pump(min(left_s, most_s))

    @property
    def _output_limit(self) -> int:
        return self._bounds.output_bytes + len(self._announcement)

    def _fail_output(self) -> NoReturn:
        self._reason = Ended.OUTPUT.value
        limit = self._bounds.output_bytes
        raise CandidateError("output_limit", f"it printed more than the {limit} bytes it may")

    def _heed_cancel(self) -> None:
        if self._cancelled.is_set():
            raise KeyboardInterrupt

    def _see(self, chunk: bytes) -> None:
        if len(self._unread) <= self._output_limit:
            self._unread += chunk


_CANONICAL = json.JSONEncoder(sort_keys=True, allow_nan=False)
_REQUEST = json.JSONEncoder(allow_nan=False)
"""Made once, since making one takes longer than spelling a request."""


def canonical(value: JsonValue) -> str:
    """Return the one spelling of a JSON value: equal spellings are equal values.

    Keys are sorted and characters escaped to ASCII; `1`, `1.0` and `true` are three values, and
    `0.0` is not `-0.0`.
    """
    return _CANONICAL.encode(value)
