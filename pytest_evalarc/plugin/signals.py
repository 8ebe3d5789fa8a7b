"""SIGINT and SIGTERM: the first one interrupts, and the next do not break what it cleans up."""

from __future__ import annotations

import signal
import threading
from typing import Any

USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Raises KeyboardInterrupt at the first SIGINT or SIGTERM, and lets later ones pass.

    A cancelled CI job sends SIGTERM, which pytest does not know, and an impatient user presses
    Ctrl-C twice: the second must not stop the first from ending a trial's processes, from keeping
    its result and from writing the benchmark. A handler of somebody else's stays.
    """

    def __init__(self) -> None:
        self._previous: dict[signal.Signals, Any] = {}
        self._was_interrupted = False

    def take(self) -> None:
        """Handle the signals from now on; nothing happens in a thread that may not."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, usual in USUAL.items():
            if signal.getsignal(number) is usual:
                self._previous[number] = signal.signal(number, self._interrupt)

    def give_back(self) -> None:
        """Put the handlers that were there before in place again."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _interrupt(self, number: int, _frame: object) -> None:
        if not self._was_interrupted:
            self._was_interrupted = True
            raise KeyboardInterrupt(signal.Signals(number).name)
