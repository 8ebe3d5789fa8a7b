"""How a transcript shows a skill: loaded, attempted, not observed, or unknown."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.transcript import Load, ToolCall, Transcript

UNEXPLAINED = -1
"""The place of a change that no call of the transcript explains: before every call."""

_OPEN_PATH = re.compile(r"[*?\[{$`]\S{0,300}SKILL\.md|SKILL\.md\S{0,3}[*?]|-exec|xargs")
"""What lets a command that names SKILL.md print one whose folder its text does not spell."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """One skill, by all that a session may call it."""

    skill: str
    names: frozenset[str]
    """What a skill tool may be given, without a slash before it: `tidy`, `house:tidy`."""
    folders: tuple[str, ...]
    """Where its folder may be: POSIX paths below the project, or absolute ones outside."""
    project: str = ""
    """The project's absolute path; empty when no call names it."""

    @classmethod
    def at(cls, skill: str, folder: str, *, project: str = "") -> Known:
        """Return a skill that goes by its own name and lies in one folder."""
        return cls(skill=skill, names=frozenset({skill}), folders=(folder,), project=project)

    @cached_property
    def files(self) -> frozenset[str]:
        """Its SKILL.md, at each place where it may be."""
        return frozenset(f"{folder}/SKILL.md" for folder in self.folders)

    def is_named_by(self, call: ToolCall) -> bool:
        """Whether a call is one that loads it."""
        if call.kind == "skill":
            return call.target.strip().removeprefix("/") in self.names
        return call.kind == "read" and self.path(call.target) in self.files

    def is_mentioned_by(self, call: ToolCall) -> bool:
        """Whether a call may have printed its SKILL.md, for all that its text tells."""
        if call.kind not in ("command", "other") or "SKILL.md" not in call.target:
            return False
        names = (posixpath.basename(folder) for folder in self.folders)
        return bool(_OPEN_PATH.search(call.target)) or any(
            spells(call.target, name) for name in names
        )

    def is_edited_by(self, call: ToolCall) -> bool:
        """Whether a call may have changed its folder, or a folder around it."""
        if call.kind != "edit" or call.is_error is True:
            return False
        target = self.path(call.target)
        return any(
            f"{target}/".startswith(f"{folder}/") or folder.startswith(f"{target}/")
            for folder in self.folders
        )

    def path(self, target: str) -> str:
        """Return a call's path as folders are written: below the project, else absolute."""
        path = os.path.normpath(target)
        if self.project and path.startswith(f"{self.project}/"):
            return path[len(self.project) + 1 :]
        return path


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A skill's load, and the call that shows it."""

    load: Load
    call: int | None = None
    """0-based place of the first call that shows it; None when no call does."""
    seen: str
    """The observation as a sentence."""


def observe_load(transcript: Transcript, known: Known) -> Observation:
    """Return how a transcript shows the load of one skill.

    A load is a successful call of a skill tool with one of its names, or a successful read of
    its SKILL.md, by whichever agent of the session. A command that names that file may have
    printed it or not: unless a client's adapter recognised it as a read, the load is unknown. So
    is everything but a load when the transcript was not interpreted whole.

    Args:
        transcript: The session.
        known: The skill.
    """
    skill = known.skill
    loads = list(_loads(transcript, known))
    for place, call in loads:
        if call.is_error is False:
            return _seen(Load.LOADED, place, call, "succeeded")
    if not transcript.interpreted:
        seen = f"no load of {skill} was seen in a transcript that was not interpreted whole"
        return Observation(load=Load.UNKNOWN, seen=seen)
    for place, call in loads:
        if call.is_error is None:
            return _seen(Load.UNKNOWN, place, call, "has no result")
    for place, call in enumerate(transcript.tool_calls):
        if known.is_mentioned_by(call):
            return _seen(Load.UNKNOWN, place, call, "names its SKILL.md and may have printed it")
    for place, call in loads:
        return _seen(Load.ATTEMPTED, place, call, "failed")
    seen = f"no call of the wholly interpreted transcript loads {skill}"
    return Observation(load=Load.NOT_OBSERVED, seen=seen)


def first_alteration(transcript: Transcript, known: Known, *, is_changed: bool) -> int | None:
    """Return the place of the first call after which a skill may not be the plugin's any more.

    Args:
        transcript: The session.
        known: The skill.
        is_changed: Whether the session left the skill otherwise than it found it.

    Returns:
        0-based place of the first edit in its folder, undone or not; without one, that of the
        first call that could have changed what did change, or `UNEXPLAINED`. None when nothing
        speaks of a change.
    """
    for place, call in enumerate(transcript.tool_calls):
        if known.is_edited_by(call):
            return place
    if not is_changed:
        return None
    calls = enumerate(transcript.tool_calls)
    return next((place for place, call in calls if call.kind in ("command", "other")), UNEXPLAINED)


def told(place: int, call: ToolCall) -> str:
    """Return a call as sentences name it."""
    shown = printable(f"{call.name} {call.target}", limit=200)
    return f"tool call {place + 1} ({shown})"


def _loads(transcript: Transcript, known: Known) -> Iterator[tuple[int, ToolCall]]:
    for place, call in enumerate(transcript.tool_calls):
        if known.is_named_by(call):
            yield place, call


def _seen(load: Load, place: int, call: ToolCall, what: str) -> Observation:
    return Observation(load=load, call=place, seen=f"{told(place, call)} {what}")


def spells(command: str, name: str) -> bool:
    """Whether a command holds a name as a word of its own, and not as a part of another."""
    return re.search(rf"(?<![\w+-]){re.escape(name)}(?![\w+-])", command) is not None
