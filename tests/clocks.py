"""The clock of deadlines, moved on by tests: none of them hopes that the machine is idle."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest

from pytest_evalarc.isolation.clock import AWAKE


def moved_on(patch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what moves the clock of deadlines on by so many seconds, until the patch is undone.

    A deadline may then be as long as the busiest machine needs, and strike at once all the same.
    """
    moved_s: list[float] = []
    # A step as wide as a deadline would be taken for a standstill, and be left out.
    patch.setattr("pytest_evalarc.isolation.clock.STANDSTILL_S", math.inf)
    patch.setattr(AWAKE, "monotonic", lambda: time.monotonic() + sum(moved_s))
    return moved_s.append
