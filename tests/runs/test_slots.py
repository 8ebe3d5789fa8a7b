"""How many trials of a client run at once, and whose turn it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Thread

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.parallel import MaxParallel
from pytest_evalarc.runs.slots import LocalSlots, Place, Ticket, served_next

FIRST = Place("parser", 1, 1)

HOLDER = """
import sys
from pathlib import Path
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.parallel import MaxParallel
from pytest_evalarc.runs.slots import LocalSlots, Place

root, round = Path(sys.argv[1]), int(sys.argv[2])
folders = Folders(eval_root=root / "trials", results=root / "results", batch="night")
slots = LocalSlots(folders=folders, limits=MaxParallel(each=1))
with slots.held("claude", Place("parser", round, 1)):
    print("held", flush=True)
    sys.stdin.readline()
"""


def slots_of(root: Path, most: int = 1, **named: int) -> LocalSlots:
    folders = Folders(eval_root=root / "trials", results=root / "results", batch="night")
    return LocalSlots(folders=folders, limits=MaxParallel(each=most, named=named))


def waiting(slots: LocalSlots) -> list[Path]:
    folder = slots.folders.work / "slots/claude/waiting"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def wait_for(claim: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not claim():
        assert time.monotonic() < until
        time.sleep(0.01)


def holder(root: Path, round_: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root), str(round_)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize(
    ("tickets", "served"),
    [
        ([(1, ("a", 1, 1))], 0),
        ([(2, ("a", 1, 1)), (1, ("b", 9, 2))], 1),
        ([(1, ("a", 2, 1)), (2, ("a", 1, 2)), (3, ("a", 1, 1))], 2),
        ([(1, ("b", 3, 1)), (2, ("a", 1, 1)), (3, ("b", 2, 2))], 2),
    ],
    ids=["alone", "longest", "rounds", "rounds-of-the-longest"],
)
def test_the_task_that_waits_longest_goes_on_with_its_earliest_round(
    tickets: list[tuple[int, tuple[str, int, int]]], served: int
) -> None:
    """No task is passed over for ever, and no configuration gets ahead of the other."""
    waiting = [Ticket(number, Place(*place)) for number, place in tickets]

    assert served_next(waiting) == waiting[served]


def test_a_ticket_is_known_by_its_name_again() -> None:
    """Another process learns from it whose turn it is."""
    ticket = Ticket(12, Place("fix-the_parser+1", 3, 2))

    assert Ticket.of(ticket.name) == ticket


def test_no_more_trials_of_a_client_run_at_once_than_it_has_slots(tmp_path: Path) -> None:
    """Two may, and do; a third would be one too many for its provider."""
    slots = slots_of(tmp_path, 2)
    together, running, most = Barrier(2), [0], [0]

    def run(round_: int) -> None:
        with slots.held("claude", Place("parser", round_, 1)):
            running[0] += 1
            most[0] = max(most[0], running[0])
            together.wait(timeout=60)
            running[0] -= 1
            together.wait(timeout=60)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(6)))

    assert most == [2]
    assert waiting(slots) == []


def test_clients_have_slots_of_their_own(tmp_path: Path) -> None:
    """One provider's limit says nothing about another's, and some have none."""
    slots = slots_of(tmp_path, 1, codex=2)
    unbound = LocalSlots(folders=slots.folders, limits=MaxParallel(named={"claude": 1}))

    with ExitStack() as held:
        for client, order in (("claude", 1), ("codex", 1), ("codex", 2)):
            held.enter_context(slots.held(client, Place("parser", 1, order)))
        held.enter_context(unbound.held("oracle", FIRST))
        held.enter_context(unbound.held("oracle", FIRST))
        folders = sorted(path.name for path in (slots.folders.work / "slots").iterdir())

    assert folders == ["claude", "codex"]


def test_those_that_wait_are_served_in_the_order_of_their_rounds(tmp_path: Path) -> None:
    """Else one configuration could be through before the other has begun."""
    slots = slots_of(tmp_path)
    order: list[tuple[int, int]] = []

    def run(round_: int, order_: int) -> None:
        with slots.held("claude", Place("parser", round_, order_)):
            order.append((round_, order_))

    came = [(3, 1), (2, 2), (3, 2), (2, 1)]
    threads = [Thread(target=run, args=place) for place in came]
    with slots.held("claude", FIRST):
        for count, thread in enumerate(threads, start=1):
            thread.start()
            wait_for(lambda count=count: len(waiting(slots)) == count)  # type: ignore[misc]  # each has its own
    for thread in threads:
        thread.join()

    assert order == sorted(came)


def test_an_error_in_a_trial_frees_its_slot(tmp_path: Path) -> None:
    """What breaks once must not keep all others waiting."""
    slots = slots_of(tmp_path)
    with pytest.raises(ZeroDivisionError), slots.held("claude", FIRST):
        raise ZeroDivisionError

    with slots.held("claude", FIRST):
        pass


def test_a_working_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """It is the user's to mend, so no traceback buries it."""
    slots = slots_of(tmp_path)
    slots.folders.open_work()
    (slots.folders.work / "slots").write_text("in the way")

    with pytest.raises(DocumentError, match="cannot be written"), slots.held("claude", FIRST):
        pass


@pytest.mark.slow
def test_the_death_of_a_process_frees_its_slot_and_its_place(tmp_path: Path) -> None:
    """A worker that is killed cannot tidy up, and the next trial must not wait for ever."""
    slots = slots_of(tmp_path)
    with holder(tmp_path, 1) as running:
        # Whoever gets the slot has a ticket for a moment too, so it says first that it holds it.
        assert said(running) == "held\n"
        with holder(tmp_path, 2) as next_:
            wait_for(lambda: len(waiting(slots)) == 1)
            running.kill()
            next_.kill()

    with slots.held("claude", Place("parser", 3, 1)):
        assert waiting(slots) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_waits_can_be_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    """Its place is free with it, and whoever comes later is served."""
    slots = slots_of(tmp_path)
    with slots.held("claude", FIRST), holder(tmp_path, 2) as waiter:
        wait_for(lambda: len(waiting(slots)) == 1)
        waiter.send_signal(number)
        assert waiter.wait(timeout=60) != 0
        assert said(waiter) == ""

    with slots.held("claude", Place("parser", 3, 1)):
        assert waiting(slots) == []
