"""What a user can get wrong with a real client: each is a sentence before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import ModelServer
from tests.needs import needs_codex, needs_srt
from tests.system.evaluation import KEYS, Evaluation, TasksProject
from tests.system.small import TASK, add_small_task, solved

pytestmark = [pytest.mark.slow, needs_srt, pytest.mark.timeout(300)]

RunPytest = Callable[..., Evaluation]
ONE = ("--evalarc-task", TASK, "-m", "evalarc_trial", "--evalarc-configuration", "without")


@pytest.mark.parametrize(
    "prompt",
    [
        "'--help me with \"slugs.py\" and $HOME; write `slug`'",
        f'"Write `slug` in slugs.py. {"Take your time. " * 9000}"',
    ],
    ids=["begins with a dash", "over 128 KiB"],
)
def test_a_prompt_arrives_as_it_was_written(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
    prompt: str,
) -> None:
    """No shell, no option parser and no size of an argument stands between task and model."""
    project = project_with_tasks
    folder = add_small_task(project, prompt=prompt)
    model_server.add("work", solved(folder))
    project.add_client(client_name, "work")

    ended = run_pytest(*ONE, "--evalarc-client", client_name)

    assert ended.ret == 0, ended.output
    (result,) = ended.trials(TASK, client_name).values()
    assert result["outcome"] == "succeeded", result["cause"]
    openings = [turn.conversation.opening for turn in model_server.turns("work")]
    assert openings and all(prompt[1:-1] in opening for opening in openings)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"key": None}, "is not set, and the client is to get it"),
        ({"key": "short"}, "holds fewer than 8 bytes, so it is no key"),
        ({"base_url": "127.0.0.1:1"}, "base_url"),
        ({"settings": {"effrt": "low"}}, "takes no setting 'effrt'"),
        ({"options": ("--evalarc-sandbox", "bwrap")}, "has no network"),
        ({"options": ("--evalarc-max-cost-usd", "1")}, "cost"),
        ({"options": ("--evalarc-treatment", "plugin")}, "plugin"),
    ],
    ids=["no key", "short key", "bad URL", "bad setting", "no network", "no cost", "no plugins"],
)
@needs_codex
def test_what_cannot_be_run_is_told_in_a_sentence_before_anything_starts(
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    sentence: str,
) -> None:
    """A setup failure is final, and each of these is the user's to mend."""
    project = project_with_tasks
    folder = add_small_task(project)
    model_server.add("work", solved(folder))
    url = {"base_url": change["base_url"]} if "base_url" in change else {}
    project.add_client("codex", "work", settings={**change.get("settings", {}), **url})
    if "key" in change:
        kept = {name: value for name, value in project.env.items() if name != KEYS["codex"]}
        given = kept if change["key"] is None else {**kept, KEYS["codex"]: change["key"]}
        monkeypatch.setattr(TasksProject, "env", given)

    ended = project.pytest(*ONE, "--evalarc-client", "codex", *change.get("options", ()))

    told = " ".join(ended.output.split())
    assert ended.ret != 0, ended.output
    assert sentence in told and "Traceback" not in told
    assert model_server.turns("work") == []
    assert not list(Path(ended.results).glob(f"{TASK}/codex/*/trial-*/result.json"))
