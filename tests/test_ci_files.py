"""The GitHub Action and the pre-commit hook: what they run, run in a scratch project."""

from __future__ import annotations

import json
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

from tests.needs import needs, needs_bwrap

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


def expanded(text: str, inputs: dict[str, str], comparison: Path) -> str:
    """Return a value of a step as the runner hands it over."""
    known = {
        "github.run_id": "7",
        "github.run_attempt": "1",
        "github.event.pull_request.number": "12",
        "github.event.pull_request.head.sha": "c0ffee",
        "steps.compare.outputs.comparison": str(comparison),
        **{f"inputs.{name}": value for name, value in inputs.items()},
    }
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], text)


def environment(tmp_path: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    folders = (tmp_path / "bin", Path(sys.executable).parent, env["PATH"])
    path = os.pathsep.join(map(str, folders))
    files = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output"}
    paths = {name: str(tmp_path / file) for name, file in files.items()}
    named = {
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_WORKFLOW": "evaluations",
        "GITHUB_JOB": "audit",
    }
    return {**env, **paths, **named, "PATH": path, "RUNNER_TEMP": str(tmp_path)}


def run_step(name: str, project: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step as the runner does, with the defaults of the inputs."""
    inputs = {key: found["default"] for key, found in ACTION["inputs"].items()}
    inputs |= {key.replace("_", "-"): value for key, value in changes.items()}
    step = STEPS[name]
    comparison = project.parent / "evalarc-comparison.md"
    env = {key: expanded(value, inputs, comparison) for key, value in step.get("env", {}).items()}
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

    assert len(scripts) == 6
    assert not [script for script in scripts if "${{" in script]


def test_every_step_with_a_script_names_its_shell_and_every_input_is_used_and_described() -> None:
    """A composite action is refused without the former, and misleads without the latter."""
    assert {step.get("shell") for step in STEPS.values() if "run" in step} == {"bash"}
    text = (ROOT / "action.yml").read_text("utf-8")
    for name, found in ACTION["inputs"].items():
        assert f"inputs.{name}" in text
        assert found["description"].endswith(".")
        assert isinstance(found["default"], str)


@pytest.mark.slow
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


# The comment.

GH = """\
#!{python}
import json, os, subprocess, sys
from pathlib import Path

args, here = sys.argv[1:], Path(__file__).parent
state = json.loads((here / "comments.json").read_text("utf-8"))
(here / "host").write_text(os.environ["GH_HOST"] + " " + os.environ["GH_TOKEN"], "utf-8")
with (here / "calls").open("a", encoding="utf-8") as calls:
    print(*args[:2], file=calls)
option = lambda name: args[args.index(name) + 1]
if (here / "refuses").read_text("utf-8") == args[1]:
    print("gh: Resource not accessible by integration (HTTP 403)", file=sys.stderr)
    print("and more", file=sys.stderr)
    sys.exit(1)
if args[0] == "pr":
    assert args[2:5] == ["12", "--repo", "owner/project"], args
if args[1] == "view":
    assert option("--json") == "comments"
    asked = ["jq", "--raw-output", option("--jq")]
    sys.exit(subprocess.run(asked, input=json.dumps({{"comments": state}}), text=True).returncode)
if args[1] == "comment":
    url = "https://github.example/owner/project/pull/12#issuecomment-" + str(len(state))
    body = Path(option("--body-file")).read_text("utf-8")
    state.append({{"url": url, "viewerDidAuthor": True, "body": body}})
    print(url)
else:
    assert args[0] == "api" and option("--method") == "PATCH", args
    number = int(args[-1].removeprefix("repos/owner/project/issues/comments/"))
    file = option("--field").removeprefix("body=@")
    state[number]["body"] = Path(file).read_text("utf-8")
(here / "comments.json").write_text(json.dumps(state), "utf-8")
"""
"""GitHub's program as far as the action uses it: it keeps the comments of one pull request."""

needs_jq = needs("jq")
"""What `gh` has built in, and its stand-in has not."""


@pytest.fixture
def pull(tmp_path: Path) -> Path:
    """Return the folder of a stand-in for `gh`, with the comments of others on a pull request."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(GH.format(python=sys.executable), "utf-8")
    (folder / "gh").chmod(0o755)
    (folder / "refuses").write_text("", "utf-8")
    marker = "<!-- pytest-evalarc 1 -->"
    others = [
        {"viewerDidAuthor": True, "body": f"Another program quotes {marker}."},
        {"viewerDidAuthor": False, "body": marker},
    ]
    url = "https://github.example/owner/project/pull/12#issuecomment"
    numbered = [{"url": f"{url}-{number}", **other} for number, other in enumerate(others)]
    (folder / "comments.json").write_text(json.dumps(numbered), "utf-8")
    (tmp_path / "evalarc-comparison.md").write_text("### Nothing regressed\n", "utf-8")
    return folder


def comments(pull: Path) -> list[str]:
    return [found["body"] for found in json.loads((pull / "comments.json").read_text("utf-8"))]


def calls(pull: Path) -> list[str]:
    return (pull / "calls").read_text("utf-8").splitlines()


@pytest.mark.slow
@needs_jq
def test_a_later_push_updates_the_comment_of_the_first(project: Path, pull: Path) -> None:
    """A comment for each push would bury the conversation."""
    first = run_step("Comment", project, token="t0k3n")
    assert (first.returncode, first.stderr) == (0, "")
    assert calls(pull) == ["pr view", "pr comment"]
    *others, ours = comments(pull)
    marker, *lines = ours.splitlines()
    assert re.fullmatch(r"<!-- pytest-evalarc \d+ -->", marker)
    assert lines == ["### Nothing regressed", "", "Measured at c0ffee."]
    assert (pull / "host").read_text("utf-8") == "github.example t0k3n"

    (project.parent / "evalarc-comparison.md").write_text("### Something regressed\n", "utf-8")
    second = run_step("Comment", project, token="t0k3n")

    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert calls(pull)[2:] == ["pr view", "api --silent"]
    changed = ours.replace("Nothing", "Something")
    assert comments(pull) == [*others, changed]


@pytest.mark.slow
@needs_jq
def test_a_comment_of_somebody_else_is_never_edited(project: Path, pull: Path) -> None:
    """Anybody can copy the marker, and another folder of the repository has its own."""
    run_step("Comment", project, token="t0k3n")
    state = json.loads((pull / "comments.json").read_text("utf-8"))
    state[-1]["viewerDidAuthor"] = False
    (pull / "comments.json").write_text(json.dumps(state), "utf-8")

    run_step("Comment", project, token="t0k3n")
    run_step("Comment", project, token="t0k3n", working_directory="other")

    assert calls(pull)[2:] == ["pr view", "pr comment"] * 2
    assert len({body.splitlines()[0] for body in comments(pull)[2:]}) == 2


@pytest.mark.slow
@needs_jq
@pytest.mark.parametrize("refused", ["view", "comment", "--silent"])
def test_a_comment_that_is_not_permitted_fails_no_job_and_says_so(
    project: Path, pull: Path, refused: str
) -> None:
    """A pull request from a fork has a token that may only read."""
    if refused == "--silent":
        run_step("Comment", project, token="t0k3n")
    before = comments(pull)
    (pull / "refuses").write_text(refused, "utf-8")

    told = run_step("Comment", project, token="t0k3n")

    assert (told.returncode, told.stderr) == (0, "")
    reason = "gh: Resource not accessible by integration (HTTP 403)"
    assert told.stdout == f"The comparison is not commented on the pull request: {reason}\n"
    assert comments(pull) == before


@pytest.mark.slow
def test_a_runner_without_gh_fails_no_job_and_says_so(project: Path, pull: Path) -> None:
    """One's own runners need not have it."""
    (pull / "gh").unlink()
    (pull / "gh").symlink_to(pull / "none")

    told = run_step("Comment", project, token="t0k3n")

    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("The comparison is not commented on the pull request: ")
    assert told.stdout.count("\n") == 1


def test_only_a_pull_request_with_a_token_and_a_comparison_is_commented_on() -> None:
    """Also after a comparison that failed the job, which is when it matters most."""
    condition = " ".join(STEPS["Comment"]["if"].split())

    assert condition == (
        "${{ !cancelled() && github.event_name == 'pull_request' && inputs.token != '' "
        "&& steps.compare.outputs.comparison != '' }}"
    )
    assert ACTION["inputs"]["token"]["default"] == ""


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


@pytest.mark.slow
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
