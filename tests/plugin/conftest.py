"""The project that pytest is run in."""

from __future__ import annotations

from pathlib import Path

import pytest

# A pytest inside this process drops what it was the first to import; half of a package imported
# twice would then compare unequal to the other half.
import pytest_evalarc.plugin.fixtures
import pytest_evalarc.plugin.nodeids
import pytest_evalarc.plugin.nodes
import pytest_evalarc.plugin.reports
import pytest_evalarc.plugin.scheduling
import pytest_evalarc.plugin.terminal
import pytest_evalarc.registry.builtin  # noqa: F401
from tests.plugin.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with one valid task; a whole audit of it takes a moment."""
    return Project(tmp_path / "project", tmp_path / "trials")
