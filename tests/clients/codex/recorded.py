"""Streams of real sessions, as version 0.171.0 of the client printed them.

Each is named by its scenario. Folders are rewritten; the model was a scripted one. Of two sessions
there is the file, too, that the client kept of them, with long texts cut.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from pytest_evalarc.clients.codex.reader import Reader
from pytest_evalarc.clients.lines import read_into
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.transcript import Transcript

FOLDER = Path(__file__).parent / "transcripts"
LAYOUT = RunLayout(root=Path("/eval/run"))
"""The run folder of all of them."""

NAMES = tuple(
    sorted(path.stem for path in FOLDER.glob("*.jsonl") if not path.stem.endswith(".rollout"))
)
"""Every recorded stream, as `edit`."""

THREAD = "01a22c02-5d2f-7df3-871e-ed88e9f734c9"


def data(name: str) -> bytes:
    return (FOLDER / f"{name}.jsonl").read_bytes()


def stream(*events: dict[str, Any] | bytes) -> bytes:
    dumped = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(line + b"\n" for line in dumped)


def read(folder: Path, content: bytes, *, true_bytes: int | None = None) -> Transcript:
    path = folder / "stream"
    path.write_bytes(content)
    reader = read_into(
        Reader(), path, true_bytes=len(content) if true_bytes is None else true_bytes
    )
    return reader.transcript(LAYOUT)


# Events as the client writes them.

START: dict[str, Any] = {"type": "thread.started", "thread_id": THREAD}
TURN: dict[str, Any] = {"type": "turn.started"}
END: dict[str, Any] = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 1000,
        "cached_input_tokens": 300,
        "cache_write_input_tokens": 200,
        "output_tokens": 50,
        "reasoning_output_tokens": 5,
    },
}


def session(*events: dict[str, Any] | bytes) -> bytes:
    """Return a whole session in which this happens."""
    return stream(START, TURN, *events, END)


def started(kind: str, id: str = "item_0", **facts: Any) -> dict[str, Any]:
    return {"type": "item.started", "item": {"id": id, "type": kind, **facts}}


def completed(kind: str, id: str = "item_0", **facts: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": id, "type": kind, **facts}}


def failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def failing(message: str) -> dict[str, Any]:
    return {"type": "error", "message": message}


def shell(script: str) -> str:
    """Return a script as the client tells that it was run."""
    return shlex.join(["/bin/bash", "-c", script])


def command(
    script: str, *, exit_code: int | None = 0, output: str = "printed\n", id: str = "item_0"
) -> list[dict[str, Any]]:
    """Return the events of a command; without an exit code it goes on."""
    facts = {"command": shell(script)}
    begun = {"aggregated_output": "", "exit_code": None, "status": "in_progress"}
    events = [started("command_execution", id, **facts, **begun)]
    if exit_code is not None:
        status = "failed" if exit_code else "completed"
        over = {"aggregated_output": output, "exit_code": exit_code, "status": status}
        events.append(completed("command_execution", id, **facts, **over))
    return events
