"""What a transcript shows of attempts to leave the trial."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.transcript import ToolCall, Transcript

PATH_TOOLS = ("read", "edit")


class Findings(NamedTuple):
    """Proven escapes, which void a trial, and failed attempts, which do not."""

    escapes: tuple[Cause, ...]
    attempts: tuple[str, ...]


def look_outside(
    transcript: Transcript, policy: Policy, project: Path, *, private_tmp: Path | None = None
) -> Findings:
    """Return the tool calls that touched, or tried to touch, what the policy denies.

    Only calls that name a path are judged; command text can hide any path, so an empty answer
    proves nothing. The sandbox is the boundary, and this the second look at it.

    Args:
        transcript: What the client did.
        policy: What the session was allowed.
        project: The folder that relative paths start from.
        private_tmp: A folder that the sandbox gave the session for itself. What is there and
            not on the host was made by the session, and proves no escape: otherwise a cheat
            buys an exclusion.
    """
    escapes: list[Cause] = []
    attempts: list[str] = []
    for call in transcript.tool_calls:
        path = _outside(call, policy, project)
        if path is None:
            continue
        what = printable(f"{call.name} of {path}", limit=400)
        if call.is_error is False and not _is_of_its_own(path, private_tmp):
            escapes.append(Cause(kind="escape", detail=f"a denied path was reached: {what}"))
        else:
            attempts.append(f"a denied path was tried: {what}")
    return Findings(tuple(escapes), tuple(attempts))


def _outside(call: ToolCall, policy: Policy, project: Path) -> Path | None:
    """Return the denied path that a call names, or None."""
    if call.kind not in PATH_TOOLS or "\0" in call.target:
        return None
    # POSIX lets two leading slashes stand for something else; Linux does not.
    path = Path("/" + os.path.normpath(project / call.target).lstrip("/"))
    allowed = _spellings((*policy.read, *policy.write))
    denied = _spellings(policy.deny_read)
    decided = next((p for p in (path, *path.parents) if p in allowed or p in denied), None)
    return path if decided in denied and decided not in allowed else None


def _spellings(paths: Iterable[Path]) -> set[Path]:
    """Return paths as they were named and as they really are."""
    named = set(paths)
    return named | {Path(os.path.realpath(path)) for path in named}


def _is_of_its_own(path: Path, private_tmp: Path | None) -> bool:
    return private_tmp in path.parents and not os.path.lexists(path)
