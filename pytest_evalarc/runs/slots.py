"""Slots: a trial runs once its client has one free, and the batch's order says whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.lock import LOOK_S, locked, locked_if_free
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.parallel import MaxParallel


class Place(NamedTuple):
    """A trial's place in the plan of its task and client."""

    task: str
    round: int
    order: int
    """In its round."""

    @classmethod
    def of(cls, task: str, entry: PlannedTrial) -> Place:
        """Return the place of a planned trial of a task."""
        return cls(task, entry.round, entry.order)


class Waiting(Protocol):
    """One that waits for a slot, until it is served or gives up."""

    def is_served(self, slot: ExitStack) -> bool:
        """Let a slot be held by `slot` if one is free and it is this one's turn.

        Raises:
            DocumentError: The batch's working folder cannot be written.
        """
        ...

    def close(self) -> None:
        """Leave the line, served or not."""
        ...


class Slots(Protocol):
    """Bounds how many trials of a client run at once, wherever they run."""

    def line_up(self, client: str, place: Place) -> Waiting:
        """Begin to wait for a slot; whoever asks must close what is returned.

        Args:
            client: The client's label.
            place: The trial's, which orders those that wait.
        """
        ...

    def held(self, client: str, place: Place) -> AbstractContextManager[None]:
        """Wait until a trial may run, and hold its slot while it does.

        Raises:
            KeyboardInterrupt: The user ends the waiting; the slot is never held then.
        """
        ...


class Ticket(NamedTuple):
    """One that waits."""

    number: int
    """Those that came later have larger ones; from 1."""
    place: Place

    @property
    def name(self) -> str:
        """The name of its file; no task's name has a dot."""
        task, round_, order = self.place
        return f"{self.number}.{round_}.{order}.{task}"

    @classmethod
    def of(cls, name: str) -> Ticket:
        """Return the ticket of a file's name."""
        number, round_, order, task = name.split(".")
        return cls(int(number), Place(task, int(round_), int(order)))


def served_next(waiting: Sequence[Ticket]) -> Ticket:
    """Return whose turn it is: of the task that waits longest, the first by its plan.

    So no task is passed over for ever, and no configuration of a task gets ahead of the rounds.

    Args:
        waiting: Those that wait for a slot of one client, at least one.
    """
    longest = min(waiting, key=lambda ticket: ticket.number)
    of_its_task = [ticket for ticket in waiting if ticket.place.task == longest.place.task]
    return min(of_its_task, key=lambda ticket: (ticket.place.round, ticket.place.order))


@dataclass(frozen=True, kw_only=True)
class LocalSlots:
    """The slots of a batch for all processes of this machine, as locks in its working folder.

    The system frees the locks of a process that dies: its slot, and its place among the waiting.
    """

    folders: Folders
    limits: MaxParallel

    def line_up(self, client: str, place: Place) -> Waiting:
        """Begin to wait for a slot; whoever asks must close what is returned.

        Args:
            client: The client's label; one without a limit never waits.
            place: The trial's, which orders those that wait.

        Raises:
            DocumentError: The batch's working folder cannot be written.
            UsageError: The evaluation root is no folder of this user's own.
        """
        most = self.limits.of(client)
        if most is None:
            return _NoLine()
        folder = self.folders.work / "slots" / client
        with _told(folder):
            self.folders.open_work()
            (folder / "waiting").mkdir(parents=True, exist_ok=True)
            return _Line(folder=folder, most=most, place=place)

    @contextmanager
    def held(self, client: str, place: Place) -> Iterator[None]:
        """Wait until a trial may run, and hold its slot while it does.

        Raises:
            KeyboardInterrupt: The user ends the waiting; the slot is never held then.
            DocumentError: The batch's working folder cannot be written.
            UsageError: The evaluation root is no folder of this user's own.
        """
        with ExitStack() as slot:
            with closing(self.line_up(client, place)) as waiting:
                while not waiting.is_served(slot):
                    time.sleep(LOOK_S)
            yield


class _NoLine:
    """What waits for a client without a limit."""

    def is_served(self, slot: ExitStack) -> bool:  # noqa: ARG002 - as all that wait.
        return True

    def close(self) -> None:
        """Leave no line."""


class _Line:
    """One of those that wait for a slot of a client, a locked file each."""

    def __init__(self, *, folder: Path, most: int, place: Place) -> None:
        self._folder = folder
        self._most = most
        self._held = ExitStack()
        with self._looking:
            last = max((ticket.number for ticket in self._tickets()), default=0)
            self._ticket = Ticket(last + 1, place)
            path = folder / "waiting" / self._ticket.name
            self._held.callback(path.unlink, missing_ok=True)
            self._held.enter_context(locked(path))

    def is_served(self, slot: ExitStack) -> bool:
        with _told(self._folder), self._looking:
            if served_next(self._tickets()) != self._ticket:
                return False
            return any(
                _take(self._folder / f"slot-{number}.lock", slot)
                for number in range(1, self._most + 1)
            )

    def close(self) -> None:
        self._held.close()

    @property
    def _looking(self) -> AbstractContextManager[None]:
        """One looks at a time: each then sees either all or nothing of what another does."""
        return locked(self._folder / "looking.lock")

    def _tickets(self) -> list[Ticket]:
        """Return those that wait, and clear away what the dead among them left."""
        found = []
        for path in (self._folder / "waiting").iterdir():
            with locked_if_free(path) as is_left:
                if is_left:
                    path.unlink(missing_ok=True)
                else:
                    found.append(Ticket.of(path.name))
        return found


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Tell as a sentence that the working folder cannot be written."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise DocumentError(str(folder), problem, "free that folder") from error


def _take(path: Path, slot: ExitStack) -> bool:
    """Let a lock be held by `slot` if nobody else holds it."""
    with ExitStack() as tried:
        is_taken = tried.enter_context(locked_if_free(path))
        if is_taken:
            slot.enter_context(tried.pop_all())
        return is_taken
