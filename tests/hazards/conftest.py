"""Projects, tasks and graders of the other floors, for tests of what they do together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.grading.conftest import bench, small_task, staged
from tests.plugin.project import Project
from tests.runs.conftest import eval_root, make
from tests.tasks.project import Project as TaskProject

__all__ = ["bench", "eval_root", "make", "small_task", "staged"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with one valid task that is graded by the shell."""
    return Project(tmp_path / "project", tmp_path / "trials")


@pytest.fixture
def written(tmp_path: Path) -> TaskProject:
    """Return a project with one valid task that is only read, never run."""
    return TaskProject(tmp_path / "written")
