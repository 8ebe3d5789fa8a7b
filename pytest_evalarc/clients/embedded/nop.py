"""The session that does nothing: the negative control of the whole pipeline."""

from __future__ import annotations

from pytest_evalarc.clients.embedded.client import Embedded
from pytest_evalarc.clients.protocol import Plays


def nop() -> Embedded:
    """Return the client that leaves the starter as it is."""
    return Embedded(name="nop", plays=Plays.NOTHING)
