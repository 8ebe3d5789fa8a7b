"""Real clients are evaluated from end to end, with a model that is scripted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import (
    KEY,
    Error,
    Hang,
    ModelServer,
    Offers,
    Quota,
    Read,
    Script,
    Usage,
    Write,
    slow,
    turn,
)
from tests.model_server.tasks import taught
from tests.needs import needs_srt
from tests.system.evaluation import EVALS, MODELS, SMALL_SOLUTION, Evaluation, TasksProject

pytestmark = [pytest.mark.slow, needs_srt, pytest.mark.timeout(580)]

TRIALS = 2
"""So few show a mean over trials, and rounds that begin with either configuration."""
TURN_TOKENS = sum(vars(Usage()).values())
SKILLS = {"store-durability": "fixture-store", "settings-durability": "fixture-settings"}
SERVED = {"claude": [MODELS["claude"]], "codex": []}
"""Models that answered, as clients tell them; Codex does not."""


@pytest.fixture(params=SKILLS)
def task(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_treatment_that_helps_is_measured(
    task: str,
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: Callable[..., Evaluation],
) -> None:
    """The whole of the plugin in one claim: what is known to help must be found to help."""
    model_server.add(task, taught(EVALS / "tasks" / task))
    project_with_tasks.add_client(client_name, task)

    ended = run_pytest(
        *("--evalarc-task", task, "--evalarc-client", client_name, "-m", "evalarc_trial"),
        *("--evalarc-trials", str(TRIALS), "--evalarc-treatment", "skills"),
    )

    assert ended.ret == 0, ended.output
    benchmark = ended.benchmark(task, client_name)
    without, treated = (
        benchmark["configurations"][name] for name in ("without-skills", "with-skills")
    )
    assert (benchmark["selection"], benchmark["isolation"]) == ("complete", "enforced")
    every = {"planned": TRIALS, "eligible": TRIALS}
    assert counts(without) == {**every, "succeeded": 0, "failed": TRIALS}
    assert counts(treated) == {**every, "succeeded": TRIALS, "failed": 0}
    assert without["causes"]["failed"] == {"code": TRIALS}
    assert treated["observed_load"] == {
        SKILLS[task]: {"loaded": TRIALS, "attempted": 0, "not_observed": 0, "unknown": 0}
    }
    assert benchmark["delta"]["success_rate"] == 1.0
    # Both clients play the same turns, and count a turn's tokens the same way.
    assert tokens(without) == {"mean": 3 * TURN_TOKENS, "trials": TRIALS}
    assert tokens(treated) == {"mean": 4 * TURN_TOKENS, "trials": TRIALS}
    for result in ended.trials(task, client_name).values():
        assert result["execution"] == "completed"
        isolation = result["isolation"]
        assert (isolation["mode"], isolation["record"]["sandbox"]) == ("enforced", "srt")
        assert (isolation["audit_findings"], isolation["config_changes"]) == ([], [])
        assert result["model"]["served"] == SERVED[client_name]
    assert_sessions_were_apart(model_server, task, project_with_tasks.eval_root)
    assert [path for path in files(ended.results) if KEY.encode() in path.read_bytes()] == []


def counts(configuration: dict[str, Any]) -> dict[str, int]:
    return {name: configuration[name] for name in ("planned", "eligible", "succeeded", "failed")}


def tokens(configuration: dict[str, Any]) -> dict[str, Any]:
    return configuration["cost"]["eligible"]["tokens"]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def assert_sessions_were_apart(server: ModelServer, task: str, eval_root: Path) -> None:
    """Each trial is a session of its own, in a folder of its own, and offered what was planned."""
    turns = server.turns(task)
    folders = {request.session: request.conversation.folder for request in turns}
    assert len(folders) == len(set(folders.values())) == 2 * TRIALS
    assert all(Path(folder).is_relative_to(eval_root) for folder in folders.values())
    assert {request.has_key for request in server.requests} == {True}
    for request in turns:
        is_treated = Path(request.conversation.folder).parent.name.endswith("-with-skills")
        assert Offers(SKILLS[task]).holds(request.conversation) == is_treated


SOLVED = (Read("doubling.py"), Write("doubling.py", SMALL_SOLUTION))

ENDS = {
    "bad-request": (Script.of(*SOLVED, Error(400)), "client_error", "api_refused"),
    "no-such-key": (Script.of(Error(401)), "client_error", "api_refused"),
    "no-such-model": (Script.of(Error(404)), "client_error", "api_refused"),
    "no-credit": (Script.of(Quota()), "client_error", "api_refused"),
    "too-many": (Script.of(Error(429)), "client_error", "api_unavailable"),
    "overloaded": (Script.of(*SOLVED, Error(529)), "client_error", "api_unavailable"),
    "busy-once": (Script.of(turn(Error(529, times=1), SOLVED[0]), SOLVED[1]), "completed", None),
}
"""What the model does, and how the session and the trial end for it."""


def test_a_session_that_fails_is_told_by_its_cause(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: Callable[..., Evaluation],
) -> None:
    """Who reads a rate must know whether the agent failed, or an account that ran dry."""
    project_with_tasks.add_small_task("doubling")
    for label, (script, _, _) in ENDS.items():
        model_server.add(label, script)
        settings = {"max_retries": 1}
        project_with_tasks.add_client(client_name, label, label=label, settings=settings)
    chosen = (word for label in ENDS for word in ("--evalarc-client", label))

    ended = run_pytest("--evalarc-task", "doubling", *chosen, "-m", "evalarc_trial", "-n", "2")

    assert ended.ret == 0, ended.output
    found = {label: end_of(ended, label) for label in ENDS}
    assert found == {label: (execution, cause) for label, (_, execution, cause) in ENDS.items()}
    (left,) = ended.trials("doubling", "bad-request").values()
    assert left["code"]["hidden"] == {"doubles": "pass"}


@pytest.mark.parametrize("stuck", [Hang(), slow(600)], ids=["silent-model", "slow-tool"])
def test_a_session_without_end_is_cut_at_its_deadline(
    stuck: Any,
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: Callable[..., Evaluation],
) -> None:
    """It fails for its time, what it left by then is graded, and nothing of it goes on."""
    project_with_tasks.add_small_task("doubling", agent_s=10)
    model_server.add("stuck", Script.of(*SOLVED, stuck))
    project_with_tasks.add_client(client_name, "stuck")

    ended = run_pytest(
        *("--evalarc-task", "doubling", "--evalarc-client", client_name, "-m", "evalarc_trial")
    )

    assert ended.ret == 0, ended.output
    (result,) = ended.trials("doubling", client_name).values()
    assert (result["execution"], result["cause"]["kind"]) == ("timeout", "timeout")
    assert result["outcome"] == "failed"


def end_of(ended: Evaluation, label: str) -> tuple[str, str | None]:
    """Return how the one session of a label ended, and what its trial failed for."""
    (result,) = ended.trials("doubling", label).values()
    return result["execution"], result["cause"] and result["cause"]["kind"]
