"""The built-in clients, treatments, toolchains, packs and sandboxes, through the same hooks.

Each is imported when it is first asked for: who only collects needs nothing but their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_evalarc.clients.protocol import Client
    from pytest_evalarc.grading.pack import Pack
    from pytest_evalarc.grading.toolchain import Toolchain
    from pytest_evalarc.isolation.command import Sandbox
    from pytest_evalarc.treatments.protocol import Treatment


def _made_by(place: str, *arguments: str) -> Callable[[], Any]:
    """Return what imports `module:function`, below this package, and calls it."""
    module, _, name = place.partition(":")

    def make() -> Any:  # noqa: ANN401 - whatever the place holds
        return getattr(import_module(f"pytest_evalarc.{module}"), name)(*arguments)

    return make


def pytest_evalarc_clients() -> Mapping[str, Callable[[], Client]]:
    """Offer the embedded clients, and any agent that is a command."""
    return {
        "oracle": _made_by("clients.embedded.oracle:oracle"),
        "nop": _made_by("clients.embedded.nop:nop"),
        "replay": _made_by("clients.embedded.replay:replay"),
        "command": _made_by("clients.command:CommandClient"),
    }


def pytest_evalarc_treatments() -> Mapping[str, Callable[[], Treatment]]:
    """Offer plain skills."""
    return {"skills": _made_by("treatments.skills:Skills")}


def pytest_evalarc_toolchains() -> Mapping[str, Callable[[], Toolchain]]:
    """Offer Python, Node and Rust."""
    return {
        "python": _made_by("grading.toolchains.python:Python"),
        "node": _made_by("grading.toolchains.node:Node"),
        "rust": _made_by("grading.toolchains.rust:Rust"),
    }


def pytest_evalarc_packs() -> Mapping[str, Callable[[], Pack]]:
    """Offer the packs that ship."""
    return {
        "durable-kv": _made_by("packs.durable_kv.pack:DurableKv"),
        "support-routing": _made_by("packs.support_routing.pack:SupportRouting"),
        "robot-evidence-review": _made_by("packs.robot_evidence_review.pack:RobotEvidenceReview"),
    }


def pytest_evalarc_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:
    """Offer bubblewrap, containers for packs, and no sandbox for what is trusted."""
    return {
        "bwrap": _made_by("isolation.bwrap:Bwrap"),
        "docker": _made_by("isolation.engine:Engine", "docker"),
        "podman": _made_by("isolation.engine:Engine", "podman"),
        "local": _made_by("isolation.local:Local"),
        "exploratory": _made_by("isolation.local:Exploratory"),
    }
