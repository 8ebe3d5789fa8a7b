"""How a transcript shows a skill: loaded, attempted, not observed, or unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.transcript import Load, ToolCall, Transcript

UNEXPLAINED = -1
"""The place of a change that no call of the transcript explains: before every call."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A skill's load, and the call that shows it."""

    load: Load
    call: int | None = None
    """0-based place of the first call that shows it; None when no call does."""
    seen: str
    """The observation as a sentence."""


def observe_load(transcript: Transcript, *, skill: str, skill_file: str) -> Observation:
    """Return how a transcript shows the load of one skill.

    A load is a successful call of a skill tool with its name, or a successful read of its
    installed SKILL.md. A command that names that file may have printed it or not: unless a
    client's adapter recognised it as a read, the load is unknown. So is everything but a load
    when the transcript was not interpreted whole.

    Args:
        transcript: The session.
        skill: The skill's name.
        skill_file: Its installed SKILL.md, as a POSIX path below the project.
    """
    loads = list(_loads(transcript, skill, skill_file))
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
        if call.kind in ("command", "other") and _names_file(call.target, skill_file):
            return _seen(Load.UNKNOWN, place, call, "names its SKILL.md and may have printed it")
    for place, call in loads:
        return _seen(Load.ATTEMPTED, place, call, "failed")
    seen = f"no call of the wholly interpreted transcript loads {skill}"
    return Observation(load=Load.NOT_OBSERVED, seen=seen)


def first_alteration(transcript: Transcript, *, folder: str, is_changed: bool) -> int | None:
    """Return the place of the first call after which a skill may not be the plugin's any more.

    Args:
        transcript: The session.
        folder: The installed skill's folder, as a POSIX path below the project.
        is_changed: Whether the session left the skill otherwise than it found it.

    Returns:
        0-based place of the first edit in the folder, undone or not; without one, that of the
        first call that could have changed what did change, or `UNEXPLAINED`. None when nothing
        speaks of a change.
    """
    for place, call in enumerate(transcript.tool_calls):
        if call.kind == "edit" and call.is_error is not True and _touches(call.target, folder):
            return place
    if not is_changed:
        return None
    calls = enumerate(transcript.tool_calls)
    return next((place for place, call in calls if call.kind in ("command", "other")), UNEXPLAINED)


def _loads(transcript: Transcript, skill: str, skill_file: str) -> Iterator[tuple[int, ToolCall]]:
    for place, call in enumerate(transcript.tool_calls):
        if (call.kind, call.target) in (("skill", skill), ("read", skill_file)):
            yield place, call


def _seen(load: Load, place: int, call: ToolCall, what: str) -> Observation:
    shown = printable(f"{call.name} {call.target}", limit=200)
    return Observation(load=load, call=place, seen=f"tool call {place + 1} ({shown}) {what}")


def _names_file(command: str, skill_file: str) -> bool:
    folder, _, name = skill_file.rpartition("/")
    return folder in command and name in command


def _touches(target: str, folder: str) -> bool:
    return f"{target}/".startswith(f"{folder}/") or folder.startswith(f"{target}/")
