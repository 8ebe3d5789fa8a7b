"""Trials on two hosts by pytest-xdist over ssh: what arrives counts, and what is lost is told."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.reporting.verify import verify
from tests.needs import needs_bwrap, needs_mount, needs_sshd
from tests.plugin.project import TASK_ID, Project, Session
from tests.system.ssh_hosts import Host, Hosts

pytestmark = [needs_sshd, needs_bwrap, pytest.mark.slow]

BATCH = "--evalarc-batch=night"
TRIALS = ("evals", "-m", "evalarc_trial", BATCH)

CLIENTS = """
import os, time
from pathlib import Path
from shell import SCRIPTS, ShellClient

def hang_on_a():
    if os.environ.get("HOST") == "hostA" and Path(os.environ["HOLD"]).exists():
        time.sleep(600)

def pytest_evalarc_clients():
    large = "head -c 60000000 /dev/urandom > src/blob\\n" + SCRIPTS["good"]
    return {
        "held": lambda: ShellClient(name="held", script=SCRIPTS["good"], before=hang_on_a),
        "large": lambda: ShellClient(name="large", script=large),
    }
"""


SKEWED = """
from datetime import datetime, timedelta

import pytest_evalarc.runs.trial

if os.environ.get("HOST") == "hostB":
    right = time.time
    time.time = lambda: right() - 3 * 365 * 86400

    class Behind(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=3 * 365)

    pytest_evalarc.runs.trial.datetime = Behind
"""
"""Sets the clock of one host three years back."""


class Spread:
    """A project, with a checkout on each of two hosts."""

    def __init__(self, folder: Path) -> None:
        shared = folder.with_name("compiled")
        own = folder / "alone" / "trials"
        self.project = Project(folder / "project", own, compiled=shared)
        self.project.write("evals/conftest.py", CLIENTS)
        self.hosts = Hosts(folder / "ssh", compiled=shared)
        self.hold = folder / "hold"
        self._tmp = folder / "tmp"
        self._tmp.mkdir()
        self.project.starts_file.parent.mkdir()
        for host in (self.hosts.a, self.hosts.b):
            host.environment |= {
                "HOST": host.name,
                "HOLD": str(self.hold),
                "SHELL_STARTS": str(self.project.starts_file),
            }

    def start(self) -> None:
        """Give each host its checkout, and start the daemons."""
        self.hosts.check_out(self.project.root)
        self.hosts.start()

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        """Start pytest on this machine, which has a folder for temporary files of its own too."""
        own = ("-p", "no:hypothesispytest", "-p", "no:randomly", "-p", "no:cacheprovider")
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *own, *arguments],
            cwd=self.project.root,
            env={**self.project.env, "TMPDIR": str(self._tmp)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def pytest(self, *arguments: str) -> Session:
        """Run pytest on this machine, over both hosts unless the arguments name some."""
        over = () if any(word.startswith("--tx") for word in arguments) else self.hosts.tx()
        return ended(self.popen(*over, *arguments))

    def outcomes(self, client: str) -> dict[str, str]:
        """Return each trial's outcome, with the cause of one that did not succeed."""
        return {
            Path(name).parent.name: " ".join(
                filter(None, (result["outcome"], (result["cause"] or {}).get("kind")))
            )
            for name, result in self.project.documents("result.json").items()
            if f"/{client}/" in name
        }

    def leftovers(self) -> list[str]:
        """Return what only something under way may leave in the results."""
        patterns = (".arriving-*", "*.begun", ".seen-by-hosts-*", "*.hosts.lock", "*.tmp")
        return [str(path) for each in patterns for path in self.project.results.rglob(each)]

    def when(self, is_so: Callable[[], bool], run: subprocess.Popen[str]) -> None:
        """Wait until something is so in a run."""
        until = time.monotonic() + 90
        while not is_so():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < until, "it never came to that"
            time.sleep(0.01)


def ended(run: subprocess.Popen[str]) -> Session:
    """Return what a pytest said that ends by itself; it never shows an internal error."""
    stdout, stderr = run.communicate(timeout=150)
    assert "INTERNALERROR" not in stdout + stderr, stdout + stderr
    assert "Traceback" not in stdout + stderr, stdout + stderr
    return Session(run.returncode, stdout, stderr)


def counted(benchmark: Any) -> Any:
    """Return what a benchmark says without what no two runs have in common: their times."""
    if isinstance(benchmark, dict):
        return {
            key: counted(value)
            for key, value in benchmark.items()
            if key not in ("agent_secs", "batch")
        }
    return benchmark


@pytest.fixture
def spread(tmp_path: Path) -> Iterator[Spread]:
    """Return the project; its daemons end with the test."""
    spread = Spread(tmp_path)
    with contextlib.ExitStack() as stack:
        stack.callback(spread.hosts.stop)
        yield spread


def test_two_hosts_find_what_one_machine_finds(spread: Spread) -> None:
    """Where a trial runs is no part of the measurement; its evidence is here all the same."""
    spread.start()
    asked = ("--evalarc-client=oracle", "--evalarc-client=nop", "--evalarc-trials=3")
    alone = ended(spread.popen("evals", "--evalarc-batch=alone", *asked, "-q"))

    over = spread.pytest("evals", BATCH, *asked, "-v")

    assert (alone.ret, over.ret) == (0, 0), over.stdout
    assert alone.counts == over.counts
    documents = spread.project.documents("benchmark.json")
    for client in ("oracle", "nop"):
        here, there = (documents[f"hello/{client}/{b}/benchmark.json"] for b in ("alone", "night"))
        assert there["selection"] == "complete"
        assert counted(here) == counted(there)
    audits = spread.project.documents("audit.json")
    assert audits["hello/audit/night/audit.json"]["mutation_score"] == 1.0
    assert "[gw0]" in over.stdout and "[gw1]" in over.stdout
    for client in ("oracle", "nop"):
        batch = spread.project.results / "hello" / client / "night"
        assert verify(batch / "benchmark.json") == ()
        kept = {path.name for path in (batch / "trial-1-with-skills").iterdir()}
        assert {"transcript.jsonl", "submission", "trajectory.json", "grading"} <= kept
    assert spread.leftovers() == []


def test_a_lost_host_costs_its_unfinished_trial_alone(spread: Spread) -> None:
    """The other host goes on with all that was not begun, and resuming adds nothing."""
    spread.start()
    spread.hold.touch()
    run = (*TRIALS, "--evalarc-client=held", "--evalarc-trials=3")

    started = spread.popen(*spread.hosts.tx(), *run)
    spread.when(lambda: len(spread.project.starts()) >= 4, started)
    spread.hosts.a.cut()
    session = ended(started)
    spread.hold.unlink()
    again = spread.pytest(*run)

    outcomes = spread.outcomes("held")
    assert sorted(outcomes.values()) == ["cancelled worker_crash", *["succeeded"] * 5]
    lost = next(name for name, told in outcomes.items() if told.startswith("cancelled"))
    results = spread.project.trial_results()
    assert results[lost]["cause"]["detail"] == "host hostA was lost while it ran"
    assert session.ret == 1
    assert "host hostA was lost (" in session.stdout
    assert again.ret == 1
    assert len(spread.project.starts()) == len(set(spread.project.starts())) == 6
    assert spread.leftovers() == []


def test_a_batch_without_hosts_left_is_gone_on_with(spread: Spread) -> None:
    """Every trial is there once in the end: those that never began are run by whoever is there."""
    spread.start()
    spread.hold.touch()
    run = (*TRIALS, "--evalarc-client=held", "--evalarc-trials=2")

    started = spread.popen(*spread.hosts.tx(spread.hosts.a), *run)
    spread.when(lambda: len(spread.project.starts()) == 1, started)
    spread.hosts.a.cut()
    session = ended(started)
    cut = spread.outcomes("held")
    spread.hold.unlink()
    again = spread.pytest(*run)

    assert session.ret == 2
    assert "host hostA was lost and no other can take what was left to it" in session.stdout
    assert list(cut.values()) == ["cancelled worker_crash"]
    assert again.ret == 1
    assert sorted(spread.outcomes("held").values()) == [
        "cancelled worker_crash",
        *["succeeded"] * 3,
    ]
    assert len(spread.project.starts()) == len(set(spread.project.starts())) == 4


def test_the_users_interrupt_is_no_lost_host(spread: Spread) -> None:
    """What was under way says that the session ended, and nothing goes on there."""
    spread.start()
    spread.hold.touch()
    run = (*TRIALS, "--evalarc-client=held", "--evalarc-configuration=with")
    started = spread.popen(*spread.hosts.tx(spread.hosts.a), *run)
    spread.when(lambda: len(spread.project.starts()) == 1, started)

    started.send_signal(signal.SIGINT)
    session = ended(started)

    assert session.ret == pytest.ExitCode.INTERRUPTED
    assert spread.outcomes("held") == {"trial-1-with-skills": "cancelled interrupted"}
    until = time.monotonic() + 60
    while spread.hosts.a.sessions():
        assert time.monotonic() < until, spread.hosts.a.sessions()
        time.sleep(0.1)
    assert spread.leftovers() == []


def test_a_transfer_that_is_cut_leaves_nothing_half_written(spread: Spread) -> None:
    """What did not arrive whole is no result, and its evidence is not half there."""
    spread.start()
    run = (*TRIALS, "--evalarc-client=large", "--evalarc-configuration=without")

    started = spread.popen(*spread.hosts.tx(spread.hosts.a), *run)
    spread.when(lambda: any(spread.project.results.rglob(".arriving-*/submission")), started)
    spread.hosts.a.cut()
    session = ended(started)

    assert session.ret in (1, 2)
    assert spread.outcomes("large") == {"trial-1-without-skills": "cancelled worker_crash"}
    trial = spread.project.results / "hello/large/night/trial-1-without-skills"
    assert [path.name for path in trial.iterdir() if not path.name.startswith(".")] == [
        "result.json"
    ]
    assert spread.leftovers() == []


def test_a_host_that_shares_the_folder_sends_nothing(spread: Spread) -> None:
    """Two copies of one result in one place could only disturb each other."""
    spread.start()
    shutil.rmtree(spread.hosts.a.checkout)
    spread.hosts.a.checkout.symlink_to(spread.project.root)

    started = spread.popen(
        *spread.hosts.tx(spread.hosts.a), *TRIALS, "--evalarc-client=large", "-v"
    )
    arrived: list[Path] = []
    while started.poll() is None and not arrived:
        arrived = list(spread.project.results.rglob(".arriving-*"))
    session = ended(started)

    assert session.ret == 0
    assert arrived == []
    assert set(spread.outcomes("large").values()) == {"succeeded"}


def test_a_trial_beyond_the_budget_of_all_hosts_is_not_started(spread: Spread) -> None:
    """What the batch has used is known here alone; a first round tells nothing, and counts."""
    spread.start()

    session = spread.pytest(
        *(*TRIALS, "--evalarc-client=good", "--evalarc-trials=12", "--evalarc-max-tokens=10"),
        "-rs",
    )

    benchmark = spread.project.document("benchmark.json")
    reached = {each["succeeded"] for each in benchmark["configurations"].values()}
    assert reached < set(range(1, 12)), session.stdout
    assert "not started: " in session.stdout


@pytest.mark.parametrize("path", ["evals", "{root}/evals", f"{{root}}/{TASK_ID}"])
def test_arguments_name_the_same_on_every_host(path: str, spread: Spread) -> None:
    """Relative ones, absolute ones and values of options, as one writes them without hosts."""
    spread.start()
    argument = path.format(root=spread.project.root)

    session = spread.pytest(
        *(argument, "-m", "evalarc_trial", "--evalarc-client", "good", BATCH),
        *("--ignore", "evals/plugins", "--evalarc-configuration=with"),
    )

    assert session.ret == 0, session.stdout + session.stderr
    assert spread.outcomes("good") == {"trial-1-with-skills": "succeeded"}


# What is refused, in one sentence and before the first trial.


def refused(spread: Spread, *arguments: str) -> str:
    """Return the sentence that a session ends with before anything ran."""
    session = spread.pytest(*TRIALS, "--evalarc-client=good", *arguments)
    assert session.ret == pytest.ExitCode.USAGE_ERROR, session.stdout + session.stderr
    assert spread.project.starts() == []
    assert spread.outcomes("good") == {}
    (line,) = [line for line in session.stderr.splitlines() if line.startswith("ERROR: ")]
    return line.removeprefix("ERROR: ")


def test_another_version_on_a_host_is_refused(spread: Spread, tmp_path: Path) -> None:
    """Its results would be of another program."""
    import pytest_evalarc

    other = tmp_path / "other"
    shutil.copytree(Path(pytest_evalarc.__file__).parent, other / "pytest_evalarc")
    info = other / "pytest_evalarc-9.9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pytest-evalarc\nVersion: 9.9.9\n", "utf-8"
    )
    spread.hosts.b.environment["PYTHONPATH"] = str(other)
    spread.start()

    assert refused(spread) == (
        "host hostB: has pytest-evalarc 9.9.9, and the controller has "
        f"{pytest_evalarc.__version__}; make both the same"
    )


def test_another_task_on_a_host_is_refused(spread: Spread) -> None:
    """The name is the same, and what is asked is not."""
    spread.start()
    check = spread.hosts.b.checkout / "evals/tasks/hello/checks/greets.sh"
    check.write_text("true\n", "utf-8")

    told = refused(spread)

    assert told.startswith("host hostB: has task hello ")
    assert told.endswith("; make both the same")


def test_a_host_without_the_task_is_refused(spread: Spread) -> None:
    """It would collect nothing, and all the work would be the other's."""
    spread.start()
    shutil.rmtree(spread.hosts.b.checkout / "evals/tasks/hello")

    assert refused(spread).startswith("host hostB: has task hello none, and the controller has ")


def test_a_host_with_a_wrong_key_is_refused(spread: Spread) -> None:
    """Somebody else may answer in its place."""
    spread.hosts.know(spread.hosts.a.public_key, spread.hosts.a.public_key)
    spread.start()

    assert refused(spread).startswith("host hostB: cannot be reached, or has no Python there (")


def test_a_host_that_is_off_is_refused(spread: Spread) -> None:
    """Before the others begin without it."""
    spread.start()
    spread.hosts.a.stop()

    assert refused(spread).startswith("host hostA: cannot be reached, or has no Python there (")


def test_a_host_without_that_python_is_refused(spread: Spread) -> None:
    """As where the environment was not made yet."""
    spread.start()
    (spec,) = [word for word in spread.hosts.tx(spread.hosts.b) if word.startswith("--tx")]
    spec = spec.replace(f"python={sys.executable}", "python=/nowhere/python")

    told = refused(spread, "-d", spec)

    assert told.startswith("host hostB: cannot be reached, or has no Python there (")


def test_a_host_that_cannot_begin_is_refused(spread: Spread) -> None:
    """As where the package, and so its options, is not installed."""
    spread.start()
    conftest = spread.hosts.b.checkout / "conftest.py"
    conftest.write_text("raise RuntimeError('nothing works here')\n", "utf-8")

    told = refused(spread)

    assert told.startswith("host hostB: its worker ended before the first trial (")


def test_a_second_controller_of_a_batch_is_refused(spread: Spread) -> None:
    """Each would hand the same trials out."""
    spread.start()
    spread.hold.touch()
    run = (*TRIALS, "--evalarc-client=held")
    first = spread.popen(*spread.hosts.tx(spread.hosts.a), *run)
    spread.when(lambda: len(spread.project.starts()) == 1, first)

    second = spread.pytest(*spread.hosts.tx(spread.hosts.b), *run)

    spread.hosts.a.cut()
    ended(first)
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    assert "--evalarc-batch: another session hands batch night out to hosts" in second.stderr
    assert len(spread.project.starts()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dist=each",), "--dist each: would run every trial on every host"),
        (("-d", "--evalarc-submission=."), "--evalarc-submission: cannot be combined with workers"),
    ],
)
def test_what_cannot_work_over_hosts_is_refused(
    arguments: tuple[str, ...], told: str, spread: Spread
) -> None:
    """Rather than done on whichever host comes first."""
    spread.project.write("candidate/src/greeting", "hello world\n")
    spread.start()
    words = [word.replace("=.", "=candidate") for word in arguments]
    over = [word for word in spread.hosts.tx() if word.startswith("--tx")]

    session = spread.pytest("evals", "--evalarc-task=hello", *over, *words)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert told in session.stderr


def test_a_host_that_cannot_write_fails_its_trials_alone(spread: Spread) -> None:
    """What a disk does there is told there, and takes no other host with it."""
    spread.start()
    blocked(spread.hosts.a)

    session = spread.pytest(*TRIALS, "--evalarc-client=good", "--evalarc-trials=2")

    assert session.ret == 1
    assert "cannot be made or written" in session.stdout
    assert "succeeded" in spread.outcomes("good").values()
    assert spread.leftovers() == []


@needs_mount
def test_a_host_with_a_full_disk_fails_its_trials_alone(spread: Spread) -> None:
    """It has a folder for results and no room in it, which only a write tells."""
    spread.hosts.a.full_disk = spread.hosts.a.checkout / "results"
    spread.start()

    session = spread.pytest(*TRIALS, "--evalarc-client=good", "--evalarc-trials=2")

    assert session.ret == 1
    assert "No space left on device" in session.stdout
    assert "succeeded" in spread.outcomes("good").values()
    assert spread.leftovers() == []


def test_clocks_that_are_hours_apart_change_no_count(spread: Spread) -> None:
    """Neither the order of a plan nor any duration is read from a wall clock."""
    spread.project.write("evals/conftest.py", CLIENTS + SKEWED)
    spread.start()

    session = spread.pytest(*TRIALS, "--evalarc-client=good", "--evalarc-trials=4")

    assert session.ret == 0, session.stdout
    assert spread.outcomes("good") == dict.fromkeys(
        (f"trial-{n}-{arm}-skills" for n in range(1, 5) for arm in ("with", "without")), "succeeded"
    )
    results = spread.project.documents("result.json").values()
    years = {datetime.fromisoformat(result["started_at"]).year for result in results}
    assert len(years) == 2, "one of the hosts ran nothing, or its clock was right"
    assert all(0 <= result["elapsed_secs"] < 90 for result in results)
    assert verify(spread.project.results / "hello/good/night/benchmark.json") == ()


def blocked(host: Host) -> None:
    """Have a host be unable to write any result, whoever it works as."""
    (host.checkout / "results").write_text("no folder")
