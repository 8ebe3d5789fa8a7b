"""A folder of the user's, judged as a candidate of one task."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.main import main
from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

pytestmark = [needs_bwrap, pytest.mark.slow]


@pytest.fixture
def candidate(project: Project) -> Path:
    """Return a folder that passes one of the task's two checks."""
    return project.write("work/src/greeting", "hello\n").parents[1]


def judge(project: Project, pytester: pytest.Pytester, candidate: Path, *more: str) -> Any:
    options = ("--evalarc-task=hello", f"--evalarc-submission={candidate}", "--evalarc-batch=c")
    return project.inline(pytester, *options, *more)


def folder(project: Project) -> Path:
    return project.results / "hello/submission/c"


def test_a_candidate_is_judged_check_by_check(
    project: Project, pytester: pytest.Pytester, candidate: Path
) -> None:
    """The user asked how good it is, so a miss is the answer and no failure of the run."""
    session = judge(project, pytester, candidate, "-v")

    assert session.ret == 0
    assert session.words() == {
        "validate": "PASSED",
        "submission::greets": "PASSED",
        "submission::names": "MISSED",
        "submission::success": "MISSED",
    }
    assert "not resolved, score 0.50" in session.stdout
    assert "dimensions: greets 1 of 1, names 0 of 1" in session.stdout
    assert "check names: nobody is greeted" in session.stdout
    evaluation = project.document("evaluation.json")
    assert (evaluation["status"], evaluation["resolved"], evaluation["score"]) == (
        "failed",
        False,
        0.5,
    )
    assert (evaluation["schema_version"], evaluation["batch"]) == ("1.0", "c")
    assert {row["check"]: row["status"] for row in evaluation["cases"]} == {
        "greets": "passed",
        "names": "failed",
    }
    assert project.documents("result.json") == project.documents("audit.json") == {}
    assert not project.eval_root.exists()


def test_a_good_candidate_is_resolved_and_may_be_demanded(
    project: Project, pytester: pytest.Pytester, candidate: Path
) -> None:
    """A pipeline can require what a person only wants to know."""
    (candidate / "src/greeting").write_text("hello world\n")
    good = judge(project, pytester, candidate, "-q", "--evalarc-strict")
    (candidate / "src/greeting").write_text("hello\n")
    bad = judge(project, pytester, candidate, "-q", "--evalarc-strict", "--evalarc-batch=d")

    assert (good.ret, good.counts) == (0, {"passed": 4})
    assert "resolved, score 1.00" in good.stdout
    assert (bad.ret, bad.counts) == (1, {"failed": 2, "passed": 2})


def test_the_evaluation_is_computed_again_byte_for_byte(
    project: Project,
    pytester: pytest.Pytester,
    candidate: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It rests on the kept grading alone, and the snapshot that was graded is kept beside it."""
    judge(project, pytester, candidate, "-q")
    kept = folder(project)
    first = (kept / "evaluation.json").read_bytes()
    (kept / "evaluation.json").unlink()
    capsys.readouterr()

    assert main(["benchmark", str(kept)]) == 0

    assert capsys.readouterr().out == f"{kept / 'evaluation.json'}\n"
    assert (kept / "evaluation.json").read_bytes() == first
    assert (kept / "submission/src/greeting").read_text() == "hello\n"
    assert (
        json.loads((kept / "submission.json").read_bytes())["sha256"]
        == (json.loads(first)["candidate_sha256"])
    )


def test_collecting_lists_the_items_and_writes_nothing(
    project: Project, pytester: pytest.Pytester, candidate: Path
) -> None:
    """Looking is free."""
    session = judge(project, pytester, candidate, "--co", "-q")

    assert session.ids() == [
        f"{TASK_ID}::{name}"
        for name in ("validate", "submission::greets", "submission::names", "submission::success")
    ]
    assert not project.results.exists()


def test_workers_share_one_grading(project: Project, candidate: Path) -> None:
    """Whatever worker an item is on, the candidate is kept and graded once."""
    options = ("--evalarc-task=hello", f"--evalarc-submission={candidate}", "-n2", "--dist=load")

    session = project.pytest(*options, "-q")

    assert session.counts == {"passed": 2, "missed": 2}
    assert len(project.documents("grading.json")) == 1


def test_a_node_id_selects_a_check_of_the_candidate(
    project: Project, pytester: pytest.Pytester, candidate: Path
) -> None:
    """As for every other item; a wrong one is told with the nearest."""
    option = f"--evalarc-submission={candidate}"

    right = project.inline(pytester, f"{TASK_ID}::submission::greets", option, "-q")
    wrong = project.inline(pytester, f"{TASK_ID}::submission::greet", option, "-q")

    assert right.counts == {"passed": 1}
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    assert "there is no 'greet'; nearest: greets" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--evalarc-task=hello", "--evalarc-submission=gone"], "gone: is no folder"),
        (["--evalarc-task=hello", "--evalarc-submission=conftest.py"], "is no folder"),
        (["--evalarc-task=hello", "--evalarc-submission=results"], "lies in the results"),
        (["--evalarc-task=hello", "--evalarc-submission=results/x"], "lies in the results"),
        (["--evalarc-task=hello", "--evalarc-submission=."], "holds the results in"),
        (["evals", "--evalarc-submission=work"], "and these are selected: hello, other"),
        (["work", "--evalarc-submission=work"], "and none is; name one with --evalarc-task"),
        (
            ["--evalarc-task=hello", "--evalarc-submission=work", "--evalarc-regrade=results"],
            "--evalarc-regrade: cannot be combined with --evalarc-submission",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_sentence(
    project: Project,
    pytester: pytest.Pytester,
    candidate: Path,
    arguments: list[str],
    sentence: str,
) -> None:
    """Before anything is run, and with nothing written."""
    project.add_task("other")
    (project.results / "x").mkdir(parents=True)

    session = project.inline(pytester, *arguments)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert sentence in session.stderr
    assert len(session.stderr.strip().splitlines()) == 1
    assert [path.name for path in project.results.iterdir()] == ["x"]


def test_a_folder_that_pytest_takes_for_tests_is_told(project: Project, tmp_path: Path) -> None:
    """Pytest looks for its root at any word that is a path, and then finds no evals there."""
    outside = tmp_path / "outside"
    outside.mkdir()

    session = project.pytest("--evalarc-task=hello", "--evalarc-submission", outside)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert f"write --evalarc-submission={outside}, or pytest looks for its root" in session.stderr


def test_a_folder_that_leads_pytest_to_another_project_is_told(project: Project) -> None:
    """Its tasks may have the same names, and would judge without anybody noticing."""
    other = project.root.parent / "other"
    (other / "evals/tasks").mkdir(parents=True)
    (other / "pytest.ini").write_text("[pytest]\n")
    (other / "mine").mkdir()

    session = project.pytest("--evalarc-task=hello", "--evalarc-submission", str(other / "mine"))

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert f"pytest took {other} for the project's root; write --evalarc-sub" in session.stderr


def link(candidate: Path) -> None:
    (candidate / "src/greeting").unlink()
    (candidate / "src/greeting").symlink_to("/etc/passwd")


def sink(candidate: Path) -> None:
    (candidate / "/".join("d" * 70)).mkdir(parents=True)


def pipe(candidate: Path) -> None:
    os.mkfifo(candidate / "src/pipe")


@pytest.mark.parametrize("spoil", [link, sink, pipe])
def test_an_invalid_candidate_is_a_miss_with_its_reason(
    project: Project, pytester: pytest.Pytester, candidate: Path, spoil: Any
) -> None:
    """It is the candidate that is wrong, and not the run."""
    spoil(candidate)

    session = judge(project, pytester, candidate, "-q")

    assert (session.ret, session.counts) == (0, {"passed": 1, "missed": 3})
    evaluation = project.document("evaluation.json")
    assert (evaluation["valid"], evaluation["resolved"], evaluation["score"]) == (True, False, 0)
    assert not (folder(project) / "submission/src/greeting").is_symlink()


def test_a_harness_that_breaks_fails_the_run(
    project: Project, pytester: pytest.Pytester, candidate: Path
) -> None:
    """Nothing is known of the candidate then, and that must not look like a verdict."""
    project.edit('toolchain = "shell"', 'toolchain = "broken"')
    broken = judge(project, pytester, candidate, "-q")
    project.edit('toolchain = "broken"', 'toolchain = "missing"')
    missing = judge(project, pytester, candidate, "-q", "--evalarc-batch=d")

    assert (broken.ret, broken.counts) == (1, {"failed": 3, "passed": 1})
    assert "toolchain broken: its tools are gone" in broken.stdout
    assert (missing.ret, missing.counts) == (1, {"failed": 3, "passed": 1})
    assert "no such language here" in missing.stdout
    assert "Traceback" not in broken.stdout + missing.stdout
    assert project.documents("evaluation.json") == {}


def test_a_batch_is_of_one_candidate(
    project: Project, pytester: pytest.Pytester, candidate: Path
) -> None:
    """Repeating it shows what is there; another folder would be told under a foreign name."""
    judge(project, pytester, candidate, "-q")
    before = project.documents("grading.json")
    again = judge(project, pytester, candidate, "-q")
    (candidate / "src/greeting").write_text("hello world\n")
    other = judge(project, pytester, candidate, "-q")

    assert again.counts == {"passed": 2, "missed": 2}
    assert (other.ret, other.counts) == (1, {"failed": 3, "passed": 1})
    assert "the batch was planned with another candidate_sha256" in other.stdout
    assert project.documents("grading.json") == before
