"""What people do with pytest every day, and beside plugins that shuffle and repeat."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

CONFIGURATIONS = ["trial-1-with-skills", "trial-1-without-skills"]


def needs_plugin(module: str) -> pytest.MarkDecorator:
    """Return a mark for tests of what another plugin does beside us."""
    is_missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(is_missing, reason=f"{module} is not installed")


@pytest.fixture
def failing(project: Project) -> Project:
    """Return a project whose audit fails in one item: a mutant that nobody detects."""
    project.edit('find = "hello", replace = ""', 'find = "hello", replace = "hello my"')
    return project


# Plugins that shuffle and repeat.


@needs_plugin("pytest_rerunfailures")
@needs_bwrap
@pytest.mark.slow
def test_a_rerun_never_runs_a_trial_again(project: Project, pytester: pytest.Pytester) -> None:
    """A trial that is repeated until it passes measures nothing."""
    project.write(
        "evals/test_own.py", "def test_own(evalarc_trial): assert not evalarc_trial.result\n"
    )

    session = project.inline(
        *(pytester, "evals", "-q", "--evalarc-client=careless", "--evalarc-strict"),
        *("--reruns", "2", "-m", "not evalarc_audit"),
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    # The two tests, and the expectation and the success that this client misses.
    assert session.counts["rerun"] == 2 * session.counts["failed"] == 8
    assert sorted(project.starts()) == CONFIGURATIONS


@needs_plugin("pytest_rerunfailures")
@needs_bwrap
@pytest.mark.slow
def test_misses_are_not_rerun(project: Project, pytester: pytest.Pytester) -> None:
    """They are no failures, so no option that reacts to failures reacts to them."""
    session = project.inline(
        pytester, "evals", "-q", "--evalarc-client=careless", "--reruns=2", "-m", "evalarc_trial"
    )

    assert session.ret == 0
    assert "rerun" not in session.counts
    assert session.counts["missed"] == 2


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--randomly-seed=7",), marks=needs_plugin("pytest_randomly"), id="randomly"),
        pytest.param(
            ("--random-order-bucket=global", "--random-order-seed=7"),
            marks=needs_plugin("random_order"),
            id="random-order",
        ),
    ],
)
@pytest.mark.parametrize("workers", ["0", "2"])
@needs_bwrap
@pytest.mark.slow
def test_shuffled_items_run_each_trial_once_and_in_the_order_of_the_plan(
    project: Project, options: tuple[str, ...], workers: str
) -> None:
    """The order of configurations is part of the measurement, and chance is not to choose it."""
    session = project.pytest(
        *("-n", workers, "evals", "-q", "-m", "evalarc_trial", *options),
        *("--evalarc-client=good", "--evalarc-trials=2"),
    )

    assert session.ret == 0
    assert session.counts["passed"] == 20
    in_order = [
        *("trial-1-without-skills", "trial-1-with-skills"),
        *("trial-2-with-skills", "trial-2-without-skills"),
    ]
    ran = project.starts()
    assert (ran if workers == "0" else sorted(ran)) == (
        in_order if workers == "0" else sorted(in_order)
    )


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
