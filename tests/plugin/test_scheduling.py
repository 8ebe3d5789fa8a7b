"""Many workers: a trial runs once, wherever its items land and whatever dies."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from pytest_evalarc.plugin.scheduling import Group, Queue, client_of, group_of, longest_first
from pytest_evalarc.runs.parallel import MaxParallel
from tests.needs import needs_bwrap
from tests.plugin.project import TASK, TASK_ID, Project

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


def test_tasks_of_long_trials_are_handed_out_first() -> None:
    """One that begins last keeps one worker busy when all others have ended."""
    collected: list[Group] = [
        "tests/test_unit.py::test_a",
        "a/task.toml::validate",
        ("a/task.toml", "audit", "reference"),
        ("a/task.toml", "nop", "without-skills", "trial-001"),
        ("b/task.toml", "nop", "without-skills", "trial-001"),
        "long/task.toml::validate",
        ("long/task.toml", "nop", "without-skills", "trial-001"),
        ("long/task.toml", "nop", "with-skills", "trial-001"),
        ("long/task.toml", "nop", "with-skills", "trial-002"),
        ("long/task.toml", "nop", "without-skills", "trial-002"),
        "invalid/task.toml::validate",
    ]
    lengths = {"a/task.toml": 60.0, "b/task.toml": 60.0, "long/task.toml": 900.0}

    ordered = longest_first(collected, lengths)

    assert ordered == [*collected[5:10], *collected[1:5], collected[0], collected[10]]
    assert longest_first(collected, {}) == collected


@pytest.mark.parametrize(
    ("nodeid", "client"),
    [
        ("tests/test_x.py::TestX::test_y::a::b", None),
        (f"{TASK_ID}::validate", None),
        (f"{TASK_ID}::audit::silent", None),
        (f"{TASK_ID}::audit::reference::greets", None),
        (f"{TASK_ID}::submission::greets", None),
        (f"{TASK_ID}::nop::noise::trial-001::run", "nop"),
    ],
)
def test_a_trial_alone_needs_a_slot_of_its_client(nodeid: str, client: str | None) -> None:
    """Controls ask no provider for anything."""
    assert client_of(group_of(nodeid)) == client


def test_what_would_wait_for_a_slot_lets_others_go_first() -> None:
    """A worker that only waits could run a control, or another client's trial."""
    queue = Queue(MaxParallel(named={"claude": 2}))
    clients = [None, "claude", "claude", "claude", None, "codex", "claude"]
    for item, client in enumerate(clients):
        queue.append(client, [item])

    running = {"claude": 0, "codex": 5}
    first = [queue.pop(running) for _ in range(2)]
    running["claude"] = 2
    others = [queue.pop(running) for _ in range(2)]
    running["claude"] = 1
    again = queue.pop(running)
    running["claude"] = 2
    # Nothing else is left, and a worker needs to know what comes next.
    rest = [queue.pop(running) for _ in range(2)]

    assert (first, others, again, rest) == ([[0], [1]], [[4], [5]], [2], [[3], [6]])
    assert len(queue) == 0
    with pytest.raises(IndexError):
        queue.pop({})


def test_what_a_dead_worker_left_is_handed_out_at_once() -> None:
    """Its trial is settled, so the rest only reads what is known."""
    queue = Queue(MaxParallel(each=1))
    queue.append("claude", [1, 2])
    queue.append(None, [3])
    queue.put_back([7, 8])
    queue.put_back([5, 6])

    assert [queue.pop({"claude": 1}) for _ in range(4)] == [[5, 6], [7, 8], [3], [1, 2]]


@needs_bwrap
@pytest.mark.slow
def test_a_worker_begins_with_the_task_of_the_longest_trials(project: Project) -> None:
    """Their deadlines are known before anything has run."""
    project.add_task("last", TASK.replace("agent = 60", "agent = 61"))
    project.write("test_unit.py", "def test_unit(): pass\n")

    session = project.pytest(
        *("-n", "1", "evals", "test_unit.py", "-v", "-m", "not evalarc_audit"),
        "--evalarc-client=good",
    )

    assert session.ret == 0, session.stdout
    files = re.findall(r"PASSED (\S+?)::", session.stdout)
    assert list(dict.fromkeys(files)) == ["evals/tasks/last/task.toml", TASK_ID, "test_unit.py"]
    assert Counter(files) == {"evals/tasks/last/task.toml": 11, TASK_ID: 11, "test_unit.py": 1}


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
@pytest.mark.parametrize(
    ("dist", "restarts"),
    [
        ("load", ()),
        ("load", ("--max-worker-restart=0",)),
        *((dist, ()) for dist in ("loadscope", "loadfile", "loadgroup", "worksteal")),
    ],
    ids=lambda value: value if isinstance(value, str) else "".join(value) or "restarts",
)
def test_a_worker_that_dies_costs_exactly_its_trial(
    dist: str, restarts: tuple[str, ...], project: Project
) -> None:
    """What a kernel kills is cancelled with its cause, never run again, and fails the run."""
    session = project.pytest(
        *("-n", "2", "--dist", dist, *restarts, "evals", "-m", "evalarc_trial", "-q"),
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
def test_a_worker_that_dies_beside_one_with_the_same_items_costs_one_trial(
    project: Project,
) -> None:
    """Under `each` xdist itself schedules, and both workers ask for every trial."""
    session = project.pytest(
        *("-n", "2", "--dist", "each", "evals", "-m", "evalarc_trial", "-q"),
        *("--evalarc-client=fatal-once", "--evalarc-trials=2"),
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert sorted(project.starts()) == TRIALS
    results = project.trial_results().values()
    outcomes = Counter(result["outcome"] for result in results)
    assert outcomes == {"succeeded": 3, "cancelled": 1}
    causes = [result["cause"]["kind"] for result in results if result["cause"]]
    assert causes == ["worker_crash"]
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
