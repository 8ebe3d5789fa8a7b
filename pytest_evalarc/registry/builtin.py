"""The built-in clients, treatments, toolchains, packs and sandboxes, through the same hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_evalarc.clients.command import CommandClient
from pytest_evalarc.clients.embedded.nop import nop
from pytest_evalarc.clients.embedded.oracle import oracle
from pytest_evalarc.clients.embedded.replay import replay
from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.toolchain import Toolchain
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.grading.toolchains.rust import Rust
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.packs.durable_kv.pack import DurableKv
from pytest_evalarc.treatments.protocol import Treatment
from pytest_evalarc.treatments.skills import Skills


def pytest_evalarc_clients() -> Mapping[str, Callable[[], Client]]:
    """Offer the embedded clients, and any agent that is a command."""
    return {"oracle": oracle, "nop": nop, "replay": replay, "command": CommandClient}


def pytest_evalarc_treatments() -> Mapping[str, Callable[[], Treatment]]:
    """Offer plain skills."""
    return {"skills": Skills}


def pytest_evalarc_toolchains() -> Mapping[str, Callable[[], Toolchain]]:
    """Offer Python, Node and Rust."""
    return {"python": Python, "node": Node, "rust": Rust}


def pytest_evalarc_packs() -> Mapping[str, Callable[[], Pack]]:
    """Offer the packs that ship."""
    return {"durable-kv": DurableKv}


def pytest_evalarc_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:
    """Offer bubblewrap, and no sandbox for what is trusted."""
    return {"bwrap": Bwrap, "local": Local}
