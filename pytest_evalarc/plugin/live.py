"""Running trials on a terminal, a line each, drawn again once a second while they run.

Whoever runs a trial announces it in a small file below the batch's working folder, and of what
other hosts run the controller does. It reads these files and the growing transcripts that are here;
no trial waits for it, and none is touched by it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_evalarc.clients.lines import decode_event
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.plugin.tables import counted, shortened
from pytest_evalarc.runs.folders import Folders

if TYPE_CHECKING:
    from pytest_evalarc.model.planned import PlannedTrial
    from pytest_evalarc.model.trial import PlanDoc

EVERY_S = 1.0
MOST_LINES = 8
MOST_BYTES = 4 * 2**20
"""Of a transcript at one look: a flood is followed later, and costs no more at once."""
MOST_LINE_BYTES = 2**20
"""A longer line is passed over."""
CODEX_CALLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")

_SAVE, _RESTORE, _DOWN, _CLEAR = "\x1b7", "\x1b8", "\x1b[B\r", "\x1b[J"
_SCROLL = "\x1bD"
"""One line down in the same column, which scrolls at the bottom of the screen."""


# Who runs a trial.


@contextlib.contextmanager
def announced(
    folders: Folders, plan: PlanDoc, entry: PlannedTrial, *, host: str | None = None
) -> Iterator[None]:
    """Announce a trial while it runs; what goes wrong with that is nobody's concern.

    Args:
        folders: Of the batch.
        plan: The plan of its task and client.
        entry: The trial.
        host: Where it runs; None for a trial of this machine, whose transcript can be followed.
    """
    path = _announcements(folders) / f"{plan.task.name}.{plan.client}.{entry.folder}"
    transcript = folders.trials(plan.task.name, plan.client) / entry.folder / "transcript.jsonl"
    facts = {
        "name": f"{plan.task.name} {plan.client} {entry.configuration} {entry.trial}"
        + (f" on {host}" if host else ""),
        "began": time.time(),
        "deadline_s": plan.deadlines_secs.trial,
        "transcript": None if host else str(transcript),
    }
    with contextlib.suppress(Exception):
        # It also looks at whose folder that is, before anything is written there.
        folders.open_work()
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, json.dumps(facts).encode())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _announcements(folders: Folders) -> Path:
    return folders.work / "live"


# Who looks on.


@dataclass(kw_only=True)
class Followed:
    """What a transcript shows so far: counts for a glance, and nothing that is kept."""

    calls: int = 0
    _read_bytes: int = 0
    _rest: bytes = b""
    _told: int = 0
    """Tokens of the whole session, as its client tells them."""
    _by_message: dict[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Tokens so far; 0 where the client tells them at its end alone."""
        return self._told or sum(self._by_message.values())

    def look(self, transcript: Path) -> None:
        """Take what was added to a transcript since the last look."""
        with contextlib.suppress(OSError), transcript.open("rb") as stream:
            stream.seek(self._read_bytes)
            self.take(stream.read(MOST_BYTES))

    def take(self, chunk: bytes) -> None:
        """Take the next bytes of a stream."""
        self._read_bytes += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            self._rest = b""
        for line in lines:
            # A client may print anything.
            with contextlib.suppress(ValueError, TypeError, AttributeError, KeyError):
                self._count(decode_event(line))

    def _count(self, event: Any) -> None:
        match event:
            case {"type": "tool_call"}:
                self.calls += 1
            case {"type": "usage"}:
                self._told = _total(event)
            case {"type": "assistant", "message": {"id": str(name), "content": list(content)}}:
                self.calls += sum(part.get("type") == "tool_use" for part in content)
                self._by_message[name] = _total(event["message"].get("usage") or {})
            case {"type": "item.started", "item": {"type": kind}} if kind in CODEX_CALLS:
                self.calls += 1
            case {"type": "turn.completed", "usage": dict(usage)}:
                self._told = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)


def _total(usage: dict[str, Any]) -> int:
    """Return all tokens of a usage; what is read from a cache is not part of the input here."""
    return sum(
        value for key, value in usage.items() if key.endswith("_tokens") and isinstance(value, int)
    )


def live_line(name: str, *, elapsed_s: float, deadline_s: float, followed: Followed | None) -> str:
    """Return the line of a running trial.

    Args:
        name: What the line begins with.
        elapsed_s: Since it began.
        deadline_s: What it may take.
        followed: What its transcript shows; None for one that is on another host.
    """
    parts = [f"{elapsed_s:.0f} of {deadline_s:.0f} s"]
    if followed is not None:
        parts.append(counted(followed.calls, "tool call"))
    if followed is not None and followed.tokens:
        parts.append(counted(followed.tokens, "token"))
    return f"{name}: {', '.join(parts)}"


class Live:
    """The lines below what pytest writes; a plugin that is there on a terminal alone."""

    def __init__(self, folder: Path, screen: TextIO) -> None:
        """Take the folder of announcements and the terminal."""
        self._folder = folder
        self._screen = screen
        self._followed: dict[str, Followed] = {}
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._drawn = 0
        self._thread = threading.Thread(target=self._run, name="evalarc-live", daemon=True)

    @classmethod
    def on_terminal(cls, config: pytest.Config, folders: Folders) -> Live | None:
        """Return live lines; None where nobody would see them, as in CI or in a file."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        is_seen = getattr(reporter, "isatty", False) and os.environ.get("TERM") != "dumb"
        if not is_seen or os.environ.get("CI") or os.environ.get("BUILD_NUMBER"):
            return None
        # Tests capture what is written to the terminal, and these lines are not theirs.
        with contextlib.suppress(OSError, ValueError):
            screen = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
            return cls(_announcements(folders), screen)
        return None

    def start(self) -> None:
        """Begin to draw."""
        self._thread.start()

    def stop(self) -> None:
        """Draw no more, and leave the terminal as it would be without."""
        self._ended.set()
        self._thread.join(timeout=10)
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._clear()
            self._screen.close()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, Any, Any]:
        """Make room for what pytest writes when an item starts."""
        return (yield from self._aside())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, Any, Any]:
        """Make room for what pytest writes of a report."""
        return (yield from self._aside())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, Any, Any]:
        """Make room for what pytest writes when an item ends."""
        return (yield from self._aside())

    def _aside(self) -> Generator[None, Any, Any]:
        with self._lock:
            with contextlib.suppress(OSError, ValueError):
                self._clear()
            return (yield)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            # A terminal that is gone, or a file that nobody can read, ends no run.
            with contextlib.suppress(Exception):
                lines = self.lines(now=time.time())
                with self._lock:
                    self._draw(lines)

    def lines(self, *, now: float) -> list[str]:
        """Return a line for each trial that is announced.

        Args:
            now: Seconds of the clock that announcements are made by.
        """
        lines: list[str] = []
        for path in sorted(self._folder.glob("[!.]*")):
            # The trial may end just now.
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                facts = json.loads(path.read_bytes())
                followed = self._look(path.name, facts["transcript"])
                line = live_line(
                    facts["name"],
                    elapsed_s=max(now - facts["began"], 0.0),
                    deadline_s=facts["deadline_s"],
                    followed=followed,
                )
                lines.append(line)
        return lines

    def _look(self, name: str, transcript: str | None) -> Followed | None:
        if transcript is None:
            return None
        followed = self._followed.setdefault(name, Followed())
        followed.look(Path(transcript))
        return followed

    def _draw(self, lines: list[str]) -> None:
        self._clear()
        if lines:
            self._screen.write(drawing(lines, width=shutil.get_terminal_size().columns))
            self._screen.flush()
        self._drawn = len(lines)

    def _clear(self) -> None:
        if self._drawn:
            self._screen.write(f"{_SAVE}{_DOWN}{_CLEAR}{_RESTORE}")
            self._screen.flush()
        self._drawn = 0


def drawing(lines: list[str], *, width: int) -> str:
    """Return what draws lines below the cursor and brings it back to where it was.

    Args:
        lines: The lines; beyond 8 the rest is counted in one.
        width: Columns of the terminal; longer lines end in an ellipsis.
    """
    shown = lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        shown.append(f"… and {len(lines) - MOST_LINES} more trials")
    room = _SCROLL * len(shown) + f"\x1b[{len(shown)}A"
    told = "".join(f"{_DOWN}{shortened(line, width - 1)}" for line in shown)
    return f"{room}{_SAVE}{told}{_RESTORE}"
