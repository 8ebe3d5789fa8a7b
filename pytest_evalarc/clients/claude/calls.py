"""Calls of tools by `claude`: what each one is, and what is loaded without any."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from pytest_evalarc.clients.claude.events import ToolResult, ToolUse
from pytest_evalarc.clients.stream import relative_target
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.transcript import ToolCall

Kind: TypeAlias = Literal["skill", "read", "edit", "command", "other"]

TOOLS: dict[str, tuple[Kind, str]] = {
    "Skill": ("skill", "skill"),
    "Read": ("read", "file_path"),
    "Write": ("edit", "file_path"),
    "Edit": ("edit", "file_path"),
    "MultiEdit": ("edit", "file_path"),
    "NotebookEdit": ("edit", "notebook_path"),
    "Bash": ("command", "command"),
    "Agent": ("other", "subagent_type"),
    "Task": ("other", "subagent_type"),
}
"""What each tool does, and the argument that says to what. Of any other tool, all arguments say."""

_CAT = re.compile(r"\s*cat\s+(?:--\s+)?(?P<path>[\w./@+,=][\w./@+,=-]*)\s*", re.ASCII)
"""A command that does nothing but print one file whose name no shell would change."""
_MOVES = re.compile(r"\b(?:cd|pushd|popd)\b")
_COMMAND = re.compile(r"<command-name>/?(?P<name>[^<\s]+)</command-name>")
_EXPANDED = ("<command-message>", "<command-name>")
"""How a prompt begins once the client took it for the name of a skill or command."""
_MENTION = re.compile(r'(?:^|\s)@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>\S+))')
_DELIVERED = re.compile(r"Base directory for this skill: (?P<folder>[^\n]+)\n")
_FAILED = "<tool_use_error>"


class _Made(NamedTuple):
    """A call as it was made."""

    use: ToolUse
    parent: str | None
    starts_in_project: bool
    """Whether no command before could have left the folder that relative paths start from."""


class Calls:
    """All calls of one session, in their order."""

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}
        self._answers: dict[str, ToolResult] = {}
        self._loads: list[tuple[int, ToolCall]] = []
        self._has_moved = False

    def call(self, use: ToolUse, *, parent: str | None) -> bool:
        """Take a call; return whether no other one has its id."""
        made = _Made(use, parent, not self._has_moved)
        self._has_moved = self._has_moved or bool(_MOVES.search(str(use.input.get("command"))))
        return self._made.setdefault(use.id, made) is made

    def answer(self, result: ToolResult) -> bool:
        """Take an answer; return whether it is the first one to a call that was made."""
        known = result.tool_use_id in self._made
        return known and self._answers.setdefault(result.tool_use_id, result) is result

    def prompted(self, text: str) -> None:
        """Take the prompt as the client took it: it can load skills without a call of a tool.

        One that begins with a skill's name behind a slash is replaced by the skill. Of a file
        that is mentioned behind an `@` the client does not tell whether it was read.
        """
        if text.startswith(_EXPANDED) and (command := _COMMAND.search(text)):
            self._load("skill", "prompt /", command["name"], is_error=False)
        for mention in _MENTION.finditer(text):
            path = (mention["quoted"] or mention["plain"]).partition("#")[0]
            if PurePosixPath(path.rstrip(".,;:!?)")).name == "SKILL.md":
                self._load("read", "prompt @", path.rstrip(".,;:!?)"), is_error=None)

    def added(self, text: str, *, parent: str | None) -> None:
        """Take what the client added by itself: the content of a skill, called for or not."""
        for delivery in _DELIVERED.finditer(text):
            name = PurePosixPath(delivery["folder"].replace("\\", "/")).name
            if not any(_names(made.use, name) for made in self._made.values()):
                self._load("skill", "added", name, is_error=False, parent=parent)

    def made(self, *, cwd: str | None) -> tuple[ToolCall, ...]:
        """Return all calls, and what was loaded without any, in their order.

        Args:
            cwd: The session's folder; None when it is unknown.
        """
        calls = [self._tool_call(made, cwd) for made in self._made.values()]
        for place, load in reversed(self._loads):
            target = relative_target(load.target, cwd) if load.kind == "read" else load.target
            calls.insert(place, load.model_copy(update={"target": target}))
        return tuple(calls)

    def _load(
        self,
        kind: Kind,
        name: str,
        target: str,
        *,
        is_error: bool | None,
        parent: str | None = None,
    ) -> None:
        load = ToolCall(
            id=f"{name}{len(self._loads) + 1}",
            kind=kind,
            name=name,
            target=target,
            is_error=is_error,
            parent=parent,
        )
        self._loads.append((len(self._made), load))

    def _tool_call(self, made: _Made, cwd: str | None) -> ToolCall:
        use, answer = made.use, self._answers.get(made.use.id)
        kind, target = _what(made)
        return ToolCall(
            id=use.id,
            kind=kind,
            name=use.name,
            target=relative_target(target, cwd) if kind in ("read", "edit") else target,
            result=None if answer is None else answer.text,
            is_error=None if answer is None else _is_error(answer),
            arguments=use.input,
            parent=made.parent,
        )


def _what(made: _Made) -> tuple[Kind, str]:
    """Return what a call does, and to what."""
    use = made.use
    kind, argument = TOOLS.get(use.name, ("other", ""))
    target = use.input.get(argument)
    if not isinstance(target, str):
        # A call that lacks what its tool takes does nothing, or nothing that is known here.
        return "other", _spelled(use.input)
    if kind == "skill":
        return kind, target.strip().removeprefix("/")
    if kind == "command" and (path := _printed(made, target)):
        return "read", path
    return kind, target


def _printed(made: _Made, command: str) -> str | None:
    """Return the file that a command prints whole, when that is all it does."""
    found = _CAT.fullmatch(command)
    if found is None or made.use.input.get("run_in_background"):
        return None
    path = found["path"]
    return path if path.startswith("/") or made.starts_in_project else None


def _is_error(answer: ToolResult) -> bool:
    return bool(answer.is_error) or answer.text.startswith(_FAILED)


def _names(use: ToolUse, skill: str) -> bool:
    """Whether a call is one that loads a skill of that name, a plugin's included."""
    given = use.input.get("skill")
    return use.name == "Skill" and isinstance(given, str) and _bare(given) == skill


def _bare(given: str) -> str:
    return given.strip().removeprefix("/").rpartition(":")[2]


def _spelled(arguments: JsonObject) -> str:
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False)
