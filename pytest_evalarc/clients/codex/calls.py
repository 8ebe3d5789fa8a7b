"""Calls of tools by `codex`: what each item of a session does, and how it went."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_evalarc.clients.codex.events import (
    CollabToolCall,
    CommandExecution,
    Doing,
    FileChange,
    McpToolCall,
    WebSearch,
)
from pytest_evalarc.clients.codex.shell import (
    hides_a_skill,
    printed_files,
    script_of,
    takes_commands,
)
from pytest_evalarc.clients.stream import relative_target
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.transcript import ToolCall

Kind: TypeAlias = Literal["read", "edit", "command", "other"]

_SIGNALLED = 128
"""Exit statuses from here on tell of a signal: what was printed before it, nobody knows."""


class Calls:
    """All calls of one session, in the order in which they were started."""

    def __init__(self) -> None:
        self._items: dict[str, Doing] = {}
        self._over: set[str] = set()

    def start(self, item: Doing) -> bool:
        """Take an item that begins; return whether no other one has its id."""
        return self._items.setdefault(item.id, item) is item

    def go_on(self, item: Doing) -> bool:
        """Take an item that goes on; return whether it is one that was started, and is not over."""
        started = self._items.get(item.id)
        return started is not None and item.id not in self._over and _is_same(started, item)

    def end(self, item: Doing) -> bool:
        """Take an item that is over; return whether it may be, and says how it went."""
        if not self.go_on(item) or not _is_decided(item):
            return False
        self._items[item.id] = item
        self._over.add(item.id)
        return True

    @property
    def hide(self) -> bool:
        """Whether one of them may have loaded a skill that nobody can name."""
        return any(
            isinstance(item, CommandExecution) and _hides_a_skill(item)
            for item in self._items.values()
        )

    def made(self, *, project: Path) -> dict[str, tuple[ToolCall, ...]]:
        """Return the calls that each item is, by its id, in their order.

        Args:
            project: The session's folder.
        """
        folders = tuple(dict.fromkeys((str(project), os.path.realpath(project))))
        return {id: _calls(item, folders) for id, item in self._items.items()}


def _calls(item: Doing, folders: tuple[str, ...]) -> tuple[ToolCall, ...]:
    """Return the calls that an item is: one for each file that it reads or changes."""
    match item:
        case CommandExecution():
            files = _files_read(item)
            targets = [_named(path, folders) for path in files] or [script_of(item.command)]
            kind: Kind = "read" if files else "command"
            each: list[JsonObject] = [{"command": item.command}] * len(targets)
        case FileChange():
            targets = [_named(change.path, folders) for change in item.changes]
            kind, each = "edit", [{"kind": change.kind} for change in item.changes]
        case McpToolCall():
            spelled = json.dumps(item.arguments, ensure_ascii=False)
            targets, kind = [f"{item.server}/{item.tool} {spelled}"], "other"
            each = [item.arguments if isinstance(item.arguments, dict) else {}]
        case CollabToolCall():
            targets, kind, each = [item.tool], "other", [{"prompt": item.prompt}]
        case WebSearch():
            targets, kind, each = [item.query], "other", [{}]
    return tuple(
        ToolCall(
            id=f"{item.id}.{place}" if place else item.id,
            kind=kind,
            name=item.type,
            target=target,
            result=_result(item),
            is_error=_is_error(item),
            arguments=arguments,
        )
        for place, (target, arguments) in enumerate(zip(targets, each, strict=True))
    )


def _files_read(item: CommandExecution) -> tuple[str, ...]:
    """Return the files that a command read, or failed to; none if it is not certain which.

    One that printed nothing may have been asked for lines that are not there. Of several files
    that a failed command names, those before the first that is not there were printed.
    """
    files = printed_files(item.command)
    match item.status:
        case "completed":
            return files if item.aggregated_output else ()
        case "failed":
            is_told = len(files) == 1 and (item.exit_code or 0) < _SIGNALLED
            return files if is_told else ()
        case _:
            return files


def _hides_a_skill(item: CommandExecution) -> bool:
    if item.status == "in_progress" and takes_commands(item.command):
        # What it was told to do is not seen, and neither is what it printed.
        return True
    return not _files_read(item) and hides_a_skill(item.command, item.aggregated_output)


def _named(path: str, folders: tuple[str, ...]) -> str:
    """Return a path as it is called below the project, whichever name of that is used."""
    named = [relative_target(path, folder) for folder in folders]
    return next((name for name in named if not name.startswith("/")), named[0])


def _is_same(one: Doing, other: Doing) -> bool:
    """Whether two items with one id are the same call."""
    return one.type == other.type and _asked(one) == _asked(other)


def _asked(item: Doing) -> object:
    match item:
        case CommandExecution():
            return item.command
        case FileChange():
            return sorted((change.path, change.kind) for change in item.changes)
        case McpToolCall():
            return item.server, item.tool, item.arguments
        case CollabToolCall():
            return item.tool, item.prompt
        case WebSearch():
            # What is searched for may be told at its end alone.
            return None


def _is_decided(item: Doing) -> bool:
    """Whether an item that is over says how it went, in one way."""
    match item:
        case CommandExecution(status="completed" | "failed"):
            return (item.status == "completed") == (item.exit_code == 0)
        case WebSearch():
            return True
        case _:
            return item.status != "in_progress"


def _is_error(item: Doing) -> bool | None:
    """Return whether a call failed or was denied; None when its end was not seen."""
    if isinstance(item, WebSearch) or item.status == "in_progress":
        return None
    return item.status != "completed"


def _result(item: Doing) -> str | None:
    """Return what came back, as far as it is told; None when the end was not seen."""
    if _is_error(item) is None:
        return None
    match item:
        case CommandExecution():
            return item.aggregated_output
        case McpToolCall():
            parts = item.result.content if item.result is not None else []
            words = [part.text if part.text is not None else f"[{part.type}]" for part in parts]
            return "\n".join([*words, *([item.error.message] if item.error is not None else [])])
        case _:
            return ""
