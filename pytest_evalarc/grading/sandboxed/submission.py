"""The fixture `submission`: a child process that shares nothing with the check."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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

    def __init__(self, project: str, program: str) -> None:
        """Stand for the submission in a project folder; `program` makes the calls."""
        self._project = project
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
            "project": self._project,
            "target": target,
            "args": list(args),
            "kwargs": kwargs,
        }
        answer = self._answer(target, json.dumps(request), timeout_s)
        raised = answer.get("raised")
        if raised is None or answer.get("stage") != "import":
            self.answers += 1
        if raised is not None:
            raise Raised(str(raised["type"]), str(raised["message"]))
        return answer["value"]

    def _answer(self, target: str, request: str, timeout_s: float) -> dict[str, Any]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", self._program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.scratch,
            env={**os.environ, "HOME": str(self.scratch), "TMPDIR": str(self.scratch)},
            start_new_session=True,
        )
        try:
            said, complaint = process.communicate(request.encode(), timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise NoAnswer(f"{target} gave no answer within {timeout_s} s") from None
        if process.returncode != 0 or said.count(b"\n") != 1 or len(said) > ANSWER_BYTES:
            reason = complaint.decode("utf-8", "replace").strip()[-300:]
            raise NoAnswer(f"{target} gave no answer (exit {process.returncode}): {reason}")
        try:
            answer = json.loads(said)
        except ValueError:
            raise NoAnswer(f"{target} gave an answer that is no JSON") from None
        if not isinstance(answer, dict) or not ("value" in answer or "raised" in answer):
            raise NoAnswer(f"{target} gave an answer of the wrong shape")
        return answer
