"""A batch that is repeated by name: it goes on, and what is finished stays as it is."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

RUN = ("evals", "--evalarc-batch=night", "-q", "-m", "evalarc_trial")
GOOD = (*RUN, "--evalarc-client=good")

FATAL = """
import os, signal
from shell import SCRIPTS, ShellClient

def die_at_the_second():
    with open(os.environ["SHELL_STARTS"]) as starts:
        if len(starts.readlines()) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

def pytest_evalarc_clients():
    client = ShellClient(name="mortal", script=SCRIPTS["good"], before=die_at_the_second)
    return {"mortal": lambda: client}
"""


def state(folder: Path) -> dict[str, tuple[int, str]]:
    """Return time and digest of every file below a folder."""
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_is_finished_is_not_touched(project: Project, pytester: pytest.Pytester) -> None:
    """Neither rewritten nor looked at in a way that leaves a trace."""
    batch = project.results / "hello/good/night"
    project.inline(pytester, *GOOD, "-k", "without-skills")
    plan, finished = state(batch / "plan.json"), state(batch / "trial-1-without-skills")

    session = project.inline(pytester, *GOOD)

    assert session.ret == 0
    assert finished and state(batch / "trial-1-without-skills") == finished
    assert state(batch / "plan.json") == plan
    assert project.starts() == ["trial-1-without-skills", "trial-1-with-skills"]
    assert project.document("benchmark.json")["selection"] == "complete"


def test_a_session_killed_in_mid_batch_is_gone_on_with(project: Project) -> None:
    """The trial that died with it is counted so, and only what never started is run."""
    project.write("evals/conftest.py", FATAL)
    run = (*RUN, "--evalarc-client=mortal", "--evalarc-trials=2", "-p", "no:randomly")
    killed = project.pytest(*run)
    finished = state(project.results / "hello/mortal/night/trial-1-without-skills")

    session = project.pytest(*run)
    again = project.pytest(*run)

    assert killed.ret == -signal.SIGKILL
    assert finished
    assert state(project.results / "hello/mortal/night/trial-1-without-skills") == finished
    assert project.starts() == [
        *("trial-1-without-skills", "trial-1-with-skills"),
        *("trial-2-with-skills", "trial-2-without-skills"),
    ]
    assert {name: result["outcome"] for name, result in project.trial_results().items()} == {
        "trial-1-without-skills": "succeeded",
        "trial-1-with-skills": "cancelled",
        "trial-2-with-skills": "succeeded",
        "trial-2-without-skills": "succeeded",
    }
    counted = project.document("benchmark.json")["configurations"]["with-skills"]
    assert (counted["planned"], counted["cancelled"], counted["succeeded"]) == (2, 1, 1)
    assert counted["causes"]["cancelled"] == {"worker_crash": 1}
    assert session.ret == again.ret == pytest.ExitCode.TESTS_FAILED
    assert not project.eval_root.exists()


def test_a_lost_trial_that_nobody_asks_for_is_settled_at_the_end(project: Project) -> None:
    """Its mark alone says that it had begun."""
    project.write("evals/conftest.py", FATAL)
    run = (*RUN, "--evalarc-client=mortal", "-p", "no:randomly")
    project.pytest(*run)

    session = project.pytest(*run, "-k", "without-skills")

    assert session.counts == {"passed": 4, "deselected": 12}
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    lost = project.trial_results()["trial-1-with-skills"]
    assert (lost["outcome"], lost["cause"]["kind"]) == ("cancelled", "worker_crash")
    assert list(project.results.rglob("*.begun")) == []


def test_two_sessions_on_one_batch_run_each_trial_once(project: Project) -> None:
    """A user starts the command in a second terminal; both tell the whole."""
    run = (*GOOD, "--evalarc-trials=3")
    sessions = [project.start(*run) for _ in range(2)]
    said = [session.communicate(timeout=120)[0] for session in sessions]

    assert [session.returncode for session in sessions] == [0, 0], said
    assert len(project.starts()) == len(set(project.starts())) == 6
    assert all("3 of 3" in text for text in said)
    assert project.document("benchmark.json")["selection"] == "complete"
    assert not project.eval_root.exists()


@pytest.mark.parametrize("damage", ["", "{", '{"schema_version": "2.0"}', "null"])
def test_a_damaged_result_is_told_and_its_trial_never_run_again(
    project: Project, pytester: pytest.Pytester, damage: str
) -> None:
    """It was paid for; the sum is wrong without it, so there is none."""
    project.inline(pytester, *GOOD)
    batch = project.results / "hello/good/night"
    torn = batch / "trial-1-with-skills/result.json"
    torn.write_text(damage)
    before = state(batch)

    session = project.inline(pytester, *GOOD)

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.starts()) == 2
    assert state(batch) == before
    told = [line for line in session.stdout.splitlines() if line.startswith("not written: ")]
    assert len(told) == 1 and str(torn) in told[0]
    assert "Traceback" not in session.stdout


def test_an_edited_result_is_told_and_its_trial_never_run_again(
    project: Project, pytester: pytest.Pytester
) -> None:
    """It is what somebody wrote, and not what was measured: so there is no sum."""
    project.inline(pytester, *GOOD)
    batch = project.results / "hello/good/night"
    edited = batch / "trial-1-with-skills/result.json"
    document = json.loads(edited.read_bytes())
    document |= {"outcome": "inconclusive", "success": "inconclusive"}
    edited.write_text(json.dumps(document))
    before = state(batch)

    session = project.inline(pytester, *GOOD)

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.starts()) == 2
    assert state(batch) == before
    told = [line for line in session.stdout.splitlines() if line.startswith("not written: ")]
    assert len(told) == 1 and f"{edited}: outcome: says" in told[0]
    assert "Traceback" not in session.stdout


def test_a_folder_that_cannot_be_filled_costs_its_own_trial_alone(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A file stands where the trial's folder should be, for instance."""
    project.write("results/hello/good/night/trial-1-with-skills", "not ours")

    session = project.inline(pytester, *GOOD)

    assert session.counts == {"failed": 6, "passed": 4, "deselected": 6}
    assert "result.json: cannot be written: File exists" in session.stdout
    assert "Traceback" not in session.stdout
    assert project.starts() == ["trial-1-without-skills"]
    assert project.document("benchmark.json")["selection"] == "partial"


def test_a_full_disk_is_one_sentence_and_the_trial_is_counted_later(
    project: Project, pytester: pytest.Pytester
) -> None:
    """What the agent left is there; that it could not be told is not the agent's fault."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_evalarc.runs.once.write_model", full_disk)
        full = project.inline(pytester, *GOOD, "-k", "without-skills and run")
    session = project.inline(pytester, *GOOD)

    assert full.ret == pytest.ExitCode.TESTS_FAILED
    assert "result.json: cannot be written: No space left on device" in full.stdout
    assert "Traceback" not in full.stdout
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = {name: found["outcome"] for name, found in project.trial_results().items()}
    assert outcomes == {"trial-1-without-skills": "cancelled", "trial-1-with-skills": "succeeded"}
    assert (project.results / "hello/good/night/trial-1-without-skills/submission").is_dir()


def full_disk(path: Path, model: Any) -> None:
    if path.name == "result.json":
        raise OSError(28, "No space left on device")
    from pytest_evalarc.files.atomic import write_model

    write_model(path, model)


def test_foreign_files_among_the_results_are_left_alone(
    project: Project, pytester: pytest.Pytester
) -> None:
    """People write notes and copy folders."""
    notes = [
        project.write("results/notes.md", "mine"),
        project.write("results/hello/notes.md", "mine"),
        project.write("results/hello/good/night/notes/result.json", "mine"),
        project.write("results/hello/good/night/trial-9-with-skills/.result.json.begun", ""),
    ]
    before = [note.read_bytes() for note in notes]

    session = project.inline(pytester, *GOOD)

    assert session.ret == 0
    assert [note.read_bytes() for note in notes] == before
    assert project.document("benchmark.json")["selection"] == "complete"
