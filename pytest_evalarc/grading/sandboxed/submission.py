"""The fixture `submission`: a child process that shares nothing with the check."""

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

ANSWER_BYTES = 8 * 1024 * 1024


class Raised(AssertionError):  # noqa: N818 - what it says is what happened.
    """A function of the submission raised.

    Attributes:
        type: Name of the exception's class.
        message: Its text.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.type = kind
        self.message = message


class NoAnswer(AssertionError):  # noqa: N818 - what it says is what happened.
    """The submission's process ended, or was ended, without an answer."""


class Submission:
    """Runs functions of the submission, each call in a fresh process; only JSON comes back.

    Attributes:
        scratch: An empty writable folder, shared by all calls of this check.
    """

    Raised = Raised

    def __init__(self, roots: list[str], program: str) -> None:
        """Stand for the submission whose modules lie in `roots`; `program` makes the calls."""
        self._roots = roots
        self._program = program
        self.scratch = Path(tempfile.mkdtemp(prefix="scratch-"))
        self.calls = 0
        self.answers = 0

    def call(
        self, target: str, /, *args: object, timeout_s: float = 10.0, **kwargs: object
    ) -> object:
        """Return the JSON value that a function of the submission gives.

        Args:
            target: `module:function`, or `module:Class.method` for what needs no instance.
            args: Positional arguments, JSON values.
            timeout_s: Wall-clock seconds for the whole process.
            kwargs: Keyword arguments, JSON values.

        Raises:
            Submission.Raised: The function raised, or gave something that is no JSON value.
            NoAnswer: The process crashed, left early, took too long or said too much.
        """
        self.calls += 1
        request = {
            "roots": self._roots,
            "target": target,
            "args": list(args),
            "kwargs": kwargs,
        }
        answer = _parsed(target, self._answer(target, json.dumps(request), timeout_s))
        raised = answer.get("raised")
        if raised is None or answer["stage"] != "import":
            self.answers += 1
        if raised is not None:
            raise Raised(raised["type"], raised["message"])
        return answer["value"]

    def _answer(self, target: str, request: str, timeout_s: float) -> bytes:
        """Return the one line that the process gave; what it left running ends with it."""
        # Files rather than pipes: a background process that keeps one open holds nobody up.
        with _scratch_file() as asked, _scratch_file() as said:
            asked.write(request.encode("ascii"))
            asked.seek(0)
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", self._program],
                stdin=asked,
                stdout=said,
                cwd=self.scratch,
                env={**os.environ, "HOME": str(self.scratch), "TMPDIR": str(self.scratch)},
                start_new_session=True,
            )
            in_time = _ends_within(process, timeout_s)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not in_time:
                raise NoAnswer(f"{target} gave no answer within {timeout_s} s")
            said.seek(0)
            line = said.read(ANSWER_BYTES + 1)
            if process.returncode != 0 or not _is_one_line(line):
                raise NoAnswer(f"{target} gave not one answer (exit {process.returncode})")
            return line


def _scratch_file() -> Any:
    return tempfile.TemporaryFile(buffering=0)


def _ends_within(process: "subprocess.Popen[bytes]", timeout_s: float) -> bool:
    """Wait for a process without collecting it, so that its group's id stays its own."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout_s)
        return process.returncode is not None
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def _is_one_line(said: bytes) -> bool:
    return len(said) <= ANSWER_BYTES and said.endswith(b"\n") and said.count(b"\n") == 1


def _parsed(target: str, line: bytes) -> dict[str, Any]:
    """Return an answer; whoever wrote it may have been anybody in that process."""
    try:
        answer = json.loads(
            line.decode("ascii"),
            object_pairs_hook=_unique,
            parse_constant=_refuse,
            parse_float=_finite,
        )
    except (ValueError, RecursionError):
        raise NoAnswer(f"{target} gave an answer that is no strict JSON") from None
    if not isinstance(answer, dict) or not (answer.keys() == {"value"} or _is_raised(answer)):
        raise NoAnswer(f"{target} gave an answer of the wrong shape")
    return answer


def _is_raised(answer: dict[str, Any]) -> bool:
    raised = answer.get("raised")
    return (
        answer.keys() == {"raised", "stage"}
        and isinstance(raised, dict)
        and raised.keys() == {"type", "message"}
        and all(isinstance(text, str) for text in raised.values())
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is there twice")
    return members


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON number")


def _finite(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        raise ValueError(f"{token} is not finite")
    return value
