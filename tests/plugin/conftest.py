"""The project that pytest is run in."""

from __future__ import annotations

from pathlib import Path

import filelock  # noqa: F401
import pytest

# A pytest inside this process drops what it was the first to import; half of a package imported
# twice would then compare unequal to the other half.
import pytest_evalarc.clients.command
import pytest_evalarc.clients.embedded.nop
import pytest_evalarc.clients.embedded.oracle
import pytest_evalarc.clients.embedded.replay
import pytest_evalarc.grading.toolchains.node
import pytest_evalarc.grading.toolchains.python
import pytest_evalarc.grading.toolchains.rust
import pytest_evalarc.isolation.bwrap
import pytest_evalarc.isolation.local
import pytest_evalarc.plugin.fixtures
import pytest_evalarc.plugin.nodeids
import pytest_evalarc.plugin.reports
import pytest_evalarc.plugin.rework
import pytest_evalarc.plugin.running
import pytest_evalarc.plugin.scheduling
import pytest_evalarc.plugin.sharding
import pytest_evalarc.plugin.terminal
import pytest_evalarc.treatments.skills  # noqa: F401
from tests.plugin.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with one valid task; a whole audit of it takes a moment."""
    return Project(tmp_path / "project", tmp_path / "trials")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Return the arguments of a pytest with no plugin but ours and those that it stands on.

    All that are installed take most of the time in which a session is configured, and say nothing
    of how it is.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return ("-p", "evalarc", "-p", "timeout", "-p", "xdist")
