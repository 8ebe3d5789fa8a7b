"""The agent rewrites what judges it, and every later trial is judged by that too.

A check lies at a path that can be guessed, and an agent without a boundary around it walks up from
its folder and appends `exit 0` to whatever is called like one. So a task is compared with what was
planned before a session starts, and on both sides of a grading: bunnycompany/underclass#26.
"""

from __future__ import annotations

import pytest

from tests.evals import DONE, START, Evals, shell
from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

WORDS = "its files are not those that were planned"
UNBOUND = ("--evalarc-sandbox=local", "--evalarc-trust-local", "--evalarc-exploratory")
VANDALS = {
    "a check that always passes": "for f in {evals}/tasks/*/checks/*; do echo 'exit 0' > $f; done",
    "a check that is gone": "rm {evals}/tasks/hello/checks/greets.sh",
    "a starter that is right": "echo hello world > {evals}/tasks/hello/starter/src/greeting",
    "a solution that is wrong": "echo > {evals}/tasks/hello/solution/src/greeting",
    "a longer deadline": "sed -i 's/agent = 60/agent = 6000/' {evals}/tasks/hello/task.toml",
    "a treatment that helps more": "echo more >> {evals}/plugins/guide/skills/greet/SKILL.md",
}


def vandal(project: Project, deed: str) -> None:
    """Give the project a client that does a deed to the task, and none of its work."""
    script = deed.format(evals=project.root / "evals") + "\n"
    text = (project.root / "shell.py").read_text()
    new = text.replace(
        '    "careless":', f'    "vandal": START + {script!r} + DONE,\n    "careless":'
    )
    assert new != text
    project.write("shell.py", new)


@pytest.mark.parametrize("deed", VANDALS.values(), ids=VANDALS)
def test_no_trial_is_judged_by_what_a_session_wrote(project: Project, deed: str) -> None:
    """The trial that did it is excluded, and no later one starts, so that nothing more is paid."""
    vandal(project, deed)

    session = project.pytest(
        "evals", "-m", "evalarc_trial", "--evalarc-client=vandal", "--evalarc-trials=2", *UNBOUND
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.starts()) == 1
    results = project.trial_results()
    first = results.pop(project.starts()[0])
    assert (first["outcome"], first["cause"]["kind"]) == ("excluded_grading", "grading")
    assert WORDS in first["cause"]["detail"]
    assert {each["outcome"] for each in results.values()} == {"setup_failure"}
    assert all(WORDS in each["cause"]["detail"] for each in results.values())


def test_behind_a_boundary_there_is_nothing_to_rewrite(project: Project) -> None:
    """This is the usual case: the folder is not there, and all trials are judged."""
    vandal(project, VANDALS["a check that always passes"])

    session = project.pytest(
        "evals", "-m", "evalarc_trial", "--evalarc-client=vandal", "--evalarc-trials=2"
    )

    assert session.ret == 0
    assert len(project.starts()) == 4
    assert {each["outcome"] for each in project.trial_results().values()} == {"failed"}


def test_a_task_that_is_edited_during_a_grading_excludes_its_trial(make, monkeypatch) -> None:
    """Nobody knows which of both checks has judged; another trial's session can have done it."""
    evals: Evals = make(shell("echo hi", says=(START, DONE)))
    trial = evals.trial()
    from pytest_evalarc.runs import trial as stages

    grade = stages.grade

    def disturbed(*arguments, **words):
        grading = grade(*arguments, **words)
        with (evals.task.root / "checks/adds.py").open("a") as file:
            file.write("# one more line\n")
        return grading

    monkeypatch.setattr(stages, "grade", disturbed)

    result = evals.run(trial)

    assert result.outcome == "excluded_grading"
    assert WORDS in result.cause.detail


def test_what_tools_leave_beside_a_check_changes_nothing(make) -> None:
    """An editor or an interpreter writes its caches into the task, and a batch goes on."""
    evals: Evals = make()
    trial = evals.trial()
    cache = evals.task.root / "checks/__pycache__"
    cache.mkdir()
    (cache / "adds.cpython-311.pyc").write_bytes(b"x")

    assert evals.run(trial).outcome == "succeeded"


def test_controls_that_different_checks_have_judged_give_no_score(project: Project) -> None:
    """A mutant that another check caught than the reference has passed was never caught."""
    greets = project.root / "evals/tasks/hello/checks/greets.sh"
    project.write(
        "evals/conftest.py",
        "import pathlib, pytest\n\n@pytest.fixture(autouse=True)\ndef edit(request):\n"
        f"    path = pathlib.Path({str(greets)!r})\n"
        "    if request.node.name == 'silent':\n        path.write_text('false')\n",
    )

    session = project.pytest("evals", "-m", "evalarc_audit", "-q", "-p", "no:xdist")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    audit = project.document("audit.json")
    classes = {mutant["name"]: mutant["class"] for mutant in audit["mutants"]}
    assert "invalid" in classes.values()
    assert classes["nameless"] != "detected"
    assert audit["mutation_score"] is None
    assert WORDS in session.stdout
