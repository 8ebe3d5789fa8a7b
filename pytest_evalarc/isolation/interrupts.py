"""Hold signals back while a process would be lost if an exception came in between."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NAMES = ("SIGALRM", "SIGTERM", "SIGINT")
"""Signals whose handlers raise: a time limit of a test, the end of a session, Ctrl-C."""


@contextmanager
def held_back() -> Iterator[None]:
    """Delay Python's handlers of these signals to the end of the block.

    A handler may raise between two instructions anywhere, so also between the start of a process
    and the line that remembers it. Handlers run in the main thread alone; elsewhere this does
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers = {
        number: handler
        for name in NAMES
        if (number := getattr(signal, name, None)) is not None
        and callable(handler := signal.getsignal(number))
    }
    for number in handlers:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)
