"""Nothing was left to fail, and the absence is read as success.

A filter has a typo, a suite was renamed, a marker deselects everything, a file does not parse: no
check fails because none ran. SWE-bench/SWE-bench#474, zeroc-ice/ice#6236.
"""

from __future__ import annotations

import pytest

from tests.grading.small_task import RIGHT, outcomes
from tests.needs import needs_bwrap
from tests.plugin.project import Project

AUDIT, TRIALS = "--evalarc-gate=mutation_score==1", "--evalarc-gate=success_rate>=0"
NOTHING_LEFT = [
    ("-k", "nosuch", AUDIT),
    ("-m", "not evalarc_audit", AUDIT),
    ("--deselect=evals/tasks/hello/task.toml", AUDIT),
    ("--ignore=evals/tasks/hello", AUDIT),
    ("--ignore=evals/tasks", AUDIT),
    ("--evalarc-client=good", "-k", "nosuch", TRIALS),
    ("--evalarc-client=good", "-m", "evalarc_audit", TRIALS),
    ("--evalarc-client=good", "--deselect=evals/tasks/hello/task.toml::good", TRIALS),
]


@pytest.mark.slow
@pytest.mark.parametrize("selection", NOTHING_LEFT, ids=" ".join)
def test_a_demand_that_nothing_answers_fails(project: Project, selection: tuple[str, ...]) -> None:
    """Whoever demands a score and selects it away has a broken command, and must be told."""
    session = project.pytest("evals", *selection, "-q", "--strict-markers")

    assert session.ret != 0
    assert "held:" not in session.stdout
    assert ("not decidable" in session.stdout) or session.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    "selection",
    [
        ("-k", "nosuch"),
        ("--evalarc-check-tasks", "-k", "nosuch"),
        ("--evalarc-task=hallo",),
        ("--evalarc-task=x*",),
        ("--evalarc-task=",),
        ("--evalarc-tag=greeting",),
        ("--evalarc-client=",),
        ("--evalarc-client=goood",),
        ("-m", "evalarc_trail"),
        ("evals/tasks/hello/task.toml::audit::sillent",),
    ],
    ids=" ".join,
)
def test_a_selection_of_nothing_is_no_success(project: Project, selection: tuple[str, ...]) -> None:
    """A misspelt name is told, or ends with pytest's own status for no test at all."""
    where = () if selection[0].startswith("evals") else ("evals",)

    session = project.pytest(*where, *selection)

    assert session.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert not project.results.exists()


@pytest.mark.slow
def test_tasks_that_vanished_are_told(project: Project) -> None:
    """A folder that was renamed leaves a command that once found its tasks there."""
    (project.root / "evals/tasks").rename(project.root / "evals/task")

    session = project.pytest("--evalarc-check-tasks")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert "evals/tasks" in session.stderr


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    ["def value(:\n", "import no_such_module\n", "raise SystemExit(0)\n", "\0", b"\xff\xfe"],
    ids=["no-syntax", "no-import", "exits-well", "nul", "no-utf8"],
)
def test_checks_that_could_not_run_have_not_passed(bench, small_task, broken) -> None:
    """Beside a file that works: what needs nothing of the broken one must not pass alone."""
    small_task.write("checks/needs_nothing.py", "def test_it():\n    assert True\n")
    task = small_task.load()

    grading = bench.grade(task, bench.submit(task, {"app/core.py": RIGHT, "app/more.py": broken}))

    assert not grading.code_passed
    found = outcomes(grading)
    assert found.pop("build") == "fail"
    assert set(found.values()) == {"skipped", "not_run"}


def test_a_task_cannot_lose_its_checks_unnoticed(written) -> None:
    """Each id that the task names has its file, and a file that is none is told."""
    (written.task / "checks/quick.py").rename(written.task / "checks/quick.txt")

    told = "\n".join(written.problems())

    assert "[checks.quick]: has no file in checks/" in told
    assert "checks/quick.txt: is no check" in told
