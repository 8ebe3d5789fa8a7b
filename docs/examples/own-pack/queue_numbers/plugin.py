"""What pytest loads at every start, so the pack itself is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_evalarc.grading.pack import Pack


def pytest_evalarc_packs() -> Mapping[str, Callable[[], Pack]]:
    """Offer the pack under the name that task.toml uses."""
    return {"queue-numbers": _queue_numbers}


def _queue_numbers() -> Pack:
    from queue_numbers.pack import QueueNumbers

    return QueueNumbers()
