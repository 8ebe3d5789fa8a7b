"""The threads that put cases to candidates, kept as long as there may be something to grade."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.model.task import Limits


class CaseThreads:
    """Pools of threads by what they are for, shared by all gradings; close it after the last.

    A sandbox dies with the thread that started it, so threads outlive every session. They are made
    once because each is put under the limits of its sessions, which takes the kernel a while; and
    shared, so that of two gradings the second gets what the first leaves idle, and no more cases
    run at once than with one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str | None, Limits, int], ThreadPoolExecutor] = {}
        self._opened = ExitStack()

    def pool(self, sandbox: Sandbox, limits: Limits, count: int) -> ThreadPoolExecutor:
        """Return the pool of so many threads whose sessions run in a sandbox under these limits."""
        key = (sandbox.name, sandbox.image, limits, count)
        with self._lock:
            if key not in self._pools:
                join = self._opened.enter_context(sandbox.threads(limits))
                pool = ThreadPoolExecutor(count, thread_name_prefix="case", initializer=join)
                self._pools[key] = self._opened.enter_context(pool)
            return self._pools[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads, each when its case is over; whoever asks then gets others."""
        with self._lock:
            self._pools.clear()
            self._opened.close()
