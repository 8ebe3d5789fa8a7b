"""Real agents that try what they must not be able to do, in sessions as users run them."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cargo_agents.build import build
from tests.model_server import KEY, ModelServer, Run, Script, slow
from tests.needs import needs_srt
from tests.system.evaluation import Evaluation, TasksProject
from tests.system.small import SKILL, TASK, add_small_task, solved

pytestmark = [pytest.mark.slow, needs_srt, pytest.mark.timeout(300)]

RunPytest = Callable[..., Evaluation]
TRIALS = ("--evalarc-task", TASK, "-m", "evalarc_trial", "--evalarc-batch", "b1")


def said(ended: Evaluation, client: str, trial: str) -> str:
    """Return all that a session's client printed."""
    return (ended.folder(TASK, client, trial) / "transcript.jsonl").read_text("utf-8")


def outcome(result: dict[str, Any]) -> tuple[str, str | None]:
    return result["outcome"], (result["cause"] or {}).get("kind")


def marked(*paths: Path) -> dict[Path, str]:
    """Plant a secret word in each file, and return the words."""
    words = {}
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        words[path] = f"planted-secret-{number}-word"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n# {words[path]}\n")
    return words


def test_an_agent_can_read_nothing_around_its_trial(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
    tmp_path: Path,
) -> None:
    """It knows every path by name: other trials, checks, solution, results and the home."""
    project = project_with_tasks
    folder = add_small_task(project)
    project.add_client(client_name, "look")
    work = solved(folder)
    other_run = project.eval_root / "b0" / TASK / client_name / "trial-1-with-skills"
    words = marked(
        folder / "checks/words_are_joined.py",
        folder / "solution/slugs.py",
        folder / "task.toml",
        project.results / "old/result.json",
        other_run / "project/slugs.py",
        project.eval_root / "b1/tools/skills/program",
        Path(project.env["HOME"]) / ".netrc",
        tmp_path / "denied/data",
    )
    tries = "; ".join(f"cat {shlex.quote(str(path))}" for path in words)
    links = f"ln -s {shlex.quote(str(folder))} way; cat way/checks/*; rm way"
    proc = "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c EVALARC_SECRET; cat /etc/shadow"
    model_server.add("look", Script.of(Run(f"{tries}; {links}; {proc}")) + work)

    ended = run_pytest(
        *TRIALS,
        *("--evalarc-client", client_name, "--evalarc-configuration", "without"),
        f"--evalarc-deny-read={tmp_path / 'denied'}",
    )

    assert ended.ret == 0, ended.output
    (result,) = ended.trials(TASK, client_name).values()
    assert outcome(result) == ("succeeded", None), ended.output
    stream = said(ended, client_name, "trial-1-without-skills")
    assert [str(path) for path, word in words.items() if word in stream] == []
    assert "root:" not in stream
    assert KEY not in stream


def test_a_baseline_reaches_its_treatment_by_no_name_and_no_path(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
    tmp_path: Path,
) -> None:
    """The program is installed for the developer and staged for the other arm all the while."""
    project = project_with_tasks
    folder = add_small_task(project, expected="")
    project.add_client(client_name, "reach")
    program = build(tmp_path / "home/.cargo/bin")
    staged = project.eval_root / "b1/tools/symposium/cargo-agents"
    tries = [
        "command -v cargo-agents && echo REACHED by name",
        *(
            f"{verb} {shlex.quote(str(path))} >/dev/null 2>&1 && echo REACHED by {verb}"
            for path in (program, staged)
            for verb in ("cat", "sh", "ls")
        ),
    ]
    script = Script.of(Run("; ".join([*tries, "true"])))
    model_server.add("reach", solved(folder, script))

    ended = run_pytest(
        *TRIALS,
        *("--evalarc-client", client_name, "--evalarc-treatment", "symposium"),
        f"--evalarc-symposium={program}",
    )

    assert ended.ret == 0, ended.output
    results = ended.trials(TASK, client_name)
    baseline = results["trial-1-without-symposium"]
    assert outcome(baseline)[0] == "succeeded", ended.output
    results_of_tools = said(ended, client_name, "trial-1-without-symposium")
    assert "REACHED by" not in _tool_output(results_of_tools)
    assert any("cargo-agents" in line for line in baseline["isolation"]["audit_findings"])
    # The other arm, with the same script, shows that the tries themselves are right.
    treated = said(ended, client_name, "trial-1-with-symposium")
    assert "REACHED by name" in _tool_output(treated)


def _tool_output(stream: str) -> str:
    """Return what came back from tools, without the commands that asked for it."""
    output = []
    for line in stream.splitlines():
        event = json.loads(line)
        item = event.get("item", {})
        output.append(str(item.get("aggregated_output", "")))
        for block in event.get("message", {}).get("content", ()):
            if isinstance(block, dict) and block.get("type") == "tool_result":
                output.append(json.dumps(block["content"]))
    return "\n".join(output)


def test_a_deadline_leaves_no_process_and_loses_no_usage(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
) -> None:
    """The agent's tools run in sessions of their own, and ignore every polite signal."""
    project = project_with_tasks
    folder = add_small_task(project, deadline_s=12)
    project.add_client(client_name, "late")
    # By this number of seconds no process of another test is taken for one of this.
    seconds = str(10_000_000 + secrets.randbelow(10_000_000))
    stubborn = f"trap '' TERM INT HUP; exec python3 -c 'import time; time.sleep({seconds})'"
    escape = Run(f"setsid sh -c {shlex.quote(stubborn)} >/dev/null 2>&1 & echo started")
    model_server.add("late", solved(folder, Script.of(escape, slow(600))))

    ended = run_pytest(
        *TRIALS, "--evalarc-client", client_name, "--evalarc-configuration", "without"
    )

    assert ended.ret == 0, ended.output
    (result,) = ended.trials(TASK, client_name).values()
    assert result["execution"] == "timeout"
    assert outcome(result) == ("failed", "timeout")
    assert result["usage"] is not None and result["usage"]["output_tokens"] > 0
    assert result["isolation"]["audit_findings"] == []
    assert [process.pid for process in psutil.process_iter() if _has(process, seconds)] == []


def _has(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in argument for argument in process.cmdline())
    except psutil.Error:
        return False


def test_trials_of_both_arms_run_side_by_side(
    client_name: str,
    model_server: ModelServer,
    project_with_tasks: TasksProject,
    run_pytest: RunPytest,
) -> None:
    """Two workers share the staged tools, and nothing of their trials."""
    project = project_with_tasks
    folder = add_small_task(project)
    project.add_client(client_name, "work")
    model_server.add("work", solved(folder))

    ended = run_pytest(*TRIALS, "--evalarc-client", client_name, "--evalarc-trials", "2", "-n", "2")

    assert ended.ret == 0, ended.output
    results = ended.trials(TASK, client_name)
    assert {name: outcome(result) for name, result in results.items()} == dict.fromkeys(
        (f"trial-{n}-{arm}-skills" for n in (1, 2) for arm in ("with", "without")),
        ("succeeded", None),
    )
    loads = ended.benchmark(TASK, client_name)["configurations"]["with-skills"]["observed_load"]
    assert loads[SKILL]["loaded"] == 2
