"""Clients in their own sandboxes: labelled, audited, and never compared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model_server import ModelServer, Run, Script
from tests.system.evaluation import Evaluation, TasksProject
from tests.system.small import TASK, add_small_task, solved

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_an_exploratory_run_is_labelled_audited_and_not_compared(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: Callable[..., Evaluation],
) -> None:
    """Nobody has proven what the client's own sandbox keeps out, so no rate rests on it."""
    project = project_with_tasks
    folder = add_small_task(project)
    look = Run("cat /etc/hostname; cat /srv/elsewhere/notes; true")
    model_server.add("work", solved(folder, Script.of(look)))
    project.add_client(client_name, "work")

    ended = run_pytest(
        *("--evalarc-task", TASK, "-m", "evalarc_trial", "--evalarc-exploratory"),
        *("--evalarc-client", client_name),
    )

    assert ended.ret == 0, ended.output
    benchmark = ended.benchmark(TASK, client_name)
    assert benchmark["isolation"] == "exploratory"
    assert benchmark["delta"] is None or benchmark["delta"]["success_rate"] is None
    assert "such trials are not compared" in ended.output
    for result in ended.trials(TASK, client_name).values():
        assert result["execution"] == "completed", result["fault"]
        assert result["isolation"]["mode"] == "exploratory"
        assert result["outcome"] == "succeeded", result["cause"]
        assert any("/srv/elsewhere" in line for line in result["isolation"]["audit_findings"])
