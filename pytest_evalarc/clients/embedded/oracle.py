"""The author's ideal session: the positive control of the whole pipeline."""

from __future__ import annotations

from pytest_evalarc.clients.embedded.client import Embedded
from pytest_evalarc.clients.protocol import Plays


def oracle() -> Embedded:
    """Return the client that reads the skills it is expected to use and applies the solution."""
    return Embedded(name="oracle", plays=Plays.SOLUTION)
