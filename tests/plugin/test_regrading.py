"""Kept submissions, graded again."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

pytestmark = [needs_bwrap, pytest.mark.slow]

FLAKY = """
import shell
from pathlib import Path
from shell import *
from pytest_evalarc.errors import InfrastructureError

class Flaky(shell.Shell):
    name = "flaky"

    def steps(self, task, copy, tools):
        word = (Path(__file__).parent / "broken").read_text()
        if word == "all" or word and (copy.project / ".agents").exists():
            raise InfrastructureError("lab", "the power is out")
        return super().steps(task, copy, tools)

def pytest_evalarc_toolchains():
    return {**shell.pytest_evalarc_toolchains(), "flaky": Flaky}
"""
RUN = ("evals", "--evalarc-batch=b", "-q", "-m", "evalarc_trial")
AGAIN = ("--evalarc-regrade=results", "--evalarc-batch=b")


@pytest.fixture
def kept(project: Project, pytester: pytest.Pytester) -> Path:
    """Return the folder of a batch whose trials were all excluded: its grading broke."""
    project.write("conftest.py", FLAKY)
    project.write("broken", "all")
    project.edit('toolchain = "shell"', 'toolchain = "flaky"')
    session = project.inline(pytester, *RUN, "--evalarc-client=good")
    assert session.counts["excluded"] == 10, session.stdout
    project.write("broken", "")
    return project.results / "hello/good/b"


def originals(project: Project) -> dict[str, tuple[int, str]]:
    """Return time and digest of every file that the batch consists of."""
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in project.results.rglob("*")
        if path.is_file() and "regrade-" not in str(path.relative_to(project.results))
    }


def document(path: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(path.read_bytes())
    return loaded


def counts(path: Path) -> dict[str, tuple[int, int, int]]:
    configurations = json.loads(path.read_bytes())["configurations"]
    return {
        name: (found["excluded"]["grading"], found["succeeded"], found["failed"])
        for name, found in configurations.items()
    }


def test_excluded_trials_count_after_their_submission_was_graded_again(
    project: Project, pytester: pytest.Pytester, kept: Path
) -> None:
    """The agent's paid work is not lost to a broken machine, and no original is touched."""
    project.write("broken", "all")
    project.inline(pytester, *RUN, "--evalarc-client=careless")
    project.write("broken", "")
    before = originals(project)

    session = project.inline(pytester, *AGAIN, "-v")

    assert session.ret == 0
    assert session.words() == {
        "validate": "PASSED",
        **{
            f"{client}::{configuration}::trial-001::regrade": "PASSED"
            for client in ("good", "careless")
            for configuration in ("without-skills", "with-skills")
        },
    }
    assert originals(project) == before
    assert counts(kept / "benchmark.json") == {
        "without-skills": (1, 0, 0),
        "with-skills": (1, 0, 0),
    }
    assert counts(kept / "benchmark-regrade-1.json") == {
        "without-skills": (0, 1, 0),
        "with-skills": (0, 1, 0),
    }
    # It never read the skill: what the grading finds, expectations still decide.
    careless = project.results / "hello/careless/b/benchmark-regrade-1.json"
    assert counts(careless) == {"without-skills": (0, 1, 0), "with-skills": (0, 0, 1)}
    assert "trial-1-with-skills: excluded grading becomes succeeded" in session.stdout
    assert "re-grading 1: 2 trials graded again" in session.stdout
    assert len(project.starts()) == 4
    assert not project.eval_root.exists()


def test_regradings_count_up_and_are_computed_again_byte_for_byte(
    project: Project, pytester: pytest.Pytester, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each one stands for itself; none overwrites another."""
    project.inline(pytester, f"--evalarc-regrade={kept}", "-q", "-k", "without")
    project.write("broken", "all")
    second = project.inline(pytester, f"--evalarc-regrade={kept}")
    documents = [kept / f"benchmark-regrade-{number}.json" for number in (1, 2)]
    first_bytes = [path.read_bytes() for path in documents]
    for path in documents:
        path.unlink()
    capsys.readouterr()

    assert main(["benchmark", str(kept)]) == 0

    assert [path.read_bytes() for path in documents] == first_bytes
    assert counts(documents[0]) == {"without-skills": (0, 1, 0), "with-skills": (1, 0, 0)}
    assert counts(documents[1]) == {"without-skills": (1, 0, 0), "with-skills": (1, 0, 0)}
    assert (second.ret, second.counts) == (0, {"passed": 1, "excluded": 2})
    assert "it could not be graded: lab: the power is out" in second.stdout


def test_workers_share_one_regrading(project: Project, kept: Path) -> None:
    """All of them write under the number that the controller chose."""
    session = project.pytest(*AGAIN, "-n2", "-q")

    assert session.counts == {"passed": 3}
    assert len(list(project.results.glob("*/*/b/*/regrade-1.json"))) == 2
    assert list(project.results.glob("*/*/b/*/regrade-2.json")) == []


def make_missed(path: Path) -> None:
    """Make a result that of a trial which missed its first check, as it would have been written."""
    result = json.loads(path.read_bytes())
    row = result["gradings"][0]["rows"][0]
    row |= {"status": "failed", "verdicts": dict.fromkeys(row["verdicts"], False)}
    result["code"]["hidden"][row["check"]] = "fail"
    cause = {"kind": "code", "detail": row["check"]}
    result |= {"outcome": "failed", "cause": cause, "success": "fail"}
    path.write_text(json.dumps(result))


def test_a_trial_that_counts_keeps_its_outcome_and_shows_its_new_grading(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Grading again until the verdict pleases would be no measurement."""
    run = (*RUN, "--evalarc-client=good")
    project.inline(pytester, *run)
    kept = project.results / "hello/good/b"
    make_missed(kept / "trial-1-with-skills/result.json")
    project.inline(pytester, *run)
    before = (kept / "benchmark.json").read_bytes()

    session = project.inline(pytester, *AGAIN)

    assert session.ret == 0
    assert counts(kept / "benchmark.json")["with-skills"] == (0, 0, 1)
    assert "trial-1-with-skills: greets: failed before, passed now" in session.stdout
    assert (kept / "benchmark-regrade-1.json").read_bytes() == before


def alter(trial: Path) -> None:
    (trial / "submission/src/greeting").write_text("hello world, again\n")


def add(trial: Path) -> None:
    (trial / "submission/more").write_text("")


def exchange(trial: Path) -> None:
    other = trial.with_name("trial-1-without-skills")
    (trial / "submission.json").write_bytes((other / "submission.json").read_bytes())


def swap(trial: Path) -> None:
    exchange(trial)
    shutil.rmtree(trial / "submission")
    shutil.copytree(trial.with_name("trial-1-without-skills") / "submission", trial / "submission")


def tear(trial: Path) -> None:
    (trial / "submission.json").write_text("{")


@pytest.mark.parametrize("damage", [alter, add, exchange, swap, tear])
def test_an_altered_submission_is_one_sentence_and_stays_excluded(
    project: Project, pytester: pytest.Pytester, kept: Path, damage: object
) -> None:
    """What the agent left is the evidence; something else was never measured."""
    damage(kept / "trial-1-with-skills")  # type: ignore[operator]

    session = project.inline(pytester, f"--evalarc-regrade={kept}", "-q", "-rN")

    assert (session.ret, session.counts) == (1, {"failed": 1, "passed": 2})
    assert "Traceback" not in session.stdout
    assert str(kept / "trial-1-with-skills") in session.stdout
    assert counts(kept / "benchmark-regrade-1.json") == {
        "without-skills": (0, 1, 0),
        "with-skills": (1, 0, 0),
    }


def test_a_trial_without_result_or_submission_is_skipped_with_the_reason(
    project: Project, pytester: pytest.Pytester, kept: Path
) -> None:
    """It may never have started; there is nothing to grade."""
    (kept / "trial-1-with-skills/result.json").unlink()
    (kept / "trial-1-without-skills/submission.json").unlink()

    session = project.inline(pytester, f"--evalarc-regrade={kept}", "-q", "-rs")

    assert (session.ret, session.counts) == (0, {"passed": 1, "skipped": 2})
    assert "the trial has no result" in session.stdout
    assert "no submission was kept (excluded grading)" in session.stdout
    assert list(kept.glob("benchmark-regrade-*")) == []


def test_a_damaged_result_is_told_and_the_others_are_graded(
    project: Project, pytester: pytest.Pytester, kept: Path
) -> None:
    """It costs the sum of its own batch and nothing else."""
    (kept / "trial-1-with-skills/result.json").write_text("{")

    session = project.inline(pytester, *AGAIN)

    assert (session.ret, session.counts) == (1, {"failed": 1, "passed": 2})
    told = [line for line in session.stdout.splitlines() if line.startswith("not written: ")]
    assert len(told) == 1 and "trial-1-with-skills/result.json" in told[0]
    assert (kept / "trial-1-without-skills/regrade-1.json").is_file()


def test_another_task_is_refused_with_the_field(
    project: Project, pytester: pytest.Pytester, kept: Path
) -> None:
    """What is graded again stands beside what was graded then, by the same checks."""
    project.write("evals/tasks/hello/checks/names.sh", "true\n")

    session = project.inline(pytester, *AGAIN)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert "the batch was planned with another task.content_hash" in session.stderr
    assert list(project.results.rglob("*regrade*")) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--evalarc-regrade=gone"], "gone: is no folder"),
        (["--evalarc-regrade=results"], "holds no plan.json; name a batch's own folder, or give"),
        (["--evalarc-regrade=results", "--evalarc-batch=c"], "holds no trials of batch c"),
        (["--evalarc-regrade=results/hello/audit/b"], "holds no trials"),
        (["--evalarc-regrade=results/torn"], "plan.json"),
        (["--evalarc-regrade=results/hello/good/b", "--evalarc-trust-local"], "another sandbox"),
        ([f"{TASK_ID}::good::with", "--evalarc-regrade=results/hello/good/b"], "no 'with'"),
    ],
)
def test_what_cannot_be_graded_again_is_refused_in_one_sentence(
    project: Project, pytester: pytest.Pytester, arguments: list[str], sentence: str
) -> None:
    """Before anything is run."""
    run = ("evals", "--evalarc-client=good", "--evalarc-batch=b", "-q", "-k", "run or starter")
    project.inline(pytester, *run)
    project.write("results/torn/plan.json", "{")

    session = project.inline(pytester, *arguments)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert sentence in session.stderr
    assert len(session.stderr.strip().splitlines()) == 1
