"""Pytest-timeout beside evals: it ends an item, never the session, and cuts no trial by chance."""

from __future__ import annotations

import re
import signal
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_timeout import Settings

from pytest_evalarc.plugin.timeouts import Timeouts
from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

pytestmark = [needs_bwrap, pytest.mark.slow]


HURRIED = """
import pytest
from shell import *

def pytest_collection_modifyitems(items):
    for item in items:
        if "::slow::" in item.nodeid:
            item.add_marker(pytest.mark.timeout(3))
"""
"""Gives little time to what never ends; what does may take what it needs on a busy machine."""


@pytest.mark.parametrize(
    ("method", "workers"), [("signal", ()), ("thread", ()), ("thread", ("-n", "2"))]
)
def test_a_timeout_cancels_its_trial_and_the_session_goes_on(
    method: str, workers: tuple[str, ...], project: Project
) -> None:
    """By itself it would end the process, or raise into whatever is running."""
    project.write("conftest.py", HURRIED)

    session = project.pytest(
        *workers,
        *("--evalarc-batch=b", "--timeout=60", f"--timeout-method={method}", "-q"),
        *(f"{TASK_ID}::slow::with-skills", f"{TASK_ID}::validate"),
        f"{TASK_ID}::oracle::with-skills",
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts == {"passed": 7, "error": 1, "skipped": 5}
    results = {path.split("/")[1]: each for path, each in project.documents("result.json").items()}
    assert results["oracle"]["outcome"] == "succeeded"
    assert results["slow"]["outcome"] == "cancelled"
    assert results["slow"]["cause"]["kind"] == "pytest_timeout"
    assert "cancelled: pytest_timeout" in session.stdout
    assert project.survivors() == []


def test_a_timeout_for_unit_tests_cuts_no_trial(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A trial has deadlines of its own, which the nearest marker tells pytest-timeout."""
    project.write("pytest.ini", "[pytest]\ntimeout = 0.01\n")
    project.write(
        "conftest.py",
        "from shell import *\n"
        "def pytest_runtest_setup(item):\n"
        "    marker = item.get_closest_marker('timeout')\n"
        "    print('allowed', item.nodeid, marker and marker.args)\n",
    )

    session = project.inline(pytester, "--evalarc-task=hello", "-q", "-s", "-k", "not validate")

    assert session.ret == 0
    assert session.counts == {"passed": 15, "deselected": 1}
    assert f"allowed {TASK_ID}::oracle::with-skills::trial-001::run (540.0,)" in session.stdout
    assert f"allowed {TASK_ID}::audit::silent (660.0,)" in session.stdout


def test_a_control_that_takes_too_long_fails_its_item_alone(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Nothing of it is kept, so it can be asked again."""
    project.write(
        "evals/tasks/hello/checks/greets.sh",
        "grep -q hello src/greeting || sleep 600\n",
    )

    # What ends in time has ended before, so no busy machine makes the timeout cut it.
    project.inline(pytester, "evals", "--evalarc-batch=b", "-k", "reference or nameless")

    session = project.inline(pytester, "evals", "--evalarc-batch=b", "-q", "--timeout=3")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts == {"passed": 4, "failed": 2}
    assert re.search(r"Timeout \(>3(\.0)?s\) from pytest-timeout", session.stdout)
    assert "Traceback" not in session.stdout


@pytest.mark.parametrize("asker", ["item", "test"])
def test_waiting_for_another_process_ends_with_its_item(project: Project, asker: str) -> None:
    """The trial that another process runs goes on, and whoever waits for it is told."""
    project.write("evals/test_own.py", "def test_own(evalarc_trial): evalarc_trial.result\n")
    batch = ("--evalarc-batch=b", "--evalarc-client=slow", "--evalarc-configuration=with")
    holder = project.start(*batch, "evals", "-m", "evalarc_trial")
    project.wait_for_starts(1)
    asked = (
        f"{TASK_ID}::slow::with-skills::trial-001::run" if asker == "item" else "evals/test_own.py"
    )

    waiter = project.pytest(*batch, asked, "-q", "--timeout=1")

    still_running = holder.poll() is None
    holder.send_signal(signal.SIGTERM)
    holder.communicate()
    assert still_running
    assert waiter.ret == pytest.ExitCode.TESTS_FAILED
    assert re.search(r"Timeout \(>1(\.0)?s\) from pytest-timeout", waiter.stdout)
    assert len(project.starts()) == 1
    assert project.document("result.json")["cause"]["kind"] == "interrupted"
    assert project.survivors() == []


def test_waiting_for_another_process_can_be_interrupted(project: Project) -> None:
    """An interrupt ends the session that waits, and not the one that works."""
    batch = ("--evalarc-batch=b", "--evalarc-client=slow", "--evalarc-configuration=with")
    holder = project.start(*batch, "evals", "-m", "evalarc_trial")
    project.wait_for_starts(1)
    waiter = project.start(*batch, "evals", "-m", "evalarc_trial", "-v")
    assert waiter.stdout is not None
    said = ""
    while "::run" not in said:
        said += waiter.stdout.read(1)

    waiter.send_signal(signal.SIGTERM)
    waiter.communicate(timeout=60)

    still_running = holder.poll() is None
    holder.send_signal(signal.SIGTERM)
    holder.communicate()
    assert still_running
    assert waiter.returncode == pytest.ExitCode.INTERRUPTED
    assert len(project.starts()) == 1


TIMERS = """
import signal, threading, time
from contextlib import contextmanager
from shell import *
from pytest_evalarc.runs.slots import LocalSlots

def tell(when):
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    left = [timer.interval for timer in timers if not timer.finished.is_set()]
    left += [seconds for seconds in signal.getitimer(signal.ITIMER_REAL) if seconds]
    print(when, *(round(seconds, -2) for seconds in left))

@contextmanager
def held(self, client, place):
    tell("while it waits:")
    yield

LocalSlots.held = held

def pytest_evalarc_clients():
    script = SCRIPTS["good"]
    before = lambda: tell("while it runs:")
    return {"telling": lambda: ShellClient(name="telling", script=script, before=before)}
"""


@pytest.mark.parametrize("method", ["signal", "thread"])
@pytest.mark.parametrize("asker", ["item", "test"])
def test_no_time_of_an_item_passes_while_its_trial_waits_for_a_slot(
    project: Project, asker: str, method: str
) -> None:
    """How long others take is no matter of this trial's, whichever kind of test asks for it."""
    project.write("conftest.py", TIMERS)
    project.write("evals/test_own.py", "def test_own(evalarc_trial): evalarc_trial.result\n")
    asked = TASK_ID if asker == "item" else "evals/test_own.py"

    session = project.pytest(
        *(asked, "--evalarc-client=telling", "--evalarc-configuration=with", "-s"),
        *("-m", "not evalarc_audit", "--timeout=600", f"--timeout-method={method}"),
    )

    assert session.ret == 0
    told = re.findall(r"while it (\w+): ?(.*)", session.stdout)
    assert told == [("waits", ""), ("runs", "600.0")]


def test_what_was_left_of_a_timeout_is_left_after_the_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What had passed before counts, and what passed meanwhile does not."""
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("pytest_evalarc.plugin.timeouts.time", clock)
    timeouts = Timeouts()
    hook = SimpleNamespace(
        pytest_timeout_cancel_timer=timeouts.stop,
        pytest_timeout_set_timer=timeouts.start,
    )
    item: Any = SimpleNamespace(ihook=hook, nodeid="test_own")
    left = []
    timeouts.start(item, Settings(60, "thread", False, False))

    for worked_s, waited_s in ((10, 900), (20, 0), (29.5, 900), (31, 900)):
        now[0] += worked_s
        with timeouts.paused():
            now[0] += waited_s
        assert timeouts._clock is not None
        left.append(timeouts._clock.settings.timeout)

    # A timer of nothing would be none, so what is used up is used up at once.
    assert left == [50, 30, 0.5, 0.001]
