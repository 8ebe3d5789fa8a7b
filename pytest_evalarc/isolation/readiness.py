"""Which descriptors are ready, and what is then done; `selectors` costs several times as much."""

from __future__ import annotations

import math
import select
from collections.abc import Callable


class Readiness:
    """Watches descriptors and acts on those that are ready; used by one thread."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._acts: dict[int, Callable[[], None]] = {}

    def watch_reading(self, descriptor: int, act: Callable[[], None]) -> None:
        """Act whenever there is something to read, an end included."""
        self._watch(descriptor, select.POLLIN, act)

    def watch_writing(self, descriptor: int, act: Callable[[], None]) -> None:
        """Act whenever there is room to write, or nobody left to read."""
        self._watch(descriptor, select.POLLOUT, act)

    def _watch(self, descriptor: int, events: int, act: Callable[[], None]) -> None:
        self._acts[descriptor] = act
        self._poll.register(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor; one that is not watched is fine."""
        if self._acts.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def wait(self, timeout_s: float) -> None:
        """Wait until something is ready or the time is over, and act on all that is ready."""
        for descriptor, _ in self._poll.poll(math.ceil(max(0.0, timeout_s) * 1000)):
            # What was done for one may have closed another.
            if act := self._acts.get(descriptor):
                act()
