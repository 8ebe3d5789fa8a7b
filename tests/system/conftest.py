"""Real clients, a model that is scripted, and projects with tasks to give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.needs import needs_claude, needs_codex
from tests.system.bare import BareClient
from tests.system.evaluation import Evaluation, TasksProject


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """Return a running server without scripts; tests add theirs."""
    with ModelServer() as server:
        yield server


@pytest.fixture(
    params=[pytest.param("claude", marks=needs_claude), pytest.param("codex", marks=needs_codex)]
)
def client_name(request: pytest.FixtureRequest) -> str:
    """Return the name of each real client in turn."""
    return request.param


@pytest.fixture
def bare(client_name: str, tmp_path: Path, model_server: ModelServer) -> BareClient:
    """Return each real client, in folders of the test's own."""
    return BareClient(client_name, tmp_path, model_server)


@pytest.fixture
def project_with_tasks(tmp_path: Path, model_server: ModelServer) -> TasksProject:
    """Return a project that holds the shipped tasks, without a client yet."""
    return TasksProject(tmp_path, model_server)


@pytest.fixture
def run_pytest(project_with_tasks: TasksProject) -> Callable[..., Evaluation]:
    """Return what runs pytest in that project, with a cleared environment."""
    return project_with_tasks.pytest
