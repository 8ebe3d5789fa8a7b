from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.reporting.measured import read_measured


def write_trial(job: Path, name: str, **facts: Any) -> None:
    """Write a Harbor trial with the keys that are read, and some that are not."""
    task = name.partition("__")[0]
    result = {
        "id": "0",
        "task_name": task,
        "trial_name": name,
        "task_checksum": "abc",
        "agent_info": {
            "name": "claude-code",
            "version": "2.1.3",
            "model_info": {"name": "m1", "provider": "p"},
        },
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        **facts,
    }
    (job / name).mkdir(parents=True)
    (job / name / "result.json").write_text(json.dumps(result), "utf-8")


def tallies(path: Path) -> dict[tuple[str, str], tuple[int, int]]:
    return {
        (measured.task, row.name): (row.passed, row.judged)
        for measured in read_measured(path)
        for row in measured.rows
    }


def test_a_harbor_job_is_counted_by_task_over_its_attempts(tmp_path: Path) -> None:
    """An agent out of time has failed, and a broken machine says nothing of it."""
    job = tmp_path / "2026-05-01"
    write_trial(job, "add__1")
    write_trial(job, "add__2", verifier_result={"rewards": {"reward": 0.5}})
    for number, word in ((3, "AgentTimeoutError"), (4, "EnvironmentStartTimeoutError")):
        lost = {"verifier_result": None, "exception_info": {"exception_type": word}}
        write_trial(job, f"add__{number}", **lost)
    write_trial(job, "say__1", verifier_result={"rewards": {"accuracy": 1}})
    (job / "result.json").write_text('{"n_total_trials": 5}', "utf-8")

    assert tallies(job) == {("add", "success"): (1, 3), ("say", "success"): (1, 1)}
    (found, _) = read_measured(job)
    assert (found.kind, found.client, found.batch) == ("imported", "claude-code", "2026-05-01")
    conditions = found.conditions
    assert (conditions.task, conditions.client_version, conditions.model) == ("abc", "2.1.3", "m1")


def test_an_inspect_log_is_counted_by_sample_over_its_epochs(tmp_path: Path) -> None:
    """Each scorer is a question of its own, and partly correct is not correct."""
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "sums", "task_version": 0, "model": "p/m1"},
        "samples": [
            {"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}},
            {"id": 1, "epoch": 2, "scores": {"match": {"value": "I"}}},
            {"id": "two", "epoch": 1, "scores": {"a": {"value": 1.0}, "b": {"value": "P"}}},
            {"id": "three", "epoch": 1, "scores": None, "error": {"message": "broke"}},
        ],
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), "utf-8")

    assert tallies(path) == {
        ("sums", "1"): (1, 2),
        ("sums", "two.a"): (1, 1),
        ("sums", "two.b"): (0, 1),
        ("sums", "three"): (0, 0),
    }
    (found,) = read_measured(path)
    assert found.selection == "complete"
    path.write_text(json.dumps({**log, "status": "cancelled"}), "utf-8")
    assert read_measured(path)[0].selection == "partial"


def test_a_junit_file_is_counted_by_test(tmp_path: Path) -> None:
    """A test that stands there twice was tried twice, and a skipped one was not judged."""
    path = tmp_path / "junit.xml"
    path.write_text(
        """<?xml version="1.0"?><testsuites><testsuite name="unit">
        <testcase classname="a" name="x"/><testcase classname="a" name="x"><failure/></testcase>
        <testcase classname="a" name="y"><error/></testcase>
        <testcase name="z"><skipped/></testcase></testsuite></testsuites>""",
        "utf-8",
    )

    assert tallies(path) == {
        ("unit", "a::x"): (1, 2),
        ("unit", "a::y"): (0, 1),
        ("unit", "z"): (0, 0),
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<a", "is no XML: "),
        ("<html/>", "begins with <html>"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>', "declares a document type"),
    ],
)
def test_what_is_no_junit_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    """Entities may expand without end."""
    path = tmp_path / "junit.xml"
    path.write_text(text, "utf-8")

    with pytest.raises(DocumentError, match=sentence):
        read_measured(path)


def test_two_jobs_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They tell of no isolation, and none is asked of them."""
    monkeypatch.chdir(tmp_path)
    for job, reward in (("before", 1.0), ("after", 0.0)):
        write_trial(Path(job), "add__1", verifier_result={"rewards": {"reward": reward}})
    write_trial(Path("other"), "add__1", task_checksum="xyz")

    assert main(["compare", "before", "after", "--markdown"]) == 1
    assert "| **regressed** | add / claude-code | baseline: success |" in capsys.readouterr().out
    assert main(["compare", "before", "other"]) == 2
    assert main(["accept", "before"]) == 1
