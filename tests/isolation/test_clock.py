"""The clock of deadlines: what a stopped process could not use is not counted."""

from __future__ import annotations

from pytest_evalarc.isolation.clock import STANDSTILL_S, AwakeClock


class Hand:
    """A monotonic clock that is moved by hand."""

    at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def test_time_between_frequent_looks_is_counted() -> None:
    """Without a standstill it is the monotonic clock."""
    hand = Hand()
    clock, last_s = AwakeClock(hand), hand.at_s

    for _ in range(10):
        hand.at_s += STANDSTILL_S
        last_s = clock.look(last_s)

    assert clock.now_s() == 100 + 10 * STANDSTILL_S
    assert clock.stood_still_s == 0


def test_a_standstill_is_left_out() -> None:
    """A deadline is a bound on what a client does, and a stopped one does nothing."""
    hand = Hand()
    clock = AwakeClock(hand)
    hand.at_s += 1
    last_s = clock.look(100)
    hand.at_s += 3600
    clock.look(last_s)
    hand.at_s += 2

    assert clock.now_s() == 103
    assert clock.stood_still_s == 3600


def test_a_standstill_that_several_threads_find_is_left_out_once() -> None:
    """Each of them was kept from looking, by one and the same cause."""
    hand = Hand()
    clock = AwakeClock(hand)
    hand.at_s = 140
    clock.look(110)
    clock.look(105)
    hand.at_s = 141
    clock.look(100)

    assert clock.stood_still_s == 30 + 1
    assert clock.now_s() == 110
