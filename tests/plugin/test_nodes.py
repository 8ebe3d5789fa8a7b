"""What is collected, under which ids, and in which order."""

from __future__ import annotations

import itertools
import random

import pytest

from pytest_evalarc.plugin.nodes import sort_trials
from pytest_evalarc.plugin.session import RECENT
from tests.needs import needs_bwrap
from tests.plugin.project import TASK, TASK_ID, Project

AUDIT = [
    "validate",
    "audit::reference::greets",
    "audit::reference::names",
    "audit::starter",
    "audit::silent",
    "audit::nameless",
]
WITHOUT = ["run", "greets", "names", "success"]
WITH = ["run", "greets", "names", "installed-greet", "used-greet", "success"]
TRIALS = [
    *(f"oracle::without-skills::trial-001::{name}" for name in WITHOUT),
    *(f"oracle::with-skills::trial-001::{name}" for name in WITH),
]

KEEPER = """\
import gc
import weakref

import pytest

kept, results = [], []

def pytest_runtest_makereport(item, call):
    kept.append(call.excinfo)

def pytest_evalarc_trial_finished(result, folder):
    results.append(weakref.ref(result))

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    gc.collect()
    missed = sum(info is not None for info in kept)
    alive = sum(result() is not None for result in results)
    session.config.rootpath.joinpath("counts").write_text(f"{missed} {alive}")
"""
"""Keeps every exception, and tells how many results are alive for it."""


def collected(project: Project, pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Return the ids below hello's task file that are collected."""
    session = project.inline(pytester, "--collect-only", "-q", *arguments)
    assert session.stderr == ""
    return [nodeid.removeprefix(f"{TASK_ID}::") for nodeid in session.ids()]


def test_a_folder_of_tasks_is_validated_and_audited(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Naming the folder asks for no agent, so no trial is even collected."""
    assert collected(project, pytester, "evals") == AUDIT


def test_a_named_task_is_validated_audited_and_tried(
    project: Project, pytester: pytest.Pytester
) -> None:
    """One option shows all there is of a task: client oracle, one trial, both configurations."""
    assert collected(project, pytester, "--evalarc-task", "hello") == [*AUDIT, *TRIALS]


def test_checking_tasks_collects_the_validation_alone(
    project: Project, pytester: pytest.Pytester
) -> None:
    """It is asked while a task is written, when nothing of it runs yet."""
    assert collected(project, pytester, "evals", "--evalarc-check-tasks") == ["validate"]


@pytest.mark.parametrize(
    ("nodeid", "names"),
    [
        ("oracle::with-skills::trial-001::run", ["run"]),
        ("oracle::with-skills::trial-001", WITH),
        ("oracle", [*WITHOUT, *WITH]),
        ("audit", ["greets", "names", "starter", "silent", "nameless"]),
        ("audit::reference", ["greets", "names"]),
        ("nop::without-skills", WITHOUT),
    ],
)
def test_a_node_id_selects_all_below_it_without_any_option(
    nodeid: str, names: list[str], project: Project, pytester: pytest.Pytester
) -> None:
    """An id that was printed can be pasted back, and so can the front of one."""
    ids = collected(project, pytester, f"{TASK_ID}::{nodeid}")

    assert [each.rpartition("::")[2] for each in ids] == names
    assert all(each.startswith(nodeid) for each in ids)


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        (["-m", "evalarc_validate"], 1),
        (["-m", "evalarc_audit"], 5),
        (["-m", "evalarc_trial"], 10),
        (["-m", "evalarc_check"], 4),
        (["-m", "evalarc_expectation"], 2),
        (["-m", "greetings"], 16),
        (["-k", "audit"], 5),
        (["-k", "with-skills and used-greet"], 1),
        (["--deselect", f"{TASK_ID}::oracle"], 6),
    ],
)
def test_markers_and_keywords_choose_among_items(
    expression: list[str], count: int, project: Project, pytester: pytest.Pytester
) -> None:
    """They are ordinary items, and strict markers do not mind a task's tags."""
    chosen = collected(project, pytester, "--evalarc-task=hello", "--strict-markers", *expression)

    assert len(chosen) == count


def test_names_and_tags_take_globs_and_go_past_testpaths(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Whoever names a task means it, whatever a bare run collects."""
    project.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    project.write("tests/test_unit.py", "def test_unit(): pass\n")
    project.add_task("other", TASK.replace('"greetings"', '"slow"'))

    def tasks(*arguments: str) -> set[str]:
        session = project.inline(pytester, "--co", "-q", *arguments)
        return {nodeid.partition("::")[0].split("/")[-2] for nodeid in session.ids()}

    assert tasks() == {"tests"}
    assert tasks("--evalarc-task", "h*") == {"hello"}
    assert tasks("--evalarc-task", "h*", "--evalarc-task", "other") == {"hello", "other"}
    assert tasks("--evalarc-tag", "slo?") == {"other"}
    assert tasks("--evalarc-tag", "slow", "evals") == {"other"}
    assert tasks("tests", "--evalarc-tag", "slow") == {"tests"}


def test_an_ini_file_alone_starts_no_trial(project: Project, pytester: pytest.Pytester) -> None:
    """It says how trials are run; a bare `pytest` must never start an agent."""
    project.write("pytest.ini", "[pytest]\nevalarc_client = nop\nevalarc_trials = 2\n")

    assert collected(project, pytester, "evals") == AUDIT
    asked = collected(project, pytester, "--evalarc-task", "hello", "-k", "run")
    assert asked == [
        f"nop::{configuration}::trial-{trial:03d}::run"
        for configuration, trial in (
            ("without-skills", 1),
            ("with-skills", 1),
            ("with-skills", 2),
            ("without-skills", 2),
        )
    ]


def test_a_foreign_task_is_skipped_in_one_line(project: Project, pytester: pytest.Pytester) -> None:
    """Installing the plugin breaks no project, not even one whose warnings are errors."""
    project.write("evals/tasks/theirs/task.toml", "[metadata]\nauthor = 'a'\n[verifier]\nx = 1\n")
    project.write("evals/tasks/theirs/tests/test_x.py", "raise SystemExit\n")

    session = project.inline(pytester, "evals", "--co", "-q", "-rs", "-W", "error")

    assert session.ret == 0
    assert len(session.ids()) == len(AUDIT)
    told = [line for line in session.stdout.splitlines() if "theirs" in line]
    assert len(told) == 1
    assert told[0].endswith("evals/tasks/theirs/task.toml belongs to another tool")


def test_an_invalid_task_is_one_failed_item_with_every_problem(
    project: Project, pytester: pytest.Pytester
) -> None:
    """They are mended together, and the other tasks run as ever."""
    project.add_task("broken", TASK.replace("toolchain", "tolchain").replace("[expected]", "[ex]"))

    session = project.inline(pytester, "evals", "-v", "-k", "validate")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts == {"failed": 1, "passed": 1, "deselected": 5}
    told = [line for line in session.stdout.splitlines() if line.startswith("evals/tasks/broken")]
    assert [line.split()[1] for line in told if "::" in line] == ["FAILED"]
    # In CI the short summary says them again, whole.
    problems = list(dict.fromkeys(line for line in told if "::" not in line))
    assert len(problems) == 3
    assert problems[0].startswith("evals/tasks/broken/task.toml:3 tolchain:")
    assert "Traceback" not in session.stdout


def test_an_empty_or_unreadable_task_file_is_a_failed_validation(
    project: Project, pytester: pytest.Pytester
) -> None:
    """What is no TOML is a task that its author broke, not a crash of ours."""
    for name, text in (("empty", ""), ("torn", "kind = ["), ("odd", "\x00")):
        project.write(f"evals/tasks/{name}/task.toml", text)

    session = project.inline(pytester, "evals", "-q", "-k", "validate")

    assert session.counts == {"failed": 3, "passed": 1, "deselected": 5}


def test_nothing_of_a_task_but_its_file_is_collected(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Starters and checks hold tests and conftests that would run as the project's own."""
    bomb = "raise SystemExit('imported')\n"
    for path in ("starter/conftest.py", "starter/test_x.py", "checks/../solution/test_y.py"):
        project.write(f"evals/tasks/hello/{path}", bomb)
    project.edit('editable = ["src"]', 'editable = ["src", "test_y.py"]')
    project.write("evals/plugins/guide/skills/greet/test_skill.py", bomb)
    project.write("evals/fixtures/data/test_data.py", bomb)
    project.write("results/hello/test_kept.py", bomb)

    assert collected(project, pytester) == AUDIT


def test_collecting_writes_nothing_and_ends_with_the_plan(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Editors collect at every save; a person wants to know what a run would cost."""
    session = project.inline(pytester, "--collect-only", "evals", "--evalarc-trials", "2")

    assert session.ret == 0
    plan = session.stdout.partition("\nplan: ")[2].splitlines()
    assert plan[0] == "4 trials"
    assert plan[1] == (
        "  hello with oracle: without-skills 1, with-skills 1, with-skills 2, without-skills 2; "
        "at most 480 s each"
    )
    assert plan[2] == "  at most 32 minutes one after another"
    assert [line.strip() for line in plan[3:5]] == [
        "2 trials for each configuration are too few to tell a difference; plan at",
        "least 5",
    ]
    assert plan[5].startswith("=") and "26 tests collected" in plan[5]
    assert not project.results.exists()
    assert not project.eval_root.exists()


@needs_bwrap
@pytest.mark.slow
def test_trials_start_in_the_plans_order(project: Project, pytester: pytest.Pytester) -> None:
    """Configurations alternate between rounds, though the tree groups by configuration."""
    project.write(
        "evals/conftest.py",
        "import pytest, random\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n"
        "    random.Random(4).shuffle(items)\n",
    )

    session = project.inline(pytester, "evals", "--evalarc-client=good", "--evalarc-trials=3")

    assert session.ret == 0
    assert project.starts() == [
        "trial-1-without-skills",
        "trial-1-with-skills",
        "trial-2-with-skills",
        "trial-2-without-skills",
        "trial-3-without-skills",
        "trial-3-with-skills",
    ]


def test_sorting_keeps_the_items_of_a_trial_together(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A shuffled session must not hold ten trials open at once."""
    pytester.chdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        arguments = project.options("evals", "--evalarc-trials=3", f"--rootdir={project.root}")
        items, _ = pytester.inline_genitems(*arguments)
    random.Random(1).shuffle(items)

    sort_trials(items)

    trials = [item.nodeid.rpartition("::")[0] for item in items if "trial-" in item.nodeid]
    changes = sum(before != after for before, after in itertools.pairwise(trials))
    assert changes == 5


@pytest.mark.slow
def test_a_kept_failure_keeps_no_result(project: Project) -> None:
    """Plugins that rerun failures keep every exception: 300 misses would hold 300 results."""
    project.write("evals/conftest.py", KEEPER)

    session = project.pytest("--evalarc-task=hello", "--evalarc-client=nop", "--evalarc-trials=10")

    assert session.ret == 0, session.stdout
    missed, alive = map(int, (project.root / "counts").read_text("utf-8").split())
    assert missed == 20 * len(["greets", "success"]) + 10 * len(["used-greet"])
    assert alive <= RECENT
