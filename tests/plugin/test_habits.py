"""What people do with pytest every day."""

from __future__ import annotations

import sys

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project


@pytest.fixture
def failing(project: Project) -> Project:
    """Return a project whose audit fails in one item: a mutant that nobody detects."""
    project.edit('find = "hello", replace = ""', 'find = "hello", replace = "hello my"')
    return project


# Options of every day.


@needs_bwrap
@pytest.mark.slow
def test_last_failed_selects_what_failed_and_nothing_else(
    failing: Project, pytester: pytest.Pytester
) -> None:
    """Mending one thing must not take a whole audit each time."""
    first = failing.inline(pytester, "evals", "-q")
    again = failing.inline(pytester, "evals", "-v", "--lf")
    before = failing.inline(pytester, "evals", "-v", "--ff")

    assert first.counts == {"passed": 5, "failed": 1}
    assert again.words() == {"audit::silent": "FAILED"}
    assert next(iter(before.words())) == "audit::silent"
    assert len(before.words()) == 6


@needs_bwrap
@pytest.mark.slow
def test_last_failed_does_not_select_what_an_agent_missed(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A rate over trials that were chosen for having failed would be no rate."""
    project.write("evals/test_own.py", "def test_own(evalarc_trial): assert False\n")
    options = ("evals", "-v", "--evalarc-client=careless", "-m", "not evalarc_audit")

    project.inline(pytester, *options)
    again = project.inline(pytester, *options, "--lf")

    assert again.words() == {}
    assert set(again.words("evals/test_own.py").values()) == {"FAILED"}
    assert len(again.words("evals/test_own.py")) == 2


SLEEPER = """
from shell import SCRIPTS, ShellClient

def pytest_evalarc_clients():
    script = "sleep 2\\n" + SCRIPTS["good"]
    return {"sleeper": lambda: ShellClient(name="sleeper", script=script)}
"""
"""A client whose sessions are the slowest of all, on whatever machine."""


@needs_bwrap
@pytest.mark.slow
def test_durations_show_a_trial_where_it_ran(project: Project, pytester: pytest.Pytester) -> None:
    """Whoever looks for the slow part finds the trial, and not the fixture it came through."""
    project.write("evals/conftest.py", SLEEPER)

    session = project.inline(
        *(pytester, "evals", "-q", "--evalarc-client=sleeper", "-m", "evalarc_trial"),
        *("--durations=2", "--durations-min=0"),
    )

    (first, second) = [line.split() for line in session.stdout.splitlines() if "s call" in line]
    assert {first[1], second[1]} == {"call"}
    assert {name.rpartition("::")[2] for name in (first[2], second[2])} == {"run"}


@pytest.mark.parametrize("option", ["--setup-plan", "--fixtures-per-test", "--co"])
def test_looking_at_the_plan_runs_nothing(
    project: Project, pytester: pytest.Pytester, option: str
) -> None:
    """These options promise that nothing is run."""
    project.write("evals/test_own.py", "def test_own(evalarc_trial, evalarc_task): pass\n")

    session = project.inline(pytester, "evals", option, "-v", "--evalarc-client=good")

    assert session.ret == 0
    assert "evalarc_trial" in session.stdout or option == "--co"
    assert project.starts() == []
    assert not project.eval_root.exists()


def test_a_parametrised_autouse_fixture_above_the_tasks_is_told(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Items of tasks have no parameters; in the conftest of the unit tests the fixture works."""
    fixture = "import pytest\n@pytest.fixture(autouse=True, params=[1, 2])\ndef twice(request):\n"
    fixture += "    return request.param\n"
    project.write("conftest.py", f"from shell import *\n{fixture}")
    project.write("tests/test_unit.py", "def test_unit(): pass\n")

    above = project.inline(pytester, "-q", "-k", "validate or unit")
    project.write("conftest.py", "from shell import *\n")
    project.write("tests/conftest.py", fixture)
    beside = project.inline(pytester, "-q", "-k", "validate or unit")

    assert above.counts == {"passed": 2, "error": 1, "deselected": 5}
    assert "has no parameters" in above.stdout or "no parameter" in above.stdout
    assert beside.counts == {"passed": 3, "deselected": 5}


@pytest.mark.slow
def test_tasks_are_found_in_an_installed_package_too(
    project: Project, pytester: pytest.Pytester
) -> None:
    """`--pyargs` names a package where a path would stand."""
    project.write("evals/__init__.py", "")

    session = project.pytest("--pyargs", "evals", "-q", "--evalarc-check-tasks", "-p", "no:xdist")

    assert session.counts == {"passed": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_linked_task_folder_is_told_and_hides_no_other_task(
    project: Project, pytester: pytest.Pytester
) -> None:
    """What a link leads to can be exchanged between two looks, so no task is read through one."""
    project.add_task("other")
    elsewhere = project.root.with_name("shared")
    (project.root / "evals/tasks/hello").rename(elsewhere)
    (project.root / "evals/tasks/hello").symlink_to(elsewhere)
    project.write("evals/test_own.py", "def test_own(evalarc_task): assert evalarc_task.name\n")

    session = project.inline(pytester, "evals", "-v", "-k", "validate or own")

    assert session.words() == {"validate": "FAILED"}
    assert session.words("evals/tasks/other/task.toml") == {"validate": "PASSED"}
    assert session.words("evals/test_own.py") == {
        "test_own[hello]": "ERROR",
        "test_own[other]": "PASSED",
    }
    assert "evals/tasks/hello: " in session.stdout
    assert "Traceback" not in session.stdout
