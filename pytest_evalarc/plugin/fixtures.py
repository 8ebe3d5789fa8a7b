"""The fixtures of evals; a conftest may override any of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin.session import EvalSession, TrialHandle

SESSION = pytest.StashKey[EvalSession]()


@pytest.fixture(scope="session")
def evalarc_session(request: pytest.FixtureRequest) -> EvalSession:
    """What this process holds of the evals."""
    return request.config.stash[SESSION]


@pytest.fixture(scope="session")
def evalarc_sandbox(evalarc_session: EvalSession) -> Sandbox:
    """The sandbox of submissions and embedded clients; override it to bring another."""
    return evalarc_session.default_sandbox


@pytest.fixture(scope="module")
def evalarc_task(request: pytest.FixtureRequest, evalarc_session: EvalSession) -> Task:
    """The task of the items below one task.toml."""
    return evalarc_session.task(request.path.parent)


@pytest.fixture(scope="class")
def evalarc_trial(
    request: pytest.FixtureRequest, evalarc_sandbox: Sandbox
) -> Iterator[TrialHandle]:
    """One trial: it runs when its result is first asked for, and only once in all processes."""
    handle: TrialHandle = request.node.trial
    handle.use(evalarc_sandbox)
    yield handle
