"""The fixtures of evals; a conftest may override any of them.

This module is registered with the plugin, so it stays light.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_evalarc.isolation.command import Sandbox
    from pytest_evalarc.model.task import Task
    from pytest_evalarc.plugin.session import EvalSession, TrialHandle


@pytest.fixture(scope="session")
def evalarc_session(request: pytest.FixtureRequest) -> EvalSession:
    """What this process holds of the evals."""
    from pytest_evalarc.plugin.entry import active_session

    evals = active_session(request.config)
    if evals is None:
        raise AssertionError("the fixtures of evals are registered by the active plugin alone")
    return evals


@pytest.fixture(scope="session")
def evalarc_sandbox(evalarc_session: EvalSession) -> Sandbox:
    """The sandbox of submissions and embedded clients; override it to bring another."""
    return evalarc_session.default_sandbox


@pytest.fixture(scope="module")
def evalarc_task(request: pytest.FixtureRequest, evalarc_session: EvalSession) -> Task:
    """The task of the items below one task.toml, or each selected task in an ordinary test."""
    from pytest_evalarc.errors import EvalArcError

    try:
        return evalarc_session.task(getattr(request, "param", request.path.parent))
    except EvalArcError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="class")
def evalarc_trial(
    request: pytest.FixtureRequest, evalarc_sandbox: Sandbox
) -> Iterator[TrialHandle]:
    """One trial: it runs when its result is first asked for, and only once in all processes."""
    from pytest_evalarc.errors import EvalArcError

    # In an ordinary test a parameter, and below a task.toml the node whose fixture this is.
    found: TrialHandle | EvalArcError
    found = request.param if hasattr(request, "param") else request.node.trial
    if isinstance(found, EvalArcError):
        pytest.fail(str(found), pytrace=False)
    found.use(evalarc_sandbox)
    yield found
