"""The small task, and staged tools that all tests of one process share."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains.python import Python
from tests.grading.small_task import Bench, SmallTask, make_small_task


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """Tools as a batch stages them; nothing that is graded can write there."""
    folder = tmp_path_factory.mktemp("tools")
    python = Python()
    python.stage(folder)
    return python.tools(folder)


@pytest.fixture
def small_task(tmp_path: Path) -> SmallTask:
    return make_small_task(tmp_path / "project")


@pytest.fixture
def bench(tmp_path: Path, staged: Tools, small_task: SmallTask) -> Bench:
    root = tmp_path / "bench"
    root.mkdir()
    return Bench(root=root, tools=staged, task=small_task)
