"""A worker's way to the results of its controller, when the two share no file system.

A message is a tuple of plain values: a number, a verb, the name of a document below the results
and what goes with it. The controller answers some of them, with the number and a word; the other
end is in `hosts`. The messages travel on a channel of our own beside the one of pytest-xdist, in
the order in which they and a worker's reports were sent.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import pytest

from pytest_evalarc.errors import DocumentError, EvalArcError, UsageError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.lock import LOOK_S, GivenUp
from pytest_evalarc.files.parcel import Closing, Content, Opening, parcel
from pytest_evalarc.files.strict import document_bytes
from pytest_evalarc.runs.intake import RESULT

if TYPE_CHECKING:
    from pytest_evalarc.model.base import Model

Paused: TypeAlias = "Callable[[], contextlib.AbstractContextManager[None]]"

INPUT = "evalarc_home"
"""The key of xdist's worker input: the channel, and the name of the file that proves a share."""
ANSWERED = ("plan", "claim", "close", "fail")
"""Verbs that the controller answers; `facts`, `open` and `data` need no answer."""


def shares_results(results: Path, token: str) -> bool:
    """Whether this process sees the very folder that the controller made a file in just now.

    Equal paths prove nothing: another machine has the same ones.
    """
    return (results / token).is_file()


class Home:
    """What a worker asks of its controller, and brings to it."""

    def __init__(self, channel: Any, results: Path) -> None:
        """Take the channel, and this process's own folder of results."""
        self._channel = channel
        self._results = results
        self._lock = threading.RLock()
        self._number = 0
        self._here: set[str] = set()

    def keep_plan(self, path: Path, plan: Model) -> None:
        """Have the controller keep the plan of what is about to run.

        Raises:
            UsageError: Its batch began with another plan.
            DocumentError: It is out of reach, or cannot keep it.
        """
        self._ask("plan", self._name(path), document_bytes(plan))

    @contextlib.contextmanager
    def brought(
        self, path: Path, *, given_up: threading.Event, paused: Paused = contextlib.nullcontext
    ) -> Iterator[None]:
        """Claim a document before the block makes it, and bring it to the controller after.

        What is there already is fetched, and then the block finds it here.

        Args:
            path: A trial's result.json, which brings all of its folder, or a control's row.
            given_up: Set when there is no more time to wait for another host.
            paused: Lets no time of the asker pass while a trial waits for its turn.

        Raises:
            GivenUp: Another host is at it, and the waiting was given up.
            DocumentError: The controller is out of reach, or what was sent did not arrive.
        """
        name = self._name(path)
        if name in self._here or not self._claim(name, path, given_up, paused):
            yield
            return
        try:
            yield
        except BaseException as error:
            # What it left is evidence; what cut it off is told in any case.
            with contextlib.suppress(EvalArcError):
                self._bring(name, path, why_not=str(error))
            raise
        self._bring(name, path, why_not="")

    def _claim(self, name: str, path: Path, given_up: threading.Event, paused: Paused) -> bool:
        """Return whether this process shall make a document; else it is here then."""
        while True:
            word, detail = self._ask("claim", name, None)
            if word == "queued":
                with paused():
                    word, detail = self._when_served(name)
            match word:
                case "run":
                    return True
                case "done":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_atomic(path, detail)
                    self._here.add(name)
                    return False
                case "skip":
                    pytest.skip(f"not started: {detail}")
            if given_up.wait(LOOK_S):
                raise GivenUp("the waiting was given up")

    def _when_served(self, name: str) -> tuple[str, Any]:
        """Return the first answer to a claim that is not to wait for its turn."""
        while True:
            time.sleep(LOOK_S)
            answer = self._ask("claim", name, None)
            if answer[0] != "queued":
                return answer

    def _bring(self, name: str, path: Path, *, why_not: str) -> None:
        if not path.exists():
            self._ask("fail", name, why_not or "it was not made")
            return
        with self._lock:
            try:
                self._send_folder(name, path)
            except (EvalArcError, OSError) as error:
                self._ask("fail", name, str(error))
                raise DocumentError(str(path), f"cannot be sent: {error}") from error
        self._here.add(name)

    def _send_folder(self, name: str, path: Path) -> None:
        for message in parcel(path.parent, skip=_beside(path)):
            match message:
                case Opening(listing_bytes):
                    self._send("open", name, listing_bytes)
                case Content(data):
                    self._send("data", name, data)
                case Closing(sha256):
                    self._ask("close", name, sha256)

    def _ask(self, verb: str, name: str, detail: object) -> tuple[str, Any]:
        with self._lock:
            number = self._send(verb, name, detail)
            try:
                # An answer that an interrupt kept from being read is passed over.
                while (answer := self._channel.receive())[0] != number:
                    pass
            except EOFError as error:
                raise _out_of_reach() from error
        _, word, told = answer
        if word == "refused":
            _refuse(verb, told)
        return word, told

    def _send(self, verb: str, name: str, detail: object) -> int:
        with self._lock:
            self._number += 1
            try:
                self._channel.send((self._number, verb, name, detail))
            except OSError as error:
                raise _out_of_reach() from error
            return self._number

    def _name(self, path: Path) -> str:
        return path.relative_to(self._results).as_posix()


@contextlib.contextmanager
def brought(
    home: Home | None,
    path: Path,
    *,
    given_up: threading.Event,
    paused: Paused = contextlib.nullcontext,
) -> Iterator[None]:
    """Do as `Home.brought` does; nothing where the controller's results are this process's own."""
    if home is None:
        yield
        return
    with home.brought(path, given_up=given_up, paused=paused):
        yield


def tell_facts(channel: Any, facts: Mapping[str, str]) -> None:
    """Tell the controller what this host would run everything with."""
    channel.send((0, "facts", "", dict(facts)))


def _beside(path: Path) -> Callable[[str], bool]:
    """Return what of a document's folder is not sent with it."""
    if path.name == RESULT:
        # Locks and marks are this host's own.
        return lambda below: below.startswith(".")
    return lambda below: below != path.name


def _refuse(verb: str, told: str) -> NoReturn:
    where, _, problem = told.partition(": ")
    if verb == "plan":
        raise UsageError(where, problem)
    raise DocumentError(where, problem)


def _out_of_reach() -> DocumentError:
    return DocumentError("the controller", "is out of reach", "what is done here is kept here")
