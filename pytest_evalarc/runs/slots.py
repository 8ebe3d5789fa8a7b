"""Slots: a trial runs once its client has one free, and the batch's order says whose turn it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.lock import LOOK_S, locked, locked_if_free
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.parallel import MaxParallel


class Place(NamedTuple):
    """A trial's place in the plan of its task and client."""

    task: str
    round: int
    order: int
    """In its round."""


class Slots(Protocol):
    """Bounds how many trials of a client run at once, wherever they run."""

    def held(self, client: str, place: Place) -> AbstractContextManager[None]:
        """Wait until a trial may run, and hold its slot while it does.

        Args:
            client: The client's label.
            place: The trial's, which orders those that wait.

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

    @contextmanager
    def held(self, client: str, place: Place) -> Iterator[None]:
        """Wait until a trial may run, and hold its slot while it does.

        Args:
            client: The client's label; one without a limit never waits.
            place: The trial's, which orders those that wait.

        Raises:
            KeyboardInterrupt: The user ends the waiting; the slot is never held then.
            DocumentError: The batch's working folder cannot be written.
            UsageError: The evaluation root is no folder of this user's own.
        """
        most = self.limits.of(client)
        if most is None:
            yield
            return
        with ExitStack() as slot:
            folder = self.folders.work / "slots" / client
            try:
                self.folders.open_work()
                (folder / "waiting").mkdir(parents=True, exist_ok=True)
                _Queue(folder=folder, most=most).wait(place, slot)
            except OSError as error:
                problem = f"cannot be written: {error.strerror or error}"
                raise DocumentError(str(folder), problem, "free that folder") from error
            yield


@dataclass(frozen=True, kw_only=True)
class _Queue:
    """Those that wait for a slot of one client, a locked file each."""

    folder: Path
    most: int

    def wait(self, place: Place, slot: ExitStack) -> None:
        """Return once a slot is held by `slot`."""
        with ExitStack() as waiting:
            ticket = self._line_up(place, waiting)
            while not self._is_served(ticket, slot):
                time.sleep(LOOK_S)

    @property
    def _looking(self) -> AbstractContextManager[None]:
        """One looks at a time: each then sees either all or nothing of what another does."""
        return locked(self.folder / "looking.lock")

    def _line_up(self, place: Place, waiting: ExitStack) -> Ticket:
        with self._looking:
            last = max((ticket.number for ticket in self._tickets()), default=0)
            ticket = Ticket(last + 1, place)
            path = self.folder / "waiting" / ticket.name
            waiting.callback(path.unlink, missing_ok=True)
            waiting.enter_context(locked(path))
        return ticket

    def _is_served(self, ticket: Ticket, slot: ExitStack) -> bool:
        """Take a free slot if there is one and it is this one's turn."""
        with self._looking:
            if served_next(self._tickets()) != ticket:
                return False
            return any(
                _take(self.folder / f"slot-{number}.lock", slot)
                for number in range(1, self.most + 1)
            )

    def _tickets(self) -> list[Ticket]:
        """Return those that wait, and clear away what the dead among them left."""
        found = []
        for path in (self.folder / "waiting").iterdir():
            with locked_if_free(path) as is_left:
                if is_left:
                    path.unlink(missing_ok=True)
                else:
                    found.append(Ticket.of(path.name))
        return found


def _take(path: Path, slot: ExitStack) -> bool:
    """Let a lock be held by `slot` if nobody else holds it."""
    with ExitStack() as tried:
        is_taken = tried.enter_context(locked_if_free(path))
        if is_taken:
            slot.enter_context(tried.pop_all())
        return is_taken
