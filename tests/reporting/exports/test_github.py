from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.reporting.batch import Documents
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.reporting.exports.github import (
    MOST_ANNOTATIONS,
    annotation_lines,
    publish,
    step_summary,
)
from tests.batches import write_batch
from tests.documents import audit, grading, write_trials

PATH = Path("benchmark.json")


def benchmark_of(folder: Path) -> Benchmark:
    return read_benchmark(folder)


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    """Return a benchmark of four trials, and an audit with a survivor."""
    fails = grading("says.words")
    folder = write_batch(tmp_path, {"with-skills": [None, None], "without-skills": [fails, None]})
    survived = audit(m1=grading(digest="2"))
    return Documents(benchmarks=((benchmark_of(folder), PATH),), audits=((survived, PATH),))


def test_the_summary_has_a_row_for_each_audit_and_configuration(documents: Documents) -> None:
    """A reviewer sees it above the log."""
    lines = step_summary(documents).splitlines()

    assert "| sample | **no** | 0.50 | 1 of 2 | 0 |" in lines
    assert "| tiny | oracle | with-skills | 2 of 2 | 1.00 (0.34 to 1.00) | 1.00 |" in lines
    assert "| tiny | oracle | without-skills | 1 of 2 | 0.50 (0.09 to 0.91) | 0.50 |" in lines


def test_an_audit_that_did_not_pass_is_an_error_and_a_failed_trial_is_none(
    documents: Documents,
) -> None:
    """A miss is the measurement; a fault that the checks let pass is a defect of the task."""
    (line,) = annotation_lines(documents)

    assert line.startswith(
        "::error title=the audit of sample did not pass::Not detected: m1 (survived). "
    )


def test_a_partial_batch_is_a_warning(tmp_path: Path) -> None:
    """Whoever looks at its rates must know."""
    partial = Documents(benchmarks=((benchmark_of(write_trials(tmp_path)), PATH),))

    (line,) = annotation_lines(partial)

    assert line.startswith("::warning title=tiny with oracle::A planned trial did not reach")


def test_a_shard_whose_trials_all_ended_is_no_warning(tmp_path: Path) -> None:
    """It is partial by design, and a matrix of jobs would be full of warnings."""
    whole = benchmark_of(write_trials(tmp_path))
    ended = {
        name: counted.model_copy(update={"cancelled": 0})
        for name, counted in whole.configurations.items()
    }
    shard = whole.model_copy(
        update={"configurations": ended, "shard": Shard(number=1, of=2), "selection": "partial"}
    )

    assert list(annotation_lines(Documents(benchmarks=((shard, PATH),)))) == []


def test_a_message_stays_one_command_whatever_it_holds() -> None:
    """A line break would end the command, and what follows could be another one."""
    problem = DocumentError("a%0A", "is bad\n::set-env name=X::y", "50 %")

    (line,) = annotation_lines(Documents(problems=(problem,)))

    assert line == "::error title=not written::a%250A: is bad%0A::set-env name=X::y; 50 %25"


def test_no_more_is_annotated_than_is_shown() -> None:
    """GitHub drops the rest without a word."""
    problems = tuple(DocumentError(f"p{number}", "is bad") for number in range(30))

    assert len(list(annotation_lines(Documents(problems=problems)))) == MOST_ANNOTATIONS


@pytest.mark.parametrize("said", [None, "", "false", "1"])
def test_nothing_is_said_anywhere_else(
    documents: Documents, tmp_path: Path, said: str | None
) -> None:
    """A terminal would show the commands as they are."""
    summary = tmp_path / "summary.md"
    environ = {"GITHUB_STEP_SUMMARY": str(summary)}
    if said is not None:
        environ["GITHUB_ACTIONS"] = said

    assert publish(documents, environ) == ()
    assert not summary.exists()


def test_the_summary_is_added_to_what_other_steps_wrote(
    documents: Documents, tmp_path: Path
) -> None:
    """The file is shared by all that a step runs."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", "utf-8")
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}

    lines = publish(documents, environ)

    assert len(lines) == 1
    assert summary.read_text("utf-8") == "before\n" + step_summary(documents)


def test_a_summary_that_cannot_be_written_is_told(documents: Documents, tmp_path: Path) -> None:
    """It must not end the run, which has its documents."""
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "no" / "x.md")}

    with pytest.raises(DocumentError, match=r"GITHUB_STEP_SUMMARY .*: cannot be written"):
        publish(documents, environ)


def test_a_session_without_documents_says_nothing(tmp_path: Path) -> None:
    """Most runs of a project hold no evals."""
    summary = tmp_path / "summary.md"
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}

    assert publish(Documents(), environ) == ()
    assert not summary.exists()
