"""What the commands on tasks know of the project around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.cli.project import project_root


@pytest.mark.parametrize("file", ["pytest.ini", "pyproject.toml", "setup.py"])
def test_the_root_is_the_nearest_folder_that_says_so(tmp_path: Path, file: str) -> None:
    """Plugins are named by their paths from there, as pytest names them."""
    inner = tmp_path / "inner"
    (inner / "evals/tasks").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (inner / file).touch()

    assert project_root(inner / "evals/tasks") == inner
    assert project_root(inner) == inner
    assert project_root(tmp_path) == tmp_path


def test_without_such_a_file_there_is_no_root() -> None:
    """The file system's own root has none, and nothing is above it."""
    assert project_root(Path("/")) is None
