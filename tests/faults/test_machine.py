"""What the machine does to a session: it stops, its clock steps, its memory runs out."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from pytest_evalarc.isolation.clock import STANDSTILL_S
from pytest_evalarc.isolation.limits import pool_controllers
from tests.faults.inject import groups_of, held_locks, mounts_below
from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

TRIALS = ("evals", "-m", "evalarc_trial", "-p", "no:cacheprovider", "--evalarc-batch=night")

WAITS = """
from shell import *

def pytest_evalarc_clients():
    script = START + SKILL + "sleep 3\\n" + WORK + DONE
    return {"waits": lambda: ShellClient(name="waits", script=script)}
"""

STEPS = """
import datetime, itertools, time
from shell import *
import pytest_evalarc.plugin.active
import pytest_evalarc.runs.trial

HOUR_S = 3600.0
really, steps = time.time, itertools.count()

def stepping():
    # Each look is an hour before the last one.
    return really() - HOUR_S * next(steps)

class Stepping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(stepping(), tz)

time.time = stepping
pytest_evalarc.runs.trial.datetime = Stepping
"""

HUNGRY = """
from shell import *

def eat():
    if len(open(os.environ["SHELL_STARTS"]).read().splitlines()) == 2:
        hungry = bytearray(1 << 31)
        hungry[::4096] = b"x" * len(hungry[::4096])
        raise AssertionError("the kernel let a worker have 2 GiB")

def pytest_evalarc_clients():
    script = SCRIPTS["good"]
    return {
        "eats-worker": lambda: ShellClient(name="eats-worker", script=script, before=eat),
        "eats": lambda: ShellClient(
            name="eats", embedded=True, script=START + "exec tail /dev/zero\\n"
        ),
    }
"""


def tree(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return a session and all that it has started."""
    root = psutil.Process(process.pid)
    return [root, *root.children(recursive=True)]


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes; one that has just ended is no error."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def require_nothing_left(project: Project) -> None:
    """See that no process, mount, lock or working folder of the sessions is left."""
    assert project.survivors() == []
    assert mounts_below(project.eval_root) == []
    assert held_locks(project) == []
    assert not project.eval_root.exists()


def wait_for_words(project: Project) -> None:
    """Wait until a client has said something."""
    until_s = time.monotonic() + 60
    while not any(path.stat().st_size for path in project.results.rglob("transcript.jsonl")):
        assert time.monotonic() < until_s, "no client said anything"
        time.sleep(0.02)


def test_a_session_that_was_stopped_times_nothing_out(project: Project) -> None:
    """A client that was stopped with the harness has not used up what it was given."""
    project.write("conftest.py", WAITS)
    project.edit("agent = 60", "agent = 10")
    process = project.start(*TRIALS, "--evalarc-client=waits", "--evalarc-configuration=with")
    wait_for_words(project)
    stopped = tree(process)

    send(stopped, signal.SIGSTOP)
    time.sleep(STANDSTILL_S + 7)
    send(stopped, signal.SIGCONT)
    output, _ = process.communicate(timeout=120)

    assert process.returncode == 0, output
    (result,) = project.trial_results().values()
    assert (result["outcome"], result["execution"]) == ("succeeded", "completed")
    assert [note for note in result["isolation"]["audit_findings"] if "stood still" in note]
    assert result["elapsed_secs"] <= 10
    require_nothing_left(project)


def test_a_wall_clock_that_steps_back_changes_no_order_and_no_duration(project: Project) -> None:
    """Somebody sets it, or a time server does; what is ordered and measured rests on another."""
    project.write("conftest.py", STEPS)

    session = project.pytest(*TRIALS, "--evalarc-client=good", "--evalarc-trials=2", "-n", "2")
    again = project.pytest(*TRIALS, "--evalarc-client=good", "--evalarc-trials=2")

    assert (session.ret, again.ret) == (0, 0), session.stdout
    results = project.trial_results()
    assert sorted(results) == sorted(project.starts())
    assert len(results) == 4
    assert {result["outcome"] for result in results.values()} == {"succeeded"}
    assert all(0 < result["elapsed_secs"] < 60 for result in results.values())
    assert all(
        seconds >= 0 for result in results.values() for seconds in result["stages_secs"].values()
    )
    plan = json.loads((project.results / "hello/good/night/plan.json").read_bytes())
    assert [entry["order"] for entry in plan["trials"]] == [1, 2, 1, 2]
    assert project.document("benchmark.json")["selection"] == "complete"
    require_nothing_left(project)


@pytest.fixture
def memory_group() -> Iterator[str]:
    """Return the file by which a process joins a control group of 700 MiB."""
    from pytest_evalarc.isolation.limits import Group, hierarchy
    from pytest_evalarc.model.task import Limits

    place = hierarchy()
    if place is None or "memory" not in place.parents or place.version != "cgroup-v1":
        pytest.skip("there is no group of version 1 here that limits memory")
    group = Group(place, f"evalarc-tests-{os.getpid()}")
    group.set(Limits(memory_mib=700, processes=500))
    yield str(place.parents["memory"] / f"evalarc-tests-{os.getpid()}" / "cgroup.procs")
    group.remove()


def test_a_worker_that_the_kernel_ends_for_its_memory_loses_its_trial_alone(
    project: Project, memory_group: str
) -> None:
    """The kernel takes the largest process, and that is the one that ate."""
    project.write("conftest.py", HUNGRY)
    arguments = ("--evalarc-client=eats-worker", "--evalarc-trials=2", "-n", "2")
    join = ["/bin/sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "join", memory_group]

    done = subprocess.run(
        [*join, *project.argv(*TRIALS, *arguments)],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    outcomes = sorted(result["outcome"] for result in project.trial_results().values())
    assert outcomes == ["cancelled", "succeeded", "succeeded", "succeeded"], done.stdout
    causes = [result["cause"] for result in project.trial_results().values() if result["cause"]]
    assert [cause["kind"] for cause in causes] == ["worker_crash"]
    assert len(project.starts()) == len(set(project.starts())) == 4
    require_nothing_left(project)


@pytest.mark.skipif("memory" not in pool_controllers(), reason="no group here limits memory")
def test_a_client_that_the_kernel_ends_for_its_memory_is_told_so(project: Project) -> None:
    """It is the client's own failure: the harness and its other trials go on."""
    project.write("conftest.py", HUNGRY)
    project.edit("[checks.greets]", "[limits]\nmemory_mib = 128\n\n[checks.greets]")

    session = project.pytest(*TRIALS, "--evalarc-client=eats")

    results = project.trial_results()
    assert len(results) == 2, session.stdout
    assert {result["execution"] for result in results.values()} == {"client_error"}
    told = [result["cause"]["detail"] for result in results.values()]
    assert all("it needed more memory than its 128 MiB" in detail for detail in told), told
    require_nothing_left(project)


@pytest.mark.parametrize(
    "signals",
    [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT, signal.SIGTERM)],
    ids=["ctrl-c-twice", "term-and-ctrl-c"],
)
def test_a_terminal_that_interrupts_all_processes_at_once_leaves_nothing(
    signals: tuple[signal.Signals, ...], project: Project
) -> None:
    """Ctrl-C goes to the workers as well, and the impatient press it again at once."""
    process = project.start(*TRIALS, "--evalarc-client=slow", "--evalarc-trials=2", "-n", "2")
    project.wait_for_starts(2)
    pids = {each.pid for each in tree(process)}

    for number in signals:
        os.killpg(process.pid, number)
        time.sleep(0.02)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "INTERNALERROR" not in output
    results = project.trial_results()
    assert {result["outcome"] for result in results.values()} == {"cancelled"}
    counted = project.document("benchmark.json")["configurations"].values()
    assert sum(each["cancelled"] for each in counted) == 4
    assert groups_of(pids) == []
    require_nothing_left(project)
