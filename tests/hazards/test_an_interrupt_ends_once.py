"""Ctrl-C returns success, or a second one breaks the clean-up that the first began.

An impatient user presses twice, a terminal sends the signal to every process of the group, and a
killed harness leaves its mutant applied. UKGovernmentBEIS/inspect_ai#4859, boxed/mutmut#351.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from pytest_evalarc.files.manifest import is_cache, read_manifest
from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

TRIALS = ("evals", "-m", "evalarc_trial", "--evalarc-client=slow", "--evalarc-trials=2")


@pytest.mark.parametrize("to_group", [True, False], ids=["terminal", "controller"])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM], ids=["again", "and-term"])
def test_two_signals_within_a_moment_are_one_end(
    project: Project, to_group: bool, second: signal.Signals
) -> None:
    """Workers and controller hear both: trees are gone, trials marked, and the status says so."""
    session = project.start("-n", "2", *TRIALS)
    project.wait_for_starts(2)
    send = os.killpg if to_group else os.kill

    send(session.pid, signal.SIGINT)
    time.sleep(0.03)
    send(session.pid, second)
    told, _ = session.communicate(timeout=60)

    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert "INTERNALERROR" not in told
    results = project.trial_results()
    assert {each["outcome"] for each in results.values()} == {"cancelled"}
    assert {each["cause"]["kind"] for each in results.values()} == {"interrupted"}
    assert project.survivors() == []
    benchmark = project.document("benchmark.json")
    assert benchmark["selection"] == "partial"
    rates = {side["success_rate"] for side in benchmark["configurations"].values()}
    assert rates == {None}


def test_a_killed_audit_leaves_the_sources_as_they_were(project: Project) -> None:
    """Mutants exist as copies alone, so no death of the harness can leave one applied."""
    project.write("evals/tasks/hello/checks/greets.sh", "grep -q hello src/greeting || sleep 60\n")
    before = read_manifest(project.root / "evals", skip=is_cache).sha256
    session = project.start("evals", "-m", "evalarc_audit")
    until = time.monotonic() + 60
    while not list(project.results.glob("hello/audit/*/rows/reference.json")):
        assert time.monotonic() < until, "the audit has not begun"
        time.sleep(0.02)

    os.kill(session.pid, signal.SIGKILL)
    session.communicate(timeout=60)

    assert read_manifest(project.root / "evals", skip=is_cache).sha256 == before
    assert project.survivors() == []
