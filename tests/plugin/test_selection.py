"""How much work there can be, told before anything is configured."""

from __future__ import annotations

import pytest

from pytest_evalarc.plugin.options import Options
from pytest_evalarc.plugin.selection import most_groups
from tests.plugin.project import TASK, TASK_ID, Project

BOTH = [
    *("-m", "evalarc_trial", "evals", "--evalarc-trials=9"),
    *("--evalarc-client=nop", "--evalarc-client=oracle"),
]
"""Two tasks with 9 rounds of 2 configurations each, for each of two clients."""
TRIAL = f"{TASK_ID}::nop::with-skills::trial-001"


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [
        # Validation, reference, starter and two mutants, of each of two tasks.
        (["evals/tasks"], 10),
        (["evals/tasks/hello"], 5),
        (["evals/tasks", TASK_ID], 10),
        (["--evalarc-task=hello", "--evalarc-client=nop"], 5 + 2),
        (["--evalarc-tag=greetings", "--evalarc-client=nop"], 10 + 4),
        (["--evalarc-task=hello", "--evalarc-configuration=with", "--evalarc-trials=3"], 5 + 3),
        (["evals/tasks", "--evalarc-client=nop", "--evalarc-client=oracle"], 10 + 8),
        (["evals/tasks", "--evalarc-check-tasks"], 2),
        ([TASK_ID], 5),
        ([TRIAL], 5 + 2),
        ([TRIAL, TRIAL.replace("nop", "oracle")], 5 + 4),
        (["-m", "evalarc_audit"], 8),
        (["-m", "evalarc_audit", TASK_ID], 4),
        (["-m", "evalarc_trial", "evals", "--evalarc-trials=3"], 12),
        (["-m", "evalarc_trial", "--evalarc-task=hello", "--evalarc-trials=3"], 6),
        # Workers that only wait for a client's slot are of no use.
        (["-m", "evalarc_trial", "evals", "--evalarc-trials=9", "--evalarc-max-parallel=2"], 2),
        ([*BOTH, "--evalarc-max-parallel=nop=1"], 1 + 18 * 2),
        ([*BOTH, "--evalarc-max-parallel=nop=1,oracle=4"], 1 + 4),
        ([*BOTH, "--evalarc-max-parallel=nop=100,3"], 18 * 2 + 3),
        ([*BOTH, "--evalarc-max-parallel=nop=0"], 2 * 18 * 2),
        # Other tests may run as well, and what is only graded is found elsewhere.
        ([], None),
        (["evals"], None),
        (["evals/tasks", "test_unit.py"], None),
        (["--evalarc-task=hello", "test_unit.py"], None),
        (["evals/tasks", "--evalarc-trials=many"], None),
        (["--evalarc-task=hello", "--evalarc-submission=mine"], None),
        (["-m", "evalarc_trial", "--evalarc-regrade=results"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_work_is_bounded_before_any_task_is_loaded(
    arguments: list[str],
    groups: int | None,
    project: Project,
    pytester: pytest.Pytester,
    alone: tuple[str, ...],
) -> None:
    """A worker more than there is work for costs a start; one too few costs a trial's time."""
    project.add_task("other")
    project.write("test_unit.py", "def test_unit(): pass\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        config = pytester.parseconfig(*alone, "--rootdir", str(project.root), *arguments)

        found = most_groups(config, project.root / "evals/tasks", Options(config))

    assert found == groups


@pytest.mark.parametrize("arguments", [["evals/tasks"], ["-m", "evalarc_audit"]], ids=" ".join)
def test_a_pack_alone_knows_its_controls(
    arguments: list[str], project: Project, pytester: pytest.Pytester, alone: tuple[str, ...]
) -> None:
    """Loading it takes longer than a worker's start."""
    project.add_task("packed", TASK.replace('toolchain = "shell"', 'pack = "durable-kv"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        config = pytester.parseconfig(*alone, "--rootdir", str(project.root), *arguments)

        assert most_groups(config, project.root / "evals/tasks", Options(config)) is None
