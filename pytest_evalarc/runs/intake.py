"""What other hosts ask of a batch and bring to it: this side's disk decides, and keeps.

A host without a share in this file system claims each document before it makes it. The claim
stands here as the same lock and the same mark that a trial of this host has, so whatever dies on
either side, a trial is started at most once, and what was cut off is counted.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.errors import EvalArcError, UsageError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.lock import GivenUp, locked
from pytest_evalarc.files.parcel import Arrival, Closing, Content, Opening, place
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.plain import NAME_PATTERN
from pytest_evalarc.runs.once import lock_of, mark_of
from pytest_evalarc.runs.slots import Waiting

RESULT = "result.json"
PLAN = "plan.json"
_NAME = re.compile(NAME_PATTERN)
_AT_ONCE = threading.Event()
_AT_ONCE.set()


class HostLost(Exception):  # noqa: N818 - it reads as what happened.
    """What a host was at did not come back; its text is the sentence that results keep."""


class Run(NamedTuple):
    """The answer to a claim: make it, and bring it."""


class Done(NamedTuple):
    """The answer to a claim of what is here already."""

    document: bytes


class Busy(NamedTuple):
    """The answer to a claim of what somebody else is at: ask again in a moment."""


class Queued(NamedTuple):
    """The answer to a claim of a trial whose turn has not come: ask again in a moment."""


class Skipped(NamedTuple):
    """The answer to a claim of a trial that may not start, and why."""

    reason: str


Answer = Run | Done | Busy | Queued | Skipped


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """What the intake needs of those who know what plans and trials are."""

    keep_plan: Callable[[Path, bytes], None]
    """Keeps the plan of a folder, or refuses one that the batch was not begun with."""
    line_up: Callable[[Path], Waiting]
    """Begins to wait for what the trial of a result may run with."""
    admit: Callable[[Path], str | None]
    """Returns why the trial of a result may not start; None when it may."""
    announced: Callable[[Path], contextlib.AbstractContextManager[None]]
    """Tells who looks on that the trial of a result runs, while it is held."""
    settle: Callable[[Path, BaseException | None], None]
    """Gives a result to a trial that was cut off, with the host's loss or None for a death here."""


@dataclass
class _Claim:
    held: contextlib.ExitStack
    arrival: Arrival | None = None


@dataclass(kw_only=True)
class Intake:
    """One host's claims on the results of a batch.

    Calls come in the order in which the host spoke; `lose` may come from another thread.
    """

    results: Path
    batch: str
    keeper: Keeper
    host: str
    _claims: dict[str, _Claim] = field(default_factory=dict)
    _waiting: dict[str, Waiting] = field(default_factory=dict)
    """What the host has asked for and may not run yet; it keeps its place between two askings."""
    _is_lost: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep_plan(self, name: str, document: bytes) -> None:
        """Keep the plan of what the host is about to run.

        Args:
            name: The path of plan.json below the results.
            document: Its content.

        Raises:
            EvalArcError: The batch began with another plan, or it cannot be kept.
        """
        path = self._path(name)
        if path.name != PLAN:
            raise self._no_place(name)
        self.keeper.keep_plan(path, document)

    def claim(self, name: str) -> Answer:
        """Return what the host shall do about a document.

        Args:
            name: The path below the results: a trial's result.json, or the row of a control.

        Raises:
            EvalArcError: There is no such place, or what is there cannot be read.
            OSError: The claim cannot be written down, as on a full disk.
        """
        path = self._path(name)
        with self._lock:
            if self._is_lost:
                return Busy()
            if path.exists():
                return Done(path.read_bytes())
            return self._claimed(name, path)

    def _claimed(self, name: str, path: Path) -> Answer:
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = mark_of(path)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(lock_of(path), given_up=_AT_ONCE))
            except GivenUp:
                return Busy()
            if path.exists():
                return Done(path.read_bytes())
            if path.name != RESULT or not mark.exists():
                if path.name == RESULT:
                    if not self._has_turn(name, path, stack):
                        return Queued()
                    # What the batch has used up is known once the turn has come.
                    if (reason := self.keeper.admit(path)) is not None:
                        return Skipped(reason)
                    write_atomic(mark, b"")
                    stack.enter_context(self.keeper.announced(path))
                self._claims[name] = _Claim(stack.pop_all())
                return Run()
        self.keeper.settle(path, None)
        return Done(path.read_bytes())

    def _has_turn(self, name: str, path: Path, slot: contextlib.ExitStack) -> bool:
        if name not in self._waiting:
            self._waiting[name] = self.keeper.line_up(path)
        if not self._waiting[name].is_served(slot):
            return False
        self._waiting.pop(name).close()
        return True

    def begin(self, name: str, opening: Opening) -> None:
        """Begin to receive what the host has made.

        Raises:
            EvalArcError: The host has no claim on it, or it cannot be received.
        """
        with self._lock:
            claim = self._claims.get(name)
            if claim is None or claim.arrival is not None:
                raise self._no_place(name)
            path = self._path(name)
            folder = path.parent if path.name == RESULT else path
            claim.arrival = Arrival(folder.with_name(f".arriving-{folder.name}"), opening)

    def take(self, name: str, content: Content) -> None:
        """Receive the next part of it.

        Raises:
            EvalArcError: It is not what was announced, or cannot be written.
        """
        with self._lock:
            self._arrival(name).take(content)

    def finish(self, name: str, closing: Closing) -> None:
        """Put what has arrived in its place, and let the claim go.

        Raises:
            EvalArcError: It is not what was sent; then nothing of it is kept.
        """
        with self._lock:
            path = self._path(name)
            arrival = self._arrival(name)
            arrival.finish(closing)
            place(arrival.staging, path.parent, last=path.name)
            mark_of(path).unlink(missing_ok=True)
            self._claims.pop(name).held.close()

    def refuse(self, name: str, problem: str) -> None:
        """Count what the host was to bring as not arrived: nothing of it is kept."""
        detail = f"its result did not arrive from host {self.host}: {printable(problem, limit=400)}"
        with self._lock:
            self._give_up(name, HostLost(detail))

    def lose(self, cut_off_by: BaseException | None = None) -> None:
        """Count all that the host was at as lost; what it brings from now on is not taken.

        A second call does nothing.

        Args:
            cut_off_by: What ended the whole session; None when the host alone was lost.
        """
        loss = cut_off_by or HostLost(f"host {self.host} was lost while it ran")
        with self._lock:
            self._is_lost = True
            while self._waiting:
                self._waiting.popitem()[1].close()
            for name in tuple(self._claims):
                self._give_up(name, loss)

    def _give_up(self, name: str, loss: BaseException) -> None:
        claim = self._claims.pop(name, None)
        if claim is None:
            return
        if claim.arrival is not None:
            claim.arrival.discard()
        claim.held.close()
        path = self._path(name)
        if path.name == RESULT:
            # On a full disk the mark stays, and the end of this session or the next settles it.
            with contextlib.suppress(EvalArcError, OSError):
                self.keeper.settle(path, loss)

    def _arrival(self, name: str) -> Arrival:
        claim = self._claims.get(name)
        if claim is None or claim.arrival is None:
            raise self._no_place(name)
        return claim.arrival

    def _path(self, name: str) -> Path:
        """Return where a name leads, which is inside the batch whatever the name is."""
        parts = name.split("/")
        match parts:
            case [_, _, self.batch, last] if last == PLAN:
                names = parts[:3]
            case [_, _, self.batch, _, last] if last == RESULT:
                names = parts[:4]
            case [_, "audit", self.batch, "rows", last] if last.endswith(".json"):
                names = [*parts[:4], last.removesuffix(".json")]
            case _:
                raise self._no_place(name)
        if not all(_NAME.fullmatch(part) for part in names):
            raise self._no_place(name)
        return self.results.joinpath(*parts)

    def _no_place(self, name: str) -> UsageError:
        where = printable(repr(name), limit=400)
        return UsageError(f"host {self.host}", f"brings {where}, which it was not asked for")
