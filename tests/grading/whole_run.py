"""What a check reports whose one test has run to its end and passed."""

from __future__ import annotations

from typing import Any

from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.model.task import Check

NONCE = "0123456789abcdef"
EXIT = Exit(reason=Ended.EXITED, status=0, stdout_bytes=400, stderr_bytes=10, wall_time_s=0.25)
CHECK = Check(id="persists", dimensions=("durability",), deadline_s=5)

READY = {"kind": "ready"}
COLLECTED = {"kind": "collected", "ids": ["test_it"]}
OUTCOME = {
    "kind": "outcome",
    "id": "test_it",
    "outcome": "passed",
    "when": "call",
    "answered": True,
    "text": "",
}
END = {"kind": "end", "ran": 1, "exitstatus": 0, "changed": []}
WHOLE: tuple[dict[str, Any], ...] = (READY, COLLECTED, OUTCOME, END)
