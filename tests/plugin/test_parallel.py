"""`--evalarc-max-parallel` over many workers and sessions, whatever ends them."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

pytestmark = [needs_bwrap, pytest.mark.slow]

CLIENTS = """
import os
from dataclasses import replace
from pathlib import Path
from shell import SCRIPTS, WORK, ShellClient

def note(word):
    descriptor = os.open(os.environ["SHELL_STARTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{word}\\n".encode())
    os.close(descriptor)

class Watched(ShellClient):
    def read(self, stdout, exit, layout):
        note(f"{layout.root.name} ended")
        return super().read(stdout, exit, layout)

class SlowAtFirst(ShellClient):
    def launch(self, brief, layout, **more):
        is_first = not Path(os.environ["SHELL_STARTS"]).exists()
        chosen = SCRIPTS["slow"] if is_first else self.script
        return ShellClient.launch(replace(self, script=chosen), brief, layout, **more)

def pytest_evalarc_clients():
    good = SCRIPTS["good"]
    lasting = good.replace(WORK, WORK + "sleep 0.2\\n")
    return {
        "watched": lambda: Watched(name="watched", script=lasting),
        "slow-at-first": lambda: SlowAtFirst(name="slow-at-first", script=good),
    }
"""


@pytest.fixture
def limited(project: Project) -> Project:
    """Return a project whose clients tell when their sessions start and end."""
    project.write("evals/conftest.py", CLIENTS)
    return project


def test_a_client_with_one_slot_runs_one_trial_at_a_time(limited: Project) -> None:
    """The workers of a session share its slots, and every trial has its turn."""
    session = limited.pytest(
        *("-n", "3", "evals", "-m", "evalarc_trial", "--evalarc-client=watched"),
        *("--evalarc-client=nop", "--evalarc-trials=3", "--evalarc-max-parallel=watched=1"),
    )

    assert session.ret == 0, session.stdout
    # A transcript is read again for the trajectory, once the slot is free.
    told = list(dict.fromkeys(limited.starts()))
    started, ended = told[::2], told[1::2]
    assert ended == [f"{trial} ended" for trial in started]
    assert len(set(started)) == 6
    found = limited.documents("benchmark.json").values()
    assert [benchmark["selection"] for benchmark in found] == ["complete", "complete"]
    assert not limited.eval_root.exists()


def test_a_trial_that_is_interrupted_while_it_waits_was_never_begun(limited: Project) -> None:
    """It runs when the batch is gone on with; the one it waited for is left alone."""
    batch = ("--evalarc-batch=b", "--evalarc-client=slow-at-first", "--evalarc-max-parallel=1")
    trial = f"{TASK_ID}::slow-at-first::{{}}-skills::trial-001::run"
    holder = limited.start(*batch, trial.format("without"))
    limited.wait_for_starts(1)
    waiter = limited.start(*batch, trial.format("with"), "-v")
    assert waiter.stdout is not None
    said = ""
    while "::run" not in said:
        said += waiter.stdout.read(1)

    waiter.send_signal(signal.SIGINT)
    waiter.communicate(timeout=60)

    still_running = holder.poll() is None
    folder = limited.results / "hello/slow-at-first/b/trial-1-with-skills"
    left = {path.name for path in folder.glob("*")} if folder.exists() else set()
    holder.send_signal(signal.SIGTERM)
    holder.communicate()
    assert still_running
    assert waiter.returncode == pytest.ExitCode.INTERRUPTED
    assert left <= {".result.json.lock"}
    assert limited.starts() == ["trial-1-without-skills"]

    again = limited.pytest(*batch, trial.format("with"))

    assert again.ret == pytest.ExitCode.TESTS_FAILED, "the trial of the holder was cut off"
    assert again.counts == {"passed": 1}
    outcomes = {name: found["outcome"] for name, found in limited.trial_results().items()}
    assert outcomes == {"trial-1-with-skills": "succeeded", "trial-1-without-skills": "cancelled"}
    assert limited.survivors() == []


def test_ctrl_c_ends_workers_that_wait(project: Project) -> None:
    """The terminal sends it to every process, and none of them may wait any longer."""
    session = project.start(
        *("-n", "3", "evals", "-m", "evalarc_trial", "--evalarc-client=slow"),
        *("--evalarc-trials=2", "--evalarc-batch=b", "--evalarc-max-parallel=slow=1"),
    )
    waiting = project.eval_root / "b/slots/slow/waiting"
    until = time.monotonic() + 120
    while not waiting.is_dir() or len(list(waiting.iterdir())) < 2 or not project.starts():
        assert time.monotonic() < until, "no trial waits"
        time.sleep(0.02)

    os.killpg(session.pid, signal.SIGINT)
    session.communicate(timeout=60)

    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert len(project.starts()) == 1
    outcomes = [result["outcome"] for result in project.trial_results().values()]
    assert outcomes == ["cancelled"]
    assert list(project.results.rglob("*.begun")) == []
    assert not project.eval_root.exists()
    assert project.survivors() == []


def test_a_worker_that_dies_frees_its_slot(project: Project) -> None:
    """All other trials have their turn."""
    session = project.pytest(
        *("-n", "2", "evals", "-m", "evalarc_trial", "--evalarc-client=fatal-once"),
        *("--evalarc-trials=2", "--evalarc-max-parallel=1"),
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    results = project.trial_results().values()
    outcomes = sorted(result["outcome"] for result in results)
    assert outcomes == ["cancelled", "succeeded", "succeeded", "succeeded"]
    assert len(set(project.starts())) == len(project.starts()) == 4
