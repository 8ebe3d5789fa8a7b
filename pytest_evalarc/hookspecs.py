"""Extension points: how a package or a conftest adds clients, languages, treatments and packs.

The five that offer something are called once in each process that needs them, at the first
collection of an eval. All answers are joined; a name offered twice ends the session with one
sentence that names both plugins. The built-in ones come through the same hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_evalarc.clients.protocol import Client
    from pytest_evalarc.grading.pack import Pack
    from pytest_evalarc.grading.toolchain import Toolchain
    from pytest_evalarc.isolation.command import Sandbox
    from pytest_evalarc.model.audit import Audit
    from pytest_evalarc.model.benchmark import Benchmark
    from pytest_evalarc.model.trial import TrialResult
    from pytest_evalarc.treatments.protocol import Treatment


def pytest_evalarc_clients() -> Mapping[str, Callable[[], Client]]:  # type: ignore[empty-body]
    """Return agent clients by name, each as a function that makes one."""


def pytest_evalarc_treatments() -> Mapping[str, Callable[[], Treatment]]:  # type: ignore[empty-body]
    """Return treatments by name, each as a function that makes one."""


def pytest_evalarc_toolchains() -> Mapping[str, Callable[[], Toolchain]]:  # type: ignore[empty-body]
    """Return languages by the word that task.toml uses, each as a function that makes one."""


def pytest_evalarc_packs() -> Mapping[str, Callable[[], Pack]]:  # type: ignore[empty-body]
    """Return packs by name, each as a function that makes one."""


def pytest_evalarc_sandboxes() -> Mapping[str, Callable[[], Sandbox]]:  # type: ignore[empty-body]
    """Return sandboxes by name, each as a function that makes one."""


def pytest_evalarc_trial_finished(result: TrialResult, folder: Path) -> None:
    """See a trial right after its result was written.

    Called in the process that ran it, once per trial of a batch.

    Args:
        result: The whole result.
        folder: Its result folder, which holds transcript and submission too.
    """


def pytest_evalarc_benchmark(benchmark: Benchmark, path: Path) -> None:
    """See a benchmark right after it was written; called in the controller, at the end."""


def pytest_evalarc_audit(audit: Audit, path: Path) -> None:
    """See an audit right after it was written; called in the controller, at the end."""
