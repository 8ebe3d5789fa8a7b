"""Every treatment with a real client: what it puts in place is seen, used and judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cargo_agents.build import build
from tests.model_server import ModelServer, Read, Run, Says, Script, Skill
from tests.model_server.tasks import half, solve
from tests.needs import needs, needs_claude, needs_srt
from tests.system.evaluation import EVALS, Evaluation, TasksProject
from tests.system.small import SKILL, TASK, add_small_task, solved

pytestmark = [pytest.mark.slow, needs_srt, pytest.mark.timeout(400)]

RunPytest = Callable[..., Evaluation]
RUST_TASK = "store-durability"
RUST_SKILL = "fixture-store"


SKILL_FOLDERS = {"claude": ".claude/skills", "codex": ".agents/skills"}
TREATED = Says("-with-symposium/")
"""What tells a treated session from a baseline's: a client lists its skills before its hooks have
run, so what a sync has just installed is not among them, and an agent finds it by looking."""


def synced(client: str) -> Script:
    """Return a session that reads what Symposium installed, and solves the task by that alone."""
    task, skill_file = EVALS / "tasks" / RUST_TASK, f"{SKILL_FOLDERS[client]}/{RUST_SKILL}/SKILL.md"
    found = Script.of(Read(skill_file)) + solve(task)
    return found.only(when=TREATED) + half(task).only(unless=TREATED)


def verdicts(result: dict[str, Any]) -> dict[str, str | None]:
    return {each["name"]: each["verdict"] for each in result["expectations"]["decisions"]}


def grounds(result: dict[str, Any], name: str) -> str:
    (decision,) = (d for d in result["expectations"]["decisions"] if d["name"] == name)
    return "; ".join(decision["rests_on"])


@needs("cargo")
def test_symposium_installs_in_the_session_and_is_judged_by_what_that_shows(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
    tmp_path: Path,
) -> None:
    """Its hooks fire, its sync installs the skill, the agent uses it, and the delta is measured."""
    project = project_with_tasks
    model_server.add("synced", synced(client_name))
    project.add_client(client_name, "synced")
    program = build(tmp_path / "opt")

    ended = run_pytest(
        *("--evalarc-task", RUST_TASK, "-m", "evalarc_trial", "--evalarc-batch", "b1"),
        *("--evalarc-client", client_name, "--evalarc-treatment", "symposium"),
        f"--evalarc-symposium={program}",
    )

    assert ended.ret == 0, ended.output
    results = ended.trials(RUST_TASK, client_name)
    baseline, treated = (results[f"trial-1-{arm}-symposium"] for arm in ("without", "with"))
    assert treated["outcome"] == "succeeded", (treated["cause"], treated["expectations"])
    assert (baseline["outcome"], baseline["cause"]["kind"]) == ("failed", "code")
    assert set(verdicts(treated).values()) == {"pass"}
    assert treated["expectations"]["sync"] == {
        "skill_dir_empty_before": "pass",
        "session_start": "pass",
        "sync_recorded": "pass",
    }
    facts = treated["expectations"]["skills"][RUST_SKILL]
    assert (facts["installed"], facts["used"], facts["observed_load"]) == ("pass", "pass", "loaded")
    assert treated["symposium"]["version"] and len(treated["symposium"]["sha256"]) == 64
    assert baseline["symposium"] is None and baseline["expectations"] is None
    kept = ended.folder(RUST_TASK, client_name, "trial-1-with-symposium")
    records = (kept / "hook-trace.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(record)["event"] for record in records]
    assert "SessionStart" in events
    assert ended.benchmark(RUST_TASK, client_name)["delta"]["success_rate"] == 1.0


@needs("cargo")
@pytest.mark.parametrize(
    "attack",
    [
        ("echo '{}' >> \"$SYMPOSIUM_HOOK_TRACE\"", "evidence"),
        ("echo '# mine' >> \"$HOME/.symposium/config.toml\"", ".symposium/config.toml"),
    ],
    ids=["record", "configuration"],
)
def test_an_agent_that_touches_the_evidence_makes_it_inconclusive(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    tmp_path: Path,
    attack: tuple[str, str],
) -> None:
    """What an agent may have written is no proof of what hooks did, in neither direction."""
    project, (tampering, told) = project_with_tasks, attack
    model_server.add("tamper", Script.of(Run(tampering)) + synced(client_name))
    project.add_client(client_name, "tamper")
    program = build(tmp_path / "opt")

    ended = project.pytest(
        *("--evalarc-task", RUST_TASK, "-m", "evalarc_trial", "--evalarc-configuration", "with"),
        *("--evalarc-client", client_name, "--evalarc-treatment", "symposium"),
        f"--evalarc-symposium={program}",
    )

    assert ended.ret == 0, ended.output
    (result,) = ended.trials(RUST_TASK, client_name).values()
    assert result["outcome"] == "inconclusive", (result["cause"], result["expectations"])
    assert result["expectations"]["sync"]["session_start"] == "inconclusive"
    assert told in json.dumps(result["expectations"]["decisions"])


@needs_claude
def test_a_plugin_is_loaded_used_and_witnessed(
    model_server: ModelServer, project_with_tasks: TasksProject, run_pytest: RunPytest
) -> None:
    """The client says that the hook ran, and so does the hook's own witness."""
    project = project_with_tasks
    folder = add_small_task(
        project, expected=f'installed = ["{SKILL}"]\nused = ["{SKILL}"]\nhooks = ["SessionStart"]'
    )
    plugin = project.root / "evals/plugins" / SKILL
    (plugin / "hooks").mkdir()
    hook = {"type": "command", "command": "cat >/dev/null; echo ready"}
    (plugin / "hooks/hooks.json").write_text(
        json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}]}})
    )
    model_server.add("work", solved(folder))
    project.add_client("claude", "work")

    ended = run_pytest(
        *("--evalarc-task", TASK, "-m", "evalarc_trial"),
        *("--evalarc-client", "claude", "--evalarc-treatment", "plugin"),
    )

    assert ended.ret == 0, ended.output
    results = ended.trials(TASK, "claude")
    treated = results["trial-1-with-plugin"]
    assert treated["outcome"] == "succeeded", (treated["cause"], treated["expectations"])
    assert set(verdicts(treated).values()) == {"pass"}
    assert treated["expectations"]["skills"][SKILL]["observed_load"] == "loaded"
    assert results["trial-1-without-plugin"]["outcome"] == "succeeded"


def test_in_noise_the_skill_is_used_among_all_other_plugins(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
) -> None:
    """What the session lists is the planned set with the noise, and that voids nothing."""
    project = project_with_tasks
    folder = add_small_task(project, expected=f'used = ["{SKILL}"]\nnot_used = ["{RUST_SKILL}"]')
    model_server.add("noise", solved(folder))
    project.add_client(client_name, "noise")

    ended = run_pytest(
        *("--evalarc-task", TASK, "-m", "evalarc_trial"),
        *("--evalarc-client", client_name, "--evalarc-configuration", "noise"),
    )

    assert ended.ret == 0, ended.output
    (result,) = ended.trials(TASK, client_name).values()
    assert result["outcome"] == "succeeded", (result["cause"], result["expectations"])
    assert verdicts(result) == {f"used-{SKILL}": "pass", f"not_used-{RUST_SKILL}": "pass"}


def test_a_skill_that_is_asked_for_and_not_there_is_attempted_and_not_loaded(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
) -> None:
    """A failed attempt delivered nothing, so it is no use; it is reported all the same."""
    project = project_with_tasks
    folder = add_small_task(project, expected=f'not_used = ["{RUST_SKILL}"]')
    attempt = Script.of(Skill(RUST_SKILL, anyway=True))
    model_server.add("attempt", solved(folder, attempt))
    project.add_client(client_name, "attempt")

    ended = run_pytest(
        *("--evalarc-task", TASK, "-m", "evalarc_trial", "--evalarc-configuration", "with"),
        *("--evalarc-client", client_name),
    )

    assert ended.ret == 0, ended.output
    (result,) = ended.trials(TASK, client_name).values()
    assert verdicts(result) == {f"not_used-{RUST_SKILL}": "pass"}, grounds(
        result, f"not_used-{RUST_SKILL}"
    )
    assert result["expectations"]["skills"][RUST_SKILL]["observed_load"] == "attempted"
