from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from pytest_evalarc.isolation.interrupts import held_back


@pytest.fixture(autouse=True)
def plain_handler() -> Iterator[None]:
    """Let Ctrl-C raise each time, as it does outside of a session."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_after_the_block_and_not_in_it() -> None:
    """A process that has just been started must be remembered before anything is raised."""
    done = []

    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        done.append("remembered")

    assert done == ["remembered"]


def test_handlers_are_as_before() -> None:
    """A session keeps its own reaction to Ctrl-C."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    with held_back():
        pass

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_handlers_are_as_before_when_the_block_raises() -> None:
    """The block starts processes, which fails now and then."""
    before = signal.getsignal(signal.SIGINT)

    with pytest.raises(OSError, match="no such"), held_back():
        raise OSError("no such program")

    assert signal.getsignal(signal.SIGINT) is before


def test_blocks_nest() -> None:
    """The end of a process holds back as a whole and in its parts."""
    reached = []

    with pytest.raises(KeyboardInterrupt), held_back():
        with held_back():
            signal.raise_signal(signal.SIGINT)
        reached.append("outer")

    assert reached == ["outer"]


def test_a_thread_may_enter_the_block() -> None:
    """Only the main thread may set handlers, and only there do they run."""
    entered = []

    def work() -> None:
        with held_back():
            entered.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert entered == [True]
