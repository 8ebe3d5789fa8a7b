"""What having the plugin installed costs, and where pytest may be started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

LOADED = """
import sys

def pytest_unconfigure(config):
    print("loaded:", *[name for name in {heavy} if name in sys.modules])
"""
EVALS = ("pydantic", "pytest_evalarc.plugin.nodes", "pytest_evalarc.plugin.session")
RUNS = (
    *("filelock", "jinja2", "psutil", "pydantic", "pytest_evalarc.counting.audit"),
    *("pytest_evalarc.grading.grade", "pytest_evalarc.model.audit"),
    *("pytest_evalarc.model.benchmark", "pytest_evalarc.plugin.running"),
    "pytest_evalarc.reporting",
)
"""What only running needs; schemas are most of what a start would take in time and memory."""
TRIALS = (
    *("jinja2", "psutil", "statistics", "pytest_evalarc.counting.outcome"),
    *("pytest_evalarc.counting.power", "pytest_evalarc.counting.recount"),
    *("pytest_evalarc.model.benchmark", "pytest_evalarc.model.candidate"),
    *("pytest_evalarc.model.comparison", "pytest_evalarc.model.regrade"),
    "pytest_evalarc.model.trial",
    "pytest_evalarc.plugin.regrading",
)
"""What an audit has no use for."""


def loaded(
    project: Project, *arguments: str, heavy: tuple[str, ...] = EVALS, conftest: str = ""
) -> str:
    """Return what of all that is heavy a pytest imports."""
    project.write("conftest.py", conftest + LOADED.format(heavy=heavy))
    argv = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-s", *arguments]
    done = subprocess.run(
        argv, cwd=project.root, env=project.env, capture_output=True, text=True, check=True
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("loaded:"))
    return line.removeprefix("loaded:").strip()


@pytest.mark.slow
def test_a_project_without_evals_loads_nothing_of_them(tmp_path: Path) -> None:
    """Start-up is paid by every run of every project that has this plugin installed."""
    project = Project(tmp_path / "project", tmp_path / "trials")
    (project.root / "evals").rename(project.root / "other")
    project.write("test_unit.py", "def test_unit(): pass\n")

    assert loaded(project, "test_unit.py", "-q") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["tests"], ["--co", "tests/test_unit.py"], ["--markers"], ["-n2", "tests"]]
)
def test_a_run_of_other_tests_loads_nothing_of_the_evals(
    arguments: list[str], project: Project
) -> None:
    """Whoever runs one unit test waits for no schema."""
    project.write("tests/test_unit.py", "def test_unit(): pass\n")
    project.write("pytest.ini", "[pytest]\nevalarc_client = nop\n")

    assert loaded(project, *arguments) == ""


@pytest.mark.slow
def test_collecting_trials_loads_nothing_that_only_runs(project: Project) -> None:
    """An editor collects whenever a file is saved, and runs nothing."""
    arguments = ("evals", "--co", "-p", "no:cacheprovider", "--evalarc-trials=2")

    assert loaded(project, *arguments, heavy=RUNS) == ""


@needs_bwrap
@pytest.mark.slow
def test_an_audit_loads_nothing_of_trials(project: Project) -> None:
    """Gates run it on every pull request, where a third of a second is a tenth of the audit."""
    arguments = ("evals", "-k", "audit and starter", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert loaded(project, *arguments, heavy=TRIALS, conftest="from shell import *\n") == ""
    assert project.document("audit.json")["task"]["name"] == "hello"


@pytest.mark.slow
def test_the_entry_point_imports_pytest_and_the_standard_library_alone() -> None:
    """What it imports is imported at every start."""
    program = (
        "import sys, pytest; before = set(sys.modules); import pytest_evalarc.plugin.entry;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(*sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["pytest_evalarc"]


def test_options_that_need_tasks_say_where_they_looked(
    tmp_path: Path, pytester: pytest.Pytester
) -> None:
    """A typo in a folder must not look like an evaluation that found nothing."""
    project = Project(tmp_path / "project", tmp_path / "trials")
    (project.root / "evals").rename(project.root / "other")

    session = project.inline(pytester, "--evalarc-task=hello")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert f"there is no folder of tasks at {project.root / 'evals/tasks'}" in session.stderr
    assert "; `pytest-evalarc init` makes one; or name another with --evalarc" in session.stderr


def test_the_header_names_the_folder_of_tasks(project: Project, pytester: pytest.Pytester) -> None:
    """One line says that evals are in play; a quiet run needs none."""
    loud = project.inline(pytester, "evals", "--co")
    quiet = project.inline(pytester, "evals", "--co", "-q")

    assert "evalarc: tasks in evals/tasks" in loud.stdout.splitlines()
    assert "evalarc: tasks" not in quiet.stdout


def test_tasks_may_lie_anywhere(project: Project, pytester: pytest.Pytester) -> None:
    """The folder is an option; plugins and fixtures lie beside it."""
    (project.root / "evals").rename(project.root / "bench")

    session = project.inline(pytester, "--evalarc-tasks=bench/tasks", "bench", "--co", "-q")

    assert session.ret == 0
    assert session.ids()[0] == "bench/tasks/hello/task.toml::validate"


@pytest.mark.slow
def test_pytest_may_be_started_in_a_subfolder(project: Project) -> None:
    """The root's ini file decides what the root is, as everywhere in pytest."""
    project.write("pytest.ini", "[pytest]\n")

    below = project.pytest("--co", "-q", cwd=project.root / "evals/tasks")
    named = project.pytest(
        *("--co", "-q", "--rootdir", project.root, "--evalarc-task=hello", "-k", "validate"),
        cwd=project.root / "evals",
    )

    assert below.ret == 0
    assert len(below.ids()) == 6
    assert named.ids() == ["evals/tasks/hello/task.toml::validate"]
    assert "not found" not in below.stderr + named.stderr


def test_other_plugins_may_be_switched_off(project: Project, pytester: pytest.Pytester) -> None:
    """Nothing of ours leans on the cache, on xdist or on pytest-timeout."""
    without = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "timeout")]

    session = project.inline(pytester, *without, "--evalarc-task=hello", "--co", "-q", "-W error")

    assert session.ret == 0
    assert len(session.ids()) == 16
