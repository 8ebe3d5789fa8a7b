from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from threading import Timer

import pytest

from pytest_evalarc.isolation.readiness import Readiness


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_what_is_ready_is_acted_on_and_nothing_else(pipe: tuple[int, int]) -> None:
    """A pipe that has nothing to say must not be read, which would block."""
    ready, acted = Readiness(), []
    ready.watch_reading(pipe[0], partial(acted.append, "read"))

    ready.wait(0.0)
    silent = list(acted)
    os.write(pipe[1], b"x")
    ready.wait(60.0)

    assert (silent, acted) == ([], ["read"])


def test_room_to_write_is_told(pipe: tuple[int, int]) -> None:
    """What did not fit before can be written then."""
    ready, acted = Readiness(), []
    ready.watch_writing(pipe[1], partial(acted.append, "write"))

    ready.wait(60.0)

    assert acted == ["write"]


def test_what_is_forgotten_is_not_acted_on(pipe: tuple[int, int]) -> None:
    """Its number may have been given to something else by then."""
    ready, acted = Readiness(), []
    ready.watch_writing(pipe[1], partial(acted.append, "write"))

    ready.forget(pipe[1])
    ready.forget(pipe[1])
    ready.wait(0.0)

    assert acted == []


def test_one_act_may_forget_what_is_ready_as_well(pipe: tuple[int, int]) -> None:
    """A stream that ends takes others along, in whatever order the system tells of them."""
    ready, acted = Readiness(), []
    os.write(pipe[1], b"x")

    def forget(other: int) -> None:
        acted.append(other)
        ready.forget(other)

    ready.watch_reading(pipe[0], partial(forget, pipe[1]))
    ready.watch_writing(pipe[1], partial(forget, pipe[0]))
    ready.wait(60.0)

    assert len(acted) == 1


@pytest.mark.parametrize("timeout_s", [-1.0, 0.0, 0.0001])
def test_a_wait_without_time_ends_and_acts_on_what_is_ready_already(
    pipe: tuple[int, int], timeout_s: float
) -> None:
    """A negative number would mean for ever to the system."""
    ready, acted = Readiness(), []
    ready.watch_reading(pipe[0], partial(acted.append, "read"))
    # A wait for ever would end with this, and be told by what was acted on.
    rescue = Timer(60.0, os.write, (pipe[1], b"x"))
    rescue.start()
    try:
        ready.wait(timeout_s)
    finally:
        rescue.cancel()
        rescue.join()
    silent = list(acted)
    os.write(pipe[1], b"x")
    ready.wait(timeout_s)

    assert (silent, acted) == ([], ["read"])
