"""Ctrl-C, SIGTERM and SIGKILL in the middle of a trial."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.plugin.signals import USUAL, Interrupts
from tests.needs import needs_bwrap
from tests.plugin.project import Project

TRIAL = ("evals", "-m", "evalarc_trial", "--evalarc-client=slow", "--evalarc-trials=2")


@pytest.fixture
def usual() -> Iterator[None]:
    """Give a test the handlers of a fresh process: the session around it has taken its own."""
    before = {number: signal.signal(number, handler) for number, handler in USUAL.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def taken(usual: None) -> Iterator[Interrupts]:
    """Return the signals, taken for the length of a test."""
    interrupts = Interrupts()
    interrupts.take()
    yield interrupts
    interrupts.give_back()
    assert {number: signal.getsignal(number) for number in USUAL} == USUAL


@pytest.mark.usefixtures("taken")
def test_only_the_first_signal_interrupts() -> None:
    """An impatient second Ctrl-C must not stop the first from cleaning up."""
    cleaned = False

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            cleaned = True

    assert cleaned


def test_a_foreign_handler_stays() -> None:
    """Whoever embeds pytest decides what its signals mean."""
    seen: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    interrupts = Interrupts()
    try:
        interrupts.take()
        signal.raise_signal(signal.SIGTERM)
    finally:
        interrupts.give_back()
        signal.signal(signal.SIGTERM, previous)

    assert seen == [signal.SIGTERM]


def test_other_threads_leave_signals_alone() -> None:
    """Only the main thread may set a handler, and no error may come of it."""
    before = signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(Interrupts().take).result()

    assert signal.getsignal(signal.SIGTERM) is before


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "workers"),
    [
        ((signal.SIGINT,), ()),
        ((signal.SIGTERM, signal.SIGTERM), ()),
        ((signal.SIGINT, signal.SIGINT), ("-n", "2")),
        ((signal.SIGTERM,), ("-n", "2")),
    ],
    ids=["ctrl-c", "term-twice", "ctrl-c-twice-workers", "term-workers"],
)
def test_an_interrupted_trial_is_recorded_and_leaves_no_process(
    signals: tuple[signal.Signals, ...], workers: tuple[str, ...], project: Project
) -> None:
    """The user, or a cancelled job, ends the session; what ran is cancelled and counted so."""
    running = 2 if workers else 1
    process = project.start(*workers, *TRIAL)
    project.wait_for_starts(running)

    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "INTERNALERROR" not in output
    assert project.survivors() == []
    results = project.trial_results()
    assert len(results) == running
    assert {result["outcome"] for result in results.values()} == {"cancelled"}
    assert {result["cause"]["kind"] for result in results.values()} <= (
        {"interrupted", "worker_crash"} if workers else {"interrupted"}
    )
    benchmark = project.document("benchmark.json")
    assert benchmark["selection"] == "partial"
    counted = benchmark["configurations"].values()
    assert sum(each["cancelled"] for each in counted) == 4
    assert not project.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_killed_session_leaves_no_process_and_can_be_counted_later(
    workers: tuple[str, ...], project: Project
) -> None:
    """Nothing can be written then, so nothing may be needed that is not on disk before."""
    with project.start(*workers, *TRIAL) as process:
        project.wait_for_starts(1)
        process.kill()

    assert project.survivors() == []
    (plan,) = (path for path in project.results.rglob("plan.json") if "latest" not in path.parts)
    assert main(["benchmark", str(plan.parent)]) == 0
    benchmark = project.document("benchmark.json")
    assert benchmark["selection"] == "partial"
    assert sum(each["cancelled"] for each in benchmark["configurations"].values()) == 4
