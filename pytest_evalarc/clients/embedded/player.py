"""Play one script in the working folder and report it as the stream `evalarc.stream.v1`.

This file runs alone, inside the sandbox: `python -I -S -B player.py`, with the project as its
working folder and the script as one JSON document on stdin. It imports little, so it starts fast.
"""

# Importing pathlib would lengthen the start of every session by a quarter.
# ruff: noqa: PTH101, PTH103, PTH106, PTH108, PTH109, PTH112, PTH113, PTH114, PTH116, PTH118
# ruff: noqa: PTH123, PTH211
from __future__ import annotations

import json
import os
import stat
import sys
from binascii import a2b_base64
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FORMAT = "evalarc.stream.v1"
CONTENT_BYTES = 65536
"""How much of a file a report repeats."""


class Refused(OSError):  # noqa: N818 - it reads as what happened to the path.
    """A path leaves the project."""


class Place:
    """A path below one folder, checked not to leave it.

    Args:
        project: The folder, as `os.path.realpath` gives it.
        path: The path below it, POSIX style.

    Raises:
        Refused: The path is absolute, is not in its shortest form, or passes through a
            symbolic link to somewhere else.
    """

    def __init__(self, project: str, path: str) -> None:
        parts = path.split("/")
        if "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise Refused("is not a plain path below the project")
        self._project = project
        self.folder = self._inside(os.path.realpath(os.path.join(project, *parts[:-1])))
        self.path = os.path.join(self.folder, parts[-1])

    def followed(self) -> str:
        """Return what the path leads to once its own symbolic link is followed."""
        return self._inside(os.path.realpath(self.path))

    def _inside(self, path: str) -> str:
        if path != self._project and not path.startswith(self._project + os.sep):
            raise Refused("leads out of the project")
        return path


def read(place: Place) -> str:
    """Return a regular file as text, cut with a note when it is long."""
    path = place.followed()
    if not stat.S_ISREG(os.stat(path).st_mode):
        # A pipe that nobody writes to would block an open for ever.
        raise Refused("is not a regular file")
    with open(path, "rb") as file:
        content = file.read(CONTENT_BYTES)
        dropped = os.fstat(file.fileno()).st_size - len(content)
    text = content.decode("utf-8", "backslashreplace")
    return f"{text}\n[{dropped} bytes dropped]" if dropped > 0 else text


def remove(place: Place) -> None:
    """Remove a file, a link, or a folder with all in it."""
    if os.path.isdir(place.path) and not os.path.islink(place.path):
        for folder, folders, files in os.walk(place.path, topdown=False):
            for name in files:
                os.unlink(os.path.join(folder, name))
            for name in folders:
                path = os.path.join(folder, name)
                (os.unlink if os.path.islink(path) else os.rmdir)(path)
        os.rmdir(place.path)
    else:
        os.unlink(place.path)


def make_room(place: Place) -> None:
    """Make the folders above a place, and take away what a write would follow or merge with."""
    os.makedirs(place.folder, exist_ok=True)
    if os.path.lexists(place.path):
        remove(place)


def write(place: Place, content: bytes, mode: int) -> None:
    """Put a file with exactly this content and these permission bits."""
    make_room(place)
    with open(place.path, "xb") as file:
        file.write(content)
    os.chmod(place.path, mode & 0o777)


def link(place: Place, target: str) -> None:
    """Put a symbolic link; where it leads is for the grader to judge."""
    make_room(place)
    os.symlink(target, place.path)


def skill_names(folder: str) -> list[str]:
    """Return the skills that the project offers, sorted."""
    if not os.path.isdir(folder):
        return []
    skills = os.listdir(folder)
    return sorted(name for name in skills if os.path.isfile(os.path.join(folder, name, "SKILL.md")))


class Session:
    """One played session: each action is done, told and its failure counted."""

    def __init__(self, project: str, say: Callable[[dict[str, Any]], None]) -> None:
        self._project = project
        self._say = say
        self._calls = 0
        self.failed_edits: list[str] = []

    def perform(
        self, kind: str, name: str, path: str, action: Callable[[Place], str | None]
    ) -> None:
        """Do one action on one path, and report call and result."""
        self._calls += 1
        call = f"call-{self._calls}"
        self._say({"type": "tool_call", "id": call, "kind": kind, "name": name, "target": path})
        try:
            content, is_error = action(Place(self._project, path)) or "", False
        except (OSError, ValueError) as error:
            content, is_error = f"{path}: {getattr(error, 'strerror', None) or error}", True
        if is_error and kind == "edit":
            self.failed_edits.append(content)
        self._say({"type": "tool_result", "id": call, "is_error": is_error, "content": content})

    def play(self, script: dict[str, Any]) -> None:
        """Read, then remove, then write, in the order of the script."""
        for path in script["reads"]:
            self.perform("read", "read", path, read)
        for path in script["removes"]:
            self.perform("edit", "remove", path, remove)
        for path, (content, mode) in script["writes"].items():
            put = partial(write, content=a2b_base64(content), mode=mode)
            self.perform("edit", "write", path, put)
        for path, target in script["links"].items():
            self.perform("edit", "link", path, partial(link, target=target))


def report(event: dict[str, Any]) -> None:
    """Print one event as one line of ASCII, so no locale can spoil it."""
    sys.stdout.buffer.write(json.dumps(event).encode("ascii") + b"\n")


def play_and_report(project: str, script: dict[str, Any]) -> None:
    """Play a script and tell each step; an edit that failed makes the session an error."""
    skills = skill_names(os.path.join(project, *script["skill_folder"].split("/")))
    report({"type": "start", "format": FORMAT, "cwd": project, "skills": skills})
    session = Session(project, report)
    session.play(script)
    detail = "; ".join(session.failed_edits)
    report({"type": "response", "text": detail or "The script was played to its end."})
    report({"type": "completion", "is_error": bool(detail), "detail": detail})


def play_recording(project: str, script: dict[str, Any]) -> None:
    """Play the edits unseen, then print the recorded stream as it is."""
    session = Session(project, lambda _event: None)
    session.play(script)
    if session.failed_edits:
        # Without the recorded completion event nobody takes this session for a finished one.
        sys.exit("; ".join(session.failed_edits))
    sys.stdout.buffer.write(a2b_base64(script["transcript"]))


def main() -> None:
    """Play the script on stdin in the working folder."""
    project = os.path.realpath(os.getcwd())
    script = json.loads(sys.stdin.buffer.read())
    play = play_and_report if script["transcript"] is None else play_recording
    play(project, script)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
