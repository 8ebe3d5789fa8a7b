"""Many workers: a trial runs once, wherever its items land and whatever dies."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_evalarc.plugin.scheduling import group_of
from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

TRIALS = sorted(
    f"trial-{trial}-{configuration}"
    for trial in (1, 2)
    for configuration in ("with-skills", "without-skills")
)


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/test_x.py::TestX::test_y", "tests/test_x.py::TestX::test_y"),
        (f"{TASK_ID}::validate", f"{TASK_ID}::validate"),
        (f"{TASK_ID}::audit::silent", f"{TASK_ID}::audit::silent"),
        (f"{TASK_ID}::audit::reference::greets", (TASK_ID, "audit", "reference")),
        (f"{TASK_ID}::nop::noise::trial-001::run", (TASK_ID, "nop", "noise", "trial-001")),
        (f"{TASK_ID}::nop::noise::trial-001::names", (TASK_ID, "nop", "noise", "trial-001")),
    ],
)
def test_work_is_handed_out_by_trial_and_by_control(nodeid: str, group: object) -> None:
    """Workers then wait for each other as little as possible."""
    assert group_of(nodeid) == group


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize(
    "dist", ["load", "loadscope", "loadfile", "loadgroup", "worksteal", "each", "no"]
)
def test_a_trial_runs_once_under_every_distribution(dist: str, project: Project) -> None:
    """A lock and a file see to it, never the order in which items are handed out."""
    session = project.pytest(
        *("-n", "2", "--dist", dist, "evals", "-m", "evalarc_trial", "-q"),
        *("--evalarc-client=good", "--evalarc-trials=2"),
    )

    assert session.ret == 0
    assert sorted(project.starts()) == TRIALS
    times = 2 if dist == "each" else 1
    assert session.counts == {"passed": 20 * times}
    benchmark = project.document("benchmark.json")
    assert benchmark["selection"] == "complete"
    counted: dict[str, Any] = benchmark["configurations"]
    assert {name: each["succeeded"] for name, each in counted.items()} == {
        "without-skills": 2,
        "with-skills": 2,
    }
    assert not project.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("restarts", [(), ("--max-worker-restart=0",)], ids=["restart", "none"])
def test_a_worker_that_dies_costs_exactly_its_trial(
    restarts: tuple[str, ...], project: Project
) -> None:
    """What a kernel kills is cancelled with its cause, never run again, and fails the run."""
    session = project.pytest(
        *("-n", "2", *restarts, "evals", "-m", "evalarc_trial", "-q"),
        *("--evalarc-client=fatal-once", "--evalarc-trials=2"),
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    started = project.starts()
    assert len(set(started)) == len(started)
    # Where no worker may follow, xdist ends the session; elsewhere all other trials run.
    assert restarts or sorted(started) == TRIALS
    outcomes = Counter(result["outcome"] for result in project.trial_results().values())
    assert outcomes == {"succeeded": len(started) - 1, "cancelled": 1}
    causes = [result["cause"] for result in project.trial_results().values() if result["cause"]]
    assert [cause["kind"] for cause in causes] == ["worker_crash"]
    assert session.counts["failed"] == 1
    assert "crashed while running" in session.stdout
    assert project.document("benchmark.json")["selection"] == "partial"
    assert project.survivors() == []


@needs_bwrap
@pytest.mark.slow
def test_plain_tests_beside_evals_are_distributed_too(project: Project) -> None:
    """The scheduler is for all that is collected, not for evals alone."""
    project.write(
        "test_unit.py",
        "import pytest\n@pytest.mark.parametrize('n', range(7))\ndef test_unit(n): pass\n",
    )

    session = project.pytest("-n", "2", "-q")

    assert session.ret == 0
    assert session.counts == {"passed": 13}
