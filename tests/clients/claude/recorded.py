"""Streams of real sessions, as two versions of the client printed them.

Each is named by version and scenario. Folders are rewritten; the model was a scripted one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_evalarc.clients.claude.reader import Reader
from pytest_evalarc.clients.lines import read_into
from pytest_evalarc.model.transcript import Transcript

FOLDER = Path(__file__).parent / "transcripts"
VERSIONS = ("2.1.197", "2.1.332")

NAMES = tuple(
    sorted(path.stem for path in FOLDER.glob("*.jsonl") if not path.stem.endswith(".session"))
)
"""Every recorded stream, as `2.1.332.edit`."""


def data(name: str) -> bytes:
    return (FOLDER / f"{name}.jsonl").read_bytes()


def lines(name: str) -> list[bytes]:
    return data(name).splitlines(keepends=True)


def events(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(name)]


def stream(*events: dict[str, Any] | bytes) -> bytes:
    dumped = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(line.rstrip(b"\n") + b"\n" for line in dumped)


def read(folder: Path, content: bytes) -> Transcript:
    path = folder / "stream"
    path.write_bytes(content)
    return read_into(Reader(), path, true_bytes=len(content)).transcript()


# Events as the client writes them, no more in them than is read.


def init(**more: Any) -> dict[str, Any]:
    known = {"cwd": "/run/project", "session_id": "00000000-0000-4000-8000-000000000000"}
    return {"type": "system", "subtype": "init", **known, **more}


def say(*content: dict[str, Any], parent: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "model": "claude-x", "content": list(content)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, **more}


def use(name: str, id: str = "t1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tell(content: Any, parent: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "parent_tool_use_id": parent, **more}


def answer(id: str = "t1", content: Any = "ok", **more: Any) -> dict[str, Any]:
    return tell([{"type": "tool_result", "tool_use_id": id, "content": content, **more}])


def result(**more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", **more}


def system(subtype: str, **more: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **more}
