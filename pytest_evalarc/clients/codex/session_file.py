"""Tokens of a session that was ended before it could tell, from the file that it kept.

The file lies in the trial's home, where the agent can write: it is read bounded, no link is
followed, and whatever stands there can at most leave the tokens unknown, or wrong.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, ValidationError

from pytest_evalarc.clients.codex.events import TurnUsage
from pytest_evalarc.clients.codex.reader import usage_of
from pytest_evalarc.clients.lines import decode_event
from pytest_evalarc.files.folder import READ, Folder
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.transcript import Usage

TAIL_BYTES = 8 << 20
"""How much of the end of the file is looked at: the tokens are told after each answer."""
MOST_NAMES = 1000
"""In each folder that is looked through."""

_THREAD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DATE = re.compile(r"\d{2}|\d{4}")
_DATE_PARTS = 3
"""Year, month and day, each a folder in the one before."""


class _Info(Model):
    model_config = ConfigDict(extra="ignore", strict=True)

    total_token_usage: TurnUsage


class _Payload(Model):
    model_config = ConfigDict(extra="ignore", strict=True)

    type: Literal["token_count"]
    info: _Info


class _Entry(Model):
    model_config = ConfigDict(extra="ignore", strict=True)

    type: Literal["event_msg"]
    payload: _Payload


def session_usage(home: Path, thread: str) -> Usage | None:
    """Return the tokens of a session so far; None if unknown.

    Args:
        home: The session's home folder; nothing writes to it any more.
        thread: The client's own id of the session.
    """
    if not _THREAD.fullmatch(thread):
        return None
    try:
        with Folder.at(home) as root, root.descend((".codex", "sessions")) as sessions:
            return next(_told(sessions, f"-{thread}.jsonl", _DATE_PARTS), None)
    except OSError:
        return None


def _told(folder: Folder, ending: str, levels: int) -> Iterator[Usage]:
    """Yield what each file below a folder tells whose name ends so."""
    for name, status in islice(folder.scan(), MOST_NAMES):
        if levels and stat.S_ISDIR(status.st_mode) and _DATE.fullmatch(name):
            with folder.child(name) as inner:
                yield from _told(inner, ending, levels - 1)
        elif not levels and name.startswith("rollout-") and name.endswith(ending):
            found = _last_in(_tail(folder, name))
            if found is not None:
                yield found


def _tail(folder: Folder, name: str) -> bytes:
    """Return the end of a regular file; of anything else nothing."""
    with os.fdopen(folder.open(name, READ), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return b""
        file.seek(max(0, status.st_size - TAIL_BYTES))
        return file.read(TAIL_BYTES)


def _last_in(data: bytes) -> Usage | None:
    for line in reversed(data.split(b"\n")):
        # The other lines hold whole prompts: they are not worth their decoding.
        if b'"token_count"' not in line:
            continue
        try:
            entry = _Entry.model_validate(decode_event(line))
        except ValidationError:
            continue
        return usage_of(entry.payload.info.total_token_usage)
    return None
