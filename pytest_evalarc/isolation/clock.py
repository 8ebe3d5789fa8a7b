"""The clock of deadlines: seconds in which the harness could look after what it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

STANDSTILL_S = 5.0
"""Whoever looks every fraction of a second and was kept from it for longer did not run at all."""


class AwakeClock:
    """The monotonic clock without the time in which this process stood still.

    A stopped process, a frozen container and a paused virtual machine let the monotonic clock go
    on; a client that was stopped with them has not used that time up. A suspended machine stops
    the clock itself, and nothing has to be left out. Every thread may use it.

    Args:
        monotonic: Seconds that never go back.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._lock = threading.Lock()
        self._until_s = monotonic()
        self._stood_still_s = 0.0

    def now_s(self) -> float:
        """Return the seconds of this clock; they step back when a standstill is found."""
        return self.monotonic() - self._stood_still_s

    @property
    def stood_still_s(self) -> float:
        """Seconds that were left out so far."""
        return self._stood_still_s

    def look(self, last_s: float) -> float:
        """Return the monotonic seconds, and leave out those since the last look if too many.

        Args:
            last_s: What the last look of the same asker returned. Several askers find the same
                standstill, which is left out once.
        """
        at_s = self.monotonic()
        if at_s - last_s > STANDSTILL_S:
            with self._lock:
                self._stood_still_s += max(0.0, at_s - max(last_s, self._until_s))
                self._until_s = max(at_s, self._until_s)
        return at_s


AWAKE = AwakeClock()
"""The clock of this process."""
