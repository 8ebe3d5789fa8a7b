"""Tokens of a session that was ended before it could tell, from the file that it kept.

The file lies in the trial's home, where the agent can write: it is read bounded, no link is
followed, and whatever stands there can at most leave the tokens unknown, or wrong.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import ConfigDict, ValidationError

from pytest_evalarc.clients.claude.events import BY_THE_CLIENT, Init, RequestUsage, summed
from pytest_evalarc.clients.lines import LINE_BYTES, decode_event
from pytest_evalarc.files.folder import READ, Folder
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.transcript import Usage

MOST_BYTES = 64 << 20
"""Of each file; what is longer is not read at all."""
MOST_AGENTS = 256
"""Sub-agents whose files are read."""

_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGENT = re.compile(r"agent-[0-9a-z-]{1,64}\.jsonl")


class _Message(Model):
    model_config = ConfigDict(extra="ignore", strict=True)

    id: str
    model: str
    usage: RequestUsage


class _Entry(Model):
    model_config = ConfigDict(extra="ignore", strict=True)

    type: Literal["assistant"]
    message: _Message


def session_usage(home: Path, start: Init) -> Usage | None:
    """Return the tokens of all answers of a session, sub-agents included; None if unknown.

    Args:
        home: The session's home folder; nothing writes to it any more.
        start: Names the session, and the folder that it worked in.
    """
    if not _SESSION.fullmatch(start.session_id):
        return None
    project = re.sub(r"[^A-Za-z0-9]", "-", start.cwd)
    answers: dict[str, RequestUsage] = {}
    try:
        with Folder.at(home) as root, root.descend((".claude", "projects", project)) as folder:
            _add(folder, f"{start.session_id}.jsonl", answers)
            _add_agents(folder, start.session_id, answers)
    except (OSError, ValueError):
        return None
    return Usage(**summed(list(answers.values()))) if answers else None


def _add_agents(folder: Folder, session: str, answers: dict[str, RequestUsage]) -> None:
    try:
        agents = folder.descend((session, "subagents"))
    except OSError:
        # A session without sub-agents has no such folder.
        return
    with agents:
        names = (name for name, _ in agents.scan() if _AGENT.fullmatch(name))
        for name in itertools.islice(names, MOST_AGENTS):
            _add(agents, name, answers)


def _add(folder: Folder, name: str, answers: dict[str, RequestUsage]) -> None:
    """Add the tokens of each answer in a file; the last line of an answer has all of them."""
    with os.fdopen(folder.open(name, READ), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise ValueError(f"{name} is no file that a session keeps")
        for message in _messages(file, status.st_size):
            answers[message.id] = message.usage


def _messages(file: BinaryIO, size: int) -> Iterator[_Message]:
    left = size
    while left > 0 and (line := file.readline(min(left, LINE_BYTES))):
        left -= len(line)
        try:
            message = _Entry.model_validate(decode_event(line)).message
        except ValidationError:
            # Prompts, answers of tools, and a last line that was cut off.
            continue
        if message.model != BY_THE_CLIENT:
            yield message
