"""Tests of the summary of a batch, as it lies beside the folders of results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import dumps, read_model
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.reporting.batch import write_documents
from pytest_evalarc.reporting.summary import read_summary, write_summary
from pytest_evalarc.reporting.verify import verify
from pytest_evalarc.runs.folders import Folders, summary_path
from tests.documents import write_trials


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Return where a batch with a trial of each outcome lies."""
    folder = write_trials(tmp_path)
    return Folders(eval_root=tmp_path / "root", results=folder.parents[2], batch=folder.name)


def path_of(folders: Folders) -> Path:
    return summary_path(folders.results, folders.batch)


def test_the_end_of_a_session_writes_it_beside_the_tasks(folders: Folders) -> None:
    """One file answers for the whole batch, whoever reads it."""
    written = write_documents(folders).summary

    assert written is not None
    summary, path = written
    assert path == path_of(folders) == folders.results / f"{folders.batch}.summary.json"
    assert read_model(path, Summary) == summary == read_summary(folders.results, folders.batch)
    (row,) = summary.tasks
    assert (row.selection, row.left_out) == ("partial", "partial")


def test_it_is_computed_again_byte_for_byte(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    """It rests on plans and results alone: benchmark.json may be gone."""
    write_documents(folders)
    first = path_of(folders).read_bytes()
    path_of(folders).write_bytes(b"torn")
    next(folders.results.glob("*/*/*/benchmark.json")).unlink()

    assert main(["summary", str(folders.results / folders.batch)]) == 0

    assert path_of(folders).read_bytes() == first
    summary, _ = write_summary(folders.results, folders.batch)
    assert capsys.readouterr().out == f"{path_of(folders)}\n{summary.interpretation}\n"


def test_a_task_that_cannot_be_counted_keeps_it_from_being_written(folders: Folders) -> None:
    """A summary without one of its tasks would pass for one of all."""
    (plan,) = folders.results.glob("*/*/*/plan.json")
    other = folders.results / "other" / plan.parent.parent.name / folders.batch
    shutil.copytree(plan.parent, other)
    next(other.glob("trial-*/result.json")).write_bytes(b"{")

    documents = write_documents(folders)

    assert len(documents.benchmarks) == len(documents.problems) == 1
    assert documents.summary is None
    assert not path_of(folders).exists()


def test_an_audit_that_cannot_be_read_keeps_no_summary_from_being_written(
    folders: Folders,
) -> None:
    """A summary is of trials, which say nothing of audits."""
    broken = folders.audit("other")
    broken.mkdir(parents=True)
    (broken / "plan.json").write_bytes(b'{"schema_version": "1.0", "mutants": 3}')

    documents = write_documents(folders)

    assert len(documents.problems) == 1
    assert documents.summary is not None


def test_a_summary_that_cannot_be_written_is_a_problem_that_is_told(folders: Folders) -> None:
    """As on a full disk; the benchmarks are there all the same."""
    path_of(folders).mkdir()

    documents = write_documents(folders)

    assert [problem.where for problem in documents.problems] == [str(path_of(folders))]
    assert (len(documents.benchmarks), documents.summary) == (1, None)


def test_a_batch_without_trials_has_none(tmp_path: Path) -> None:
    """An audit alone compares nothing."""
    folders = Folders(eval_root=tmp_path / "root", results=tmp_path / "results", batch="b1")
    folder = folders.audit("sample")
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(dumps({"schema_version": "1.0", "mutants": []}))

    assert write_documents(folders).summary is None
    with pytest.raises(UsageError, match="is no batch with trials"):
        read_summary(folders.results, "b1")
    assert main(["summary", str(folders.results / "b1")]) == 1


def test_one_that_was_renamed_cannot_be_verified(folders: Folders, tmp_path: Path) -> None:
    """Its name says which batch it is of."""
    write_documents(folders)
    path_of(folders).rename(tmp_path / "night.json")

    assert main(["verify", str(tmp_path / "night.json")]) == 4


def test_an_edited_verdict_is_found(folders: Folders) -> None:
    """The one word that is read is the first that would be edited."""
    write_documents(folders)
    document = json.loads(path_of(folders).read_bytes())
    document["across_tasks"][0]["verdict"] = "helped"
    path_of(folders).write_bytes(dumps(document))

    (found,) = verify(path_of(folders))

    assert str(found) == 'across_tasks.0.verdict: says "helped", its rows give null'
