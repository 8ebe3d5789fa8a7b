"""The GitHub Action and the pre-commit hook: what they run, run in a scratch project."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.needs import needs_bwrap

ROOT = Path(__file__).parents[1]
FIRST_TASK = ROOT / "docs" / "examples" / "first-task"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
CHECK = "evals/tasks/url-slugs/checks/words_are_joined.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with one task."""
    root = tmp_path / "project"
    shutil.copytree(FIRST_TASK, root)
    (root / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return root


def expanded(text: str, inputs: dict[str, str]) -> str:
    """Return a value of a step as the runner hands it over."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name.startswith("inputs."):
            return inputs[name.removeprefix("inputs.")]
        return {"github.run_id": "7", "github.run_attempt": "1"}[name]

    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, text)


def environment(tmp_path: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    files = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output"}
    paths = {name: str(tmp_path / file) for name, file in files.items()}
    return {**env, **paths, "PATH": path, "RUNNER_TEMP": str(tmp_path)}


def run_step(name: str, project: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step as the runner does, with the defaults of the inputs."""
    inputs = {key: found["default"] for key, found in ACTION["inputs"].items()}
    inputs |= {key.replace("_", "-"): value for key, value in changes.items()}
    step = STEPS[name]
    env = {key: expanded(value, inputs) for key, value in step.get("env", {}).items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=project,
        env={**environment(project.parent), **env},
        capture_output=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )


# The action.


def test_no_input_is_put_into_the_text_of_a_script() -> None:
    """Whoever names a folder in a pull request would run commands with the rights of the job."""
    scripts = [step["run"] for step in STEPS.values() if "run" in step]

    assert len(scripts) == 5
    assert not [script for script in scripts if "${{" in script]


def test_every_step_with_a_script_names_its_shell_and_every_input_is_used_and_described() -> None:
    """A composite action is refused without the former, and misleads without the latter."""
    assert {step.get("shell") for step in STEPS.values() if "run" in step} == {"bash"}
    text = (ROOT / "action.yml").read_text("utf-8")
    for name, found in ACTION["inputs"].items():
        assert f"inputs.{name}" in text
        assert found["description"].endswith(".")
        assert isinstance(found["default"], str)


def test_the_task_of_a_project_is_checked(project: Path) -> None:
    """A task that is not valid stops the job with its problem."""
    assert run_step("Check tasks", project).returncode == 0

    (project / CHECK).unlink()
    refused = run_step("Check tasks", project)

    assert refused.returncode == 1
    assert "evals/tasks/url-slugs" in refused.stdout


@pytest.mark.slow
@needs_bwrap
def test_audits_are_compared_with_what_the_repository_accepts(
    project: Path, tmp_path: Path
) -> None:
    """A check that no longer catches its fault is told in the summary, and fails the job."""
    arguments = f"--evalarc-root={tmp_path / 'root'}"
    assert run_step("Compare", project).stdout.startswith("There are no accepted results")
    assert run_step("Audit", project, pytest_args=arguments).returncode == 0
    program = Path(sys.executable).with_name("pytest-evalarc")
    accept = [str(program), "accept", "results/ci-7-1"]
    subprocess.run(accept, cwd=project, check=True, capture_output=True)

    same = run_step("Compare", project)
    assert same.returncode == 0, same.stderr
    assert "### Nothing regressed" in (tmp_path / "summary.md").read_text("utf-8")
    output = (tmp_path / "output").read_text("utf-8")
    assert output == f"comparison={tmp_path / 'evalarc-comparison.md'}\n"

    shutil.rmtree(project / "results")
    check = (
        "def test_words_are_joined(submission):\n"
        "    assert submission.call('slugs:slug', 'a') == 'a'\n"
    )
    (project / CHECK).write_text(check, "utf-8")
    assert run_step("Audit", project, pytest_args=arguments).returncode == 1
    worse = run_step("Compare", project)

    assert worse.returncode == 1
    assert "### Something regressed" in (tmp_path / "summary.md").read_text("utf-8")
    assert run_step("Compare", project, fail_on="never").returncode == 0


# The hook.


def run_hook(project: Path) -> subprocess.CompletedProcess[str]:
    (hook,) = HOOKS
    return subprocess.run(
        [*shlex.split(hook["entry"]), *hook["args"]],
        cwd=project,
        env=environment(project.parent),
        capture_output=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )


def test_the_hook_has_what_pre_commit_asks_for() -> None:
    """It is refused otherwise, and only when somebody installs it."""
    (hook,) = HOOKS

    assert {"id", "name", "entry", "language"} <= hook.keys()
    assert hook["pass_filenames"] is False
    assert re.match(hook["files"], "evals/tasks/url-slugs/task.toml")
    assert not re.match(hook["files"], "src/evals.py")


def test_the_hook_tells_every_problem_of_a_task(project: Path) -> None:
    """Whatever else the project asks of pytest."""
    (project / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", "utf-8")
    assert run_hook(project).returncode == 0

    (project / CHECK).unlink()
    refused = run_hook(project)

    assert refused.returncode == 1
    assert "evals/tasks/url-slugs" in refused.stdout
    assert not (project / ".pytest_cache").exists()
    assert not (project / "results").exists()


# The page.


def test_the_page_lists_every_input_with_its_default() -> None:
    """A reader takes the table for whole."""
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \| (?:`([^`]*)`|empty) \|", page, re.MULTILINE)

    assert dict(listed) == {name: found["default"] for name, found in ACTION["inputs"].items()}
    assert HOOKS[0]["id"] in page
    for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        assert yaml.safe_load(block)
