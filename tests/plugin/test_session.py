"""What one session holds: batches gone on with, third-party clients, and damaged files."""

from __future__ import annotations

import shutil

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

pytestmark = [needs_bwrap, pytest.mark.slow]


def test_a_batch_goes_on_where_it_stopped(project: Project, pytester: pytest.Pytester) -> None:
    """What an agent has done is never asked of it twice."""
    run = ("evals", "--evalarc-client=good", "--evalarc-batch=night", "-q")
    first = project.inline(pytester, *run, "-k", "without-skills")
    kept = project.documents("result.json")

    second = project.inline(pytester, *run, "-m", "evalarc_trial")

    assert (first.ret, second.ret) == (0, 0)
    assert project.starts() == ["trial-1-without-skills", "trial-1-with-skills"]
    assert kept.items() <= project.documents("result.json").items()
    assert project.document("benchmark.json")["selection"] == "complete"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (["--evalarc-trials=2"], "trials"),
        (["--evalarc-model=other"], "model"),
        (["--evalarc-model-setting=t=1"], "settings"),
        (["--evalarc-configuration=with"], "trials"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_batch_is_not_gone_on_with_otherwise(
    change: list[str], field: str, project: Project, pytester: pytest.Pytester
) -> None:
    """Two plans under one name would be counted as one."""
    run = ("evals", "--evalarc-client=good", "--evalarc-batch=night", "-q", "-k")
    project.inline(pytester, *run, "with-skills and trial-001")

    session = project.inline(pytester, *run, "with-skills and trial-001 and run", *change)

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert f"the batch was planned with another {field}; choose another name" in session.stdout
    assert len(project.starts()) == 1


def test_a_task_that_has_changed_ends_its_batch(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Other checks measure something else."""
    project.inline(pytester, "evals", "--evalarc-batch=night", "-q")
    project.write("evals/tasks/hello/checks/names.sh", "true\n")

    session = project.inline(pytester, "evals", "--evalarc-batch=night", "-q")

    assert session.counts == {"passed": 1, "failed": 5}
    assert "another task.content_hash" in session.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_conftest_beside_the_tasks_offers_clients(
    workers: tuple[str, ...], project: Project
) -> None:
    """They belong to the evals, wherever pytest was started and whoever collects."""
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    project.write(
        "evals/conftest.py",
        "from shell import SCRIPTS, ShellClient\n"
        "def pytest_evalarc_clients():\n"
        "    return {'mine': lambda: ShellClient(name='mine', script=SCRIPTS['good'])}\n",
    )

    session = project.pytest(
        *workers, "--evalarc-task=hello", "--evalarc-client=mine", "-q", "-k", "mine"
    )

    assert session.ret == 0
    assert sorted(project.starts()) == ["trial-1-with-skills", "trial-1-without-skills"]


def test_clients_of_different_versions_run_in_one_batch(
    project: Project, pytester: pytest.Pytester
) -> None:
    """What is staged for the embedded ones has nothing to do with another's version."""
    project.write(
        "evals/conftest.py",
        "from shell import SCRIPTS, ShellClient\n"
        "def pytest_evalarc_clients():\n"
        "    script = SCRIPTS['good']\n"
        "    return {'mine': lambda: ShellClient(name='mine', script=script, version='7.1')}\n",
    )

    session = project.inline(
        pytester, *("evals", "-q", "--evalarc-client=mine", "--evalarc-client=oracle", "-k", "run")
    )

    assert session.ret == 0
    assert session.counts == {"passed": 4, "deselected": 22}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_broken_conftest_beside_the_tasks_is_told_as_such(
    workers: tuple[str, ...], project: Project
) -> None:
    """What it would have offered is unknown, so nothing is said of the client that it might be."""
    project.write("evals/conftest.py", "import nowhere\n")

    session = project.pytest(*workers, "--evalarc-task=hello", "--evalarc-client=mine", "-q")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert "evals/conftest.py fails:" in session.stderr
    assert "No module named 'nowhere'" in session.stderr
    assert "no client" not in session.stdout + session.stderr


def test_a_name_offered_twice_is_told_with_both_owners(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Which of two clients ran must never be a matter of load order."""
    project.write("evals/conftest.py", "def pytest_evalarc_clients():\n    return {'nop': dict}\n")

    session = project.inline(pytester, "evals")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert "'nop': is offered by both" in session.stderr
    assert "conftest" in session.stderr and "evalarc-builtin" in session.stderr
    assert len(session.stderr.strip().splitlines()) == 1


def test_what_a_trial_cannot_play_is_one_sentence(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Without a solution there is no reference: no audit, and nothing for oracle to play."""
    shutil.rmtree(project.root / "evals/tasks/hello/solution")
    text = (project.root / TASK_ID).read_text()
    project.write(TASK_ID, text.partition("[[mutants]]")[0])

    bare = project.inline(pytester, "evals", "-q")
    asked = project.inline(pytester, "--evalarc-task=hello", "-q", "-k", "run")

    assert bare.counts == {"passed": 1}
    assert asked.ret == pytest.ExitCode.TESTS_FAILED
    assert "task hello: has no solution/ to play" in asked.stdout
    assert "Traceback" not in asked.stdout


def test_damaged_marks_of_a_lost_trial_break_no_session(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A full disk or a torn copy may have left anything."""
    folder = "results/hello/good/night"
    project.write(f"{folder}/plan.json", "{")
    project.write(f"{folder}/trial-1-with-skills/.result.json.begun", "")

    session = project.inline(pytester, "evals", "--evalarc-batch=night", "-q")

    assert session.counts == {"passed": 6}
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert "not written: " in session.stdout
