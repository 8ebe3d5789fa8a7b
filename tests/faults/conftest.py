"""Projects whose sessions go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.inject import Faulty, Seen, build
from tests.plugin.project import Project


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library that injects faults, compiled once."""
    return build(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def faulty(tmp_path: Path, library: Path) -> Faulty:
    """Return a project whose sessions can go wrong at a call."""
    return Faulty(tmp_path, library)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Seen:
    """Return what a session does at which nothing goes wrong."""
    seen = Faulty(tmp_path_factory.mktemp("undisturbed"), library).session()
    assert seen.status == 0, seen.output
    return seen


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with one valid task, whose sessions the machine interferes with."""
    return Project(tmp_path / "project", tmp_path / "trials")
