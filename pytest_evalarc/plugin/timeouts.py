"""Pytest-timeout: a request to end what an item runs, so that it is told and counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

GRACE_S = 60.0
"""What an item may take beyond the sum of its deadlines before pytest-timeout may end it."""


LEAST_S = 0.001
"""A timer of no seconds is none."""


class TimedOut(KeyboardInterrupt):
    """What ran was ended by an item's timer, and not by the user."""


class _Clock(NamedTuple):
    """What an item's timer was set to, and when, in seconds on the monotonic clock."""

    item: pytest.Item
    settings: Any
    """Those of pytest-timeout, which has no type for them."""
    started_s: float

    @property
    def left_s(self) -> float:
        """Seconds that the item may still take."""
        until_s: float = self.started_s + self.settings.timeout
        return max(until_s - time.monotonic(), LEAST_S)


class Timeouts:
    """The timers of the items that run evals.

    Pytest-timeout itself ends the whole process, or raises wherever the item happens to be. Ours
    sets an event that every supervised process is ended by.
    """

    def __init__(self) -> None:
        self.expired = threading.Event()
        self._timeout_s = 0.0
        self._timers: dict[str, threading.Timer] = {}
        self._clock: _Clock | None = None

    def start(self, item: pytest.Item, settings: Any) -> bool | None:
        """Start the timer of an eval item; None leaves any other item to pytest-timeout."""
        from pytest_evalarc.plugin.nodes import EvalItem

        self._clock = _Clock(item, settings, time.monotonic())
        timeout_s: float = settings.timeout
        if not isinstance(item, EvalItem):
            return None
        self._timeout_s = timeout_s
        timer = threading.Timer(timeout_s, self.expired.set)
        timer.daemon = True
        timer.start()
        self._timers[item.nodeid] = timer
        return True

    def stop(self, item: pytest.Item) -> bool | None:
        """Take the timer of an eval item back."""
        self._clock = None
        timer = self._timers.pop(item.nodeid, None)
        if timer is None:
            return None
        timer.cancel()
        self.expired.clear()
        return True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let no time of the running item pass, be its timer ours or pytest-timeout's own."""
        clock, told_s = self._clock, self._timeout_s
        if clock is None:
            yield
            return
        hook, left_s = clock.item.ihook, clock.left_s
        hook.pytest_timeout_cancel_timer(item=clock.item)
        try:
            yield
        finally:
            settings = clock.settings._replace(timeout=left_s)
            hook.pytest_timeout_set_timer(item=clock.item, settings=settings)
            self._timeout_s = told_s

    @contextmanager
    def told(self) -> Iterator[None]:
        """Tell what a timer ended from what the user interrupted: only the user ends the session.

        Raises:
            TimedOut: A timer ended what ran.
        """
        try:
            yield
        except KeyboardInterrupt as error:
            if not self.expired.is_set():
                raise
            raise TimedOut(f"Timeout (>{self._timeout_s:g}s) from pytest-timeout") from error


def allow(node: pytest.Collector, deadlines_s: float) -> None:
    """Let what is below a node take its deadlines and some grace, whatever the project's timeout.

    A timeout for unit tests would cut every trial. One on the command line is meant, and stays.
    """
    if is_allowed(node.config):
        node.add_marker(pytest.mark.timeout(deadlines_s + GRACE_S))


def is_allowed(config: pytest.Config) -> bool:
    """Whether evals get more time than the project's timeout for each test."""
    has_timeouts = config.pluginmanager.has_plugin("timeout")
    return has_timeouts and config.getoption("timeout", None) is None
