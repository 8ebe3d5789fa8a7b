from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.model.base import Cause
from pytest_evalarc.reporting.exports.rows import COLUMNS, LongRow
from tests.batches import transcript_of, write_audit, write_batch
from tests.documents import grading
from tests.validation import jsonschema

WITH, WITHOUT = "with-skills", "without-skills"
SCHEMA = Path(__file__).parents[1] / "reporting/exports/schemas/mutation-testing-report-schema.json"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current folder with a batch of four trials, one of them excluded, and an audit."""
    monkeypatch.chdir(tmp_path)
    broke = Cause(kind="grader_broke", detail="the disk is full")
    broken = grading(status="infrastructure_error", cause=broke, rows=())
    fails = grading("says.words", steps={"build": "pass", "fmt_check": "skipped"})
    gradings = {WITH: [None, None], WITHOUT: [fails, broken]}
    write_batch(tmp_path, gradings, transcript=transcript_of("2.1.3"))
    write_audit(tmp_path)
    return tmp_path


def exported(
    capsysbinary: pytest.CaptureFixture[bytes], *arguments: str, results: str = "results/b1"
) -> bytes:
    assert main(["export", results, *arguments]) == 0
    return capsysbinary.readouterr().out


def cells(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


@pytest.mark.usefixtures("project")
def test_the_long_table_has_a_row_for_each_trial_and_check(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """What a spreadsheet or a data frame pivots must not have been summed up before."""
    data = exported(capsysbinary, "--format", "csv", results="results/tiny/oracle/b1")

    rows = cells(data)
    first = [row for row in rows if (row["configuration"], row["trial"]) == (WITHOUT, "1")]
    assert [
        (row["part"], row["name"], row["dimension"], row["seed"], row["passed"]) for row in first
    ] == [
        ("success", "success", "", "", "false"),
        ("step", "build", "", "", "true"),
        ("check", "adds", "sums", "17", "true"),
        ("check", "says", "words", "17", "false"),
        ("check", "says", "style", "17", "true"),
        ("check", "adds", "sums", "41", "true"),
        ("check", "says", "words", "41", "false"),
        ("check", "says", "style", "41", "true"),
    ]
    assert {row["tokens"] for row in rows} == {"125"}
    assert {row["agent_s"] for row in rows} == {"12.5"}
    excluded = [row for row in rows if row["outcome"] == "excluded_grading"]
    assert [(row["part"], row["passed"], row["cause"]) for row in excluded] == [
        ("success", "", "grading")
    ]


@pytest.mark.usefixtures("project")
def test_controls_of_an_audit_are_rows_too(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Which check caught which fault is the same question as which trial passed which."""
    rows = cells(exported(capsysbinary, "--format", "csv", results="results/tiny/audit/b1"))

    assert [(row["control"], row["name"], row["passed"]) for row in rows][-4:] == [
        ("first-only", "adds", "false"),
        ("first-only", "empty", "true"),
        ("empty-is-one", "adds", "true"),
        ("empty-is-one", "empty", "true"),
    ]
    assert {row["kind"] for row in rows} == {"control"}
    assert {row["trial"] for row in rows} == {""}


@pytest.mark.usefixtures("project")
def test_the_table_as_json_says_each_columns_type_and_keeps_to_it(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """One type for each column is what Parquet asks for, and null is no type."""
    document = json.loads(exported(capsysbinary, "--format", "long-json"))
    kinds: dict[str, Any] = {"string": str, "int64": int, "float64": float, "bool": bool}

    assert {column["name"]: column["type"] for column in document["columns"]} == COLUMNS
    assert list(COLUMNS) == list(LongRow._fields)
    assert {row["kind"] for row in document["rows"]} == {"trial", "control"}
    for row in document["rows"]:
        for name, value in row.items():
            assert value is None or type(value) is kinds[COLUMNS[name]], name


@pytest.mark.usefixtures("project")
def test_a_mutation_report_fits_its_schema_and_shows_mutants_in_their_place(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The viewers refuse, or show as empty, what does not fit."""
    tasks = ("--tasks", "project/evals/tasks")
    report = json.loads(exported(capsysbinary, "--format", "mutation-testing", *tasks))

    jsonschema.Draft7Validator(json.loads(SCHEMA.read_bytes())).validate(report)
    placed = report["files"]["tiny/solution/app/__init__.py"]
    (mutant,) = placed["mutants"]
    assert placed["source"].splitlines()[2][11:22] == "sum(values)"
    assert mutant["location"] == {
        "start": {"line": 3, "column": 12},
        "end": {"line": 3, "column": 23},
    }
    assert (mutant["status"], mutant["killedBy"]) == ("Killed", ["tiny/adds"])
    assert mutant["replacement"] == "sum(values[:1])"
    listed = report["files"]["tiny/mutants"]
    assert listed["source"] == "empty-is-one: a fault of edges\n"
    (survivor,) = listed["mutants"]
    assert (survivor["status"], survivor["killedBy"]) == ("Survived", [])
    assert survivor["coveredBy"] == ["tiny/empty"]
    known = {test["id"] for file in report["testFiles"].values() for test in file["tests"]}
    assert known == {"tiny/adds", "tiny/empty"}


def test_mutants_of_a_task_that_changed_are_listed(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The place of a fault in another text would be a wrong one."""
    (project / "project/evals/tasks/tiny/starter/README.md").write_text("Another app.\n", "utf-8")

    tasks = ("--tasks", "project/evals/tasks")
    report = json.loads(exported(capsysbinary, "--format", "mutation-testing", *tasks))

    assert list(report["files"]) == ["tiny/mutants"]
    assert [
        mutant["location"]["start"] for mutant in report["files"]["tiny/mutants"]["mutants"]
    ] == [
        {"line": 1, "column": 1},
        {"line": 2, "column": 1},
    ]
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_bytes())).validate(report)


@pytest.mark.usefixtures("project")
def test_trials_are_told_in_the_layout_of_skill_creator(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Its viewer reads these names exactly, and shows nothing under others."""
    document = json.loads(exported(capsysbinary, "--format", "skill-creator"))

    assert document["metadata"]["runs_per_configuration"] == 2
    assert document["metadata"]["executor_model"] == "m1"
    runs = {(run["configuration"], run["run_number"]): run for run in document["runs"]}
    assert sorted(runs) == [("with_skill", 1), ("with_skill", 2), ("without_skill", 1)]
    run = runs["without_skill", 1]
    assert (run["eval_id"], run["eval_name"]) == (1, "tiny")
    assert run["result"] == {
        "pass_rate": 0.75,
        "passed": 3,
        "failed": 1,
        "total": 4,
        "time_seconds": 12.5,
        "tokens": 125,
        "errors": 0,
    }
    assert run["expectations"][2] == {
        "text": "check says.words",
        "passed": False,
        "evidence": "",
    }
    summary = document["run_summary"]
    assert summary["with_skill"]["pass_rate"] == {
        "mean": 1.0,
        "stddev": 0.0,
        "min": 1.0,
        "max": 1.0,
    }
    assert summary["delta"] == {"pass_rate": "+0.25", "time_seconds": "+0.0", "tokens": "+0"}
    assert document["notes"] == [
        "tiny: trial 2 of without-skills is left out, as it does not count: excluded_grading."
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["results/none", "--format", "csv"], "results/none: holds no results"),
        (
            ["results/tiny/oracle/b1", "--format", "mutation-testing"],
            "results/tiny/oracle/b1: holds no audit",
        ),
        (
            ["results/tiny/audit/b1", "--format", "skill-creator"],
            "results/tiny/audit/b1: holds no trials",
        ),
        (["results/b1", "--format", "csv", "-o", "no/x.csv"], "no/x.csv: cannot be written"),
    ],
)
@pytest.mark.usefixtures("project")
def test_results_without_such_a_form_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """An empty table would be taken for a batch without failures."""
    assert main(["export", *arguments]) == 1

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"pytest-evalarc: {sentence}")


def test_an_audit_without_a_score_makes_no_report(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The viewer would reckon one from what is left."""
    (project / "results/tiny/audit/b1/rows/first-only.json").unlink()

    assert main(["export", "results/b1", "--format", "mutation-testing"]) == 1

    assert "the audit of tiny: has no mutation score: partial" in capsys.readouterr().err


def test_a_file_gets_the_same_bytes_as_the_terminal(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """CSV has line ends of its own, which no terminal may change."""
    printed = exported(capsysbinary, "--format", "csv")

    assert exported(capsysbinary, "--format", "csv", "-o", "table.csv") == b""
    assert (project / "table.csv").read_bytes() == printed
    assert printed.count(b"\r\n") == printed.count(b"\n")


# The page.

PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text("utf-8")


def test_the_page_lists_every_column_with_its_type() -> None:
    """A reader makes a table of their own from it."""
    listed = re.findall(r"^\| `(\w+)` \| (string|int64|float64|bool) \|", PAGE, re.MULTILINE)

    assert listed == list(COLUMNS.items())


def test_the_exports_of_the_page_work(project: Path) -> None:
    """A reader pastes them."""
    for name in ("oracle", "audit"):
        (project / "results" / "tiny" / name / "latest").symlink_to("b1")
    lines = re.findall(r"^pytest-evalarc (export .*)$", PAGE, re.MULTILINE)

    assert [main(line.replace("url-slugs", "tiny").split()) for line in lines] == [0, 0, 0, 0]
    assert {path.name for path in project.glob("*.*")} == {
        "trials.csv",
        "trials.json",
        "mutation.json",
        "benchmark.json",
    }
