"""Controls that are graded before their items ask for them, and what ends them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.lock import GivenUp
from pytest_evalarc.packs.support_routing.pack import SupportRouting
from pytest_evalarc.plugin.controls import Ahead, Wanted
from tests.needs import needs_bwrap
from tests.plugin.project import Project

FILE = "evals/tasks/support/task.toml"
COMING = ("reference", "starter", "m1", "m2")
MUTANTS = [mutant.name for mutant in SupportRouting.info.mutants]


class FakeAudit:
    """Grades nothing: it notes what begins, and does what a test wants done."""

    def __init__(self) -> None:
        self.task = SimpleNamespace(name="t")
        self.begun: list[str] = []
        self.does: dict[str, Callable[[threading.Event], object]] = {}

    def graded(self, control: str, *, cancelled: threading.Event, **_: object) -> Any:
        self.begun.append(control)
        return self.does.get(control, lambda _: f"grading of {control}")(cancelled)


@pytest.fixture
def audit() -> FakeAudit:
    return FakeAudit()


@pytest.fixture
def expired() -> threading.Event:
    """The event of a timer of pytest-timeout."""
    return threading.Event()


@pytest.fixture
def ahead(audit: Any, expired: threading.Event) -> Iterator[Ahead]:
    ahead = Ahead(expired)
    ahead.expect(audit, COMING)
    yield ahead
    ahead.stop()


def wanted(control: str) -> Wanted:
    return Wanted("t", control)


def until_cancelled(cancelled: threading.Event) -> None:
    while not cancelled.is_set():
        time.sleep(0.01)
    raise KeyboardInterrupt


def test_the_next_control_begins_once_threads_are_idle(ahead: Ahead, audit: FakeAudit) -> None:
    """Before that it would only take them from the one that is waited for."""
    assert ahead.take(wanted("reference")) is None
    assert audit.begun == []

    ahead.leave_idle(wanted("reference"))

    assert ahead.take(wanted("starter")) == "grading of starter"
    assert audit.begun == ["starter"]


def test_one_control_at_the_most_is_ahead(ahead: Ahead, audit: FakeAudit) -> None:
    """Whoever stops after an item has little graded that nobody wanted."""
    ahead.take(wanted("reference"))
    ahead.leave_idle(wanted("reference"))
    ahead.leave_idle(wanted("starter"))
    ahead.leave_idle(wanted("reference"))

    assert ahead.take(wanted("starter")) == "grading of starter"
    assert ahead.take(wanted("m1")) == "grading of m1"
    assert audit.begun == ["starter", "m1"]


def test_what_went_wrong_is_told_to_whoever_asks(ahead: Ahead, audit: FakeAudit) -> None:
    """The item before it has nothing to do with it."""

    def full(_: threading.Event) -> None:
        raise InfrastructureError("disk", "is full")

    audit.does["starter"] = full
    ahead.take(wanted("reference"))
    ahead.leave_idle(wanted("reference"))

    with pytest.raises(InfrastructureError, match="is full"):
        ahead.take(wanted("starter"))


def test_what_another_process_is_at_is_left_to_it(ahead: Ahead, audit: FakeAudit) -> None:
    """Its item waits for that one as it always did."""

    def held(_: threading.Event) -> None:
        raise GivenUp("the waiting was given up")

    audit.does["starter"] = held
    ahead.take(wanted("reference"))
    ahead.leave_idle(wanted("reference"))

    assert ahead.take(wanted("starter")) is None


def test_the_timeout_of_an_item_costs_the_next_one_nothing(
    ahead: Ahead, audit: FakeAudit, expired: threading.Event
) -> None:
    """All that runs ends with a timer; what was ahead is graded again by its own item."""
    audit.does["starter"] = until_cancelled
    ahead.take(wanted("reference"))
    ahead.leave_idle(wanted("reference"))
    expired.set()

    assert ahead.take(wanted("starter")) is None


def test_the_end_of_a_session_cancels_what_is_ahead(ahead: Ahead, audit: FakeAudit) -> None:
    """Nobody is left to ask for it, and nothing begins any more."""
    has_begun = threading.Event()

    def run(cancelled: threading.Event) -> None:
        has_begun.set()
        until_cancelled(cancelled)

    audit.does["starter"] = run
    ahead.take(wanted("reference"))
    ahead.leave_idle(wanted("reference"))
    # What no thread has taken up yet would not begin at all.
    assert has_begun.wait(60)

    ahead.stop()
    ahead.leave_idle(wanted("starter"))

    assert audit.begun == ["starter"]


CONFTEST = """\
from shell import *
import dataclasses
import pytest
from pytest_evalarc.packs.support_routing.pack import SupportRouting

SOURCES = {sources!r}

class Other(SupportRouting):
    info = dataclasses.replace(SupportRouting.info, name="other")
    def control(self, name, language):
        files = super().control(name, language)
        return {{**files, "main.py": SOURCES[name]}} if name in SOURCES else files

def pytest_evalarc_packs():
    return {{"other": Other}}

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == {marked!r}:
            item.add_marker(pytest.mark.{mark})
"""
HANGS = b"import sys\nfor line in sys.stdin: pass\n"
PASSES = SupportRouting().control("reference", "python")["main.py"]


@pytest.fixture
def packed(project: Project) -> Project:
    """Return a project with one task more, which a pack judges."""
    project.write(
        FILE, 'kind = "capability"\n[pack]\nname = "other"\nseeds = [17]\n[deadlines]\ncheck = 60\n'
    )
    return project


def conftest(
    packed: Project, sources: Mapping[str, bytes], *, marked: str = "", mark: str = "skip"
) -> None:
    """Put programs of the test's in place of controls, and a mark on an item."""
    packed.write("conftest.py", CONFTEST.format(sources=dict(sources), marked=marked, mark=mark))


def rows(packed: Project) -> list[str]:
    """Return what is kept of controls, and wait for nothing."""
    folder = packed.results / "support/audit/b/rows"
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"there is no {path}"
        time.sleep(0.02)


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_controls_are_graded_once_whoever_is_ahead(
    packed: Project, workers: tuple[str, ...]
) -> None:
    """The audit is that of controls one after another."""
    conftest(packed, {})

    session = packed.pytest(FILE, "--evalarc-batch=b", "-v", *workers)

    assert session.ret == 0
    audit = packed.documents("audit.json")["support/audit/b/audit.json"]
    assert (audit["passed"], audit["selection"], audit["killed"]) == (True, "complete", 7)
    controls = ("reference", "reference-repeat", "starter", *MUTANTS)
    assert rows(packed) == sorted(f"{control}.json" for control in controls)
    assert not packed.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_an_interrupted_audit_leaves_no_process_and_no_half_row(
    packed: Project, number: signal.Signals
) -> None:
    """Neither the control that is waited for nor the one ahead of it goes on."""
    conftest(packed, dict.fromkeys(("starter", *MUTANTS), HANGS))
    process = packed.start(FILE, "--evalarc-batch=b", "-k", "audit")
    wait_for(packed.results / "support/audit/b/rows/reference-repeat.json")
    time.sleep(0.5)

    process.send_signal(number)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert packed.survivors() == []
    assert rows(packed) == ["reference-repeat.json", "reference.json"]
    assert not packed.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
def test_a_session_that_stops_at_a_failure_cancels_what_is_ahead(packed: Project) -> None:
    """With `-x` nobody asks for it any more."""
    conftest(packed, {"starter": PASSES, MUTANTS[0]: HANGS})

    session = packed.pytest(FILE, "--evalarc-batch=b", "-x", "-v", "-k", "audit")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert "the bare starter passes everything" in session.stdout
    assert packed.survivors() == []
    assert rows(packed) == ["reference-repeat.json", "reference.json", "starter.json"]
    assert not packed.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
def test_the_timeout_of_a_control_is_told_of_that_control_alone(packed: Project) -> None:
    """It ends what is ahead too, which is then graded when its own item asks."""
    conftest(packed, {"starter": HANGS}, marked="starter", mark="timeout(3)")

    session = packed.pytest(FILE, "--evalarc-batch=b", "-v", "-k", f"starter or {MUTANTS[0]}")

    assert session.words(FILE) == {"audit::starter": "FAILED", f"audit::{MUTANTS[0]}": "PASSED"}
    assert "Timeout (>3s) from pytest-timeout" in session.stdout
    assert packed.survivors() == []
    assert rows(packed) == sorted(["reference.json", f"{MUTANTS[0]}.json"])


@needs_bwrap
@pytest.mark.slow
def test_what_may_be_skipped_is_not_graded_ahead(packed: Project) -> None:
    """Its row would say that somebody had asked for it."""
    conftest(packed, {}, marked=MUTANTS[0], mark="skip")

    session = packed.pytest(
        FILE, "--evalarc-batch=b", "-v", "-k", f"starter or {' or '.join(MUTANTS[:2])}"
    )

    words = session.words(FILE)
    assert words[f"audit::{MUTANTS[0]}"] == "SKIPPED"
    assert rows(packed) == sorted(["reference.json", "starter.json", f"{MUTANTS[1]}.json"])
