from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps, read_model
from pytest_evalarc.model.across import ACROSS
from pytest_evalarc.model.comparison import BatchComparison, Change
from pytest_evalarc.model.measured import Measured
from tests.batches import write_batch
from tests.documents import audit, evaluation, grading, write_trials

WITH, WITHOUT = "with-skills", "without-skills"
FAILS = grading("says.words")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current folder whose results hold three batches of one task, and an audit."""
    monkeypatch.chdir(tmp_path)
    baseline = {WITH: [None, None], WITHOUT: [FAILS, FAILS]}
    write_batch(tmp_path, baseline, batch="old")
    write_batch(tmp_path, {**baseline, WITH: [None, FAILS]}, batch="shaky")
    write_batch(tmp_path, {**baseline, WITH: [FAILS, FAILS]}, batch="bad")
    folder = tmp_path / "results" / "sample" / "audit" / "old"
    folder.mkdir(parents=True)
    write_model(folder / "audit.json", audit())
    return tmp_path


def told(capsysbinary: pytest.CaptureFixture[bytes]) -> BatchComparison:
    document = capsysbinary.readouterr().out
    return BatchComparison.model_validate_json(document)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("current", "options", "status"),
    [
        ("old", [], 0),
        ("shaky", [], 0),
        ("shaky", ["--fail-on", "less-reliable"], 1),
        ("bad", [], 1),
        ("bad", ["--fail-on", "less-reliable"], 0),
        ("bad", ["--fail-on", "less-reliable", "--fail-on", "regressed"], 1),
        ("bad", ["--fail-on", "never"], 0),
    ],
)
def test_the_status_is_of_the_changes_that_were_asked_for(
    current: str, options: list[str], status: int, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A script decides what stops it, and by default that is a regression alone."""
    assert main(["compare", "results/old", f"results/{current}", *options]) == status

    comparison = told(capsysbinary)
    worse = {
        row.name: row.change.value
        for row in comparison.rows
        if row.change in (Change.REGRESSED, Change.LESS_RELIABLE)
    }
    change = {"old": None, "shaky": "less_reliable", "bad": "regressed"}[current]
    assert worse == ({"success": change, "says.words": change} if change else {})


@pytest.mark.parametrize(
    "current",
    [
        "results/tiny/oracle/bad",
        "results/tiny/oracle/bad/benchmark.json",
        "results/tiny/oracle/bad/plan.json",
        "results/bad",
    ],
)
def test_a_batch_is_named_by_its_folder_a_file_in_it_or_for_all_tasks(
    project: Path, current: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Whichever of them is at hand."""
    assert main(["benchmark", "results/tiny/oracle/bad"]) == 0
    capsysbinary.readouterr()

    assert main(["compare", "results/tiny/oracle/old", current]) == 1

    assert told(capsysbinary).current == ("tiny/oracle/bad",)


def test_another_task_is_incomparable_and_may_be_allowed(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """2 is neither a regression nor none."""
    files = {"evals/tasks/tiny/starter/README.md": "Another app.\n"}
    write_batch(project, {WITH: [None], WITHOUT: [FAILS]}, batch="other", files=files)

    assert main(["compare", "results/old", "results/other"]) == 2
    (reason,) = {row.reason for row in told(capsysbinary).rows}
    assert reason is not None and reason.startswith("task: is ")

    assert main(["compare", "results/old", "results/other", "--across", "task"]) == 0


@pytest.mark.usefixtures("project")
def test_what_is_accepted_is_compared_with_what_a_run_measured(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """A run of one task must not find all the others removed."""
    assert main(["accept", "results/tiny/oracle/old"]) == 0
    assert main(["accept", "results/sample/audit/old/audit.json"]) == 0
    said = capsysbinary.readouterr().out.decode().splitlines()
    assert said == ["evals/accepted/tiny/oracle.json", "evals/accepted/sample/audit.json"]

    assert main(["compare", "accepted", "results/bad"]) == 1
    comparison = told(capsysbinary)
    assert comparison.baseline == ("tiny/oracle/old",)
    assert comparison.changes[Change.REMOVED] == 0

    assert main(["compare", "accepted", "results/sample/audit/old"]) == 0
    assert told(capsysbinary).baseline == ("sample/audit/b1",)


@pytest.mark.usefixtures("project")
def test_an_accepted_document_holds_what_a_comparison_needs_and_no_more(tmp_path: Path) -> None:
    """It is reviewed in a pull request, so every key of it has to matter."""
    main(["accept", "results/tiny/oracle/old", "--into", "kept"])

    document = json.loads((tmp_path / "kept/tiny/oracle.json").read_bytes())

    assert document["rows"][0] == {
        "configuration": "without-skills",
        "part": "success",
        "name": "success",
        "passed": 0,
        "judged": 2,
        "margin": None,
        "fault_sha256": None,
        "pass_rate": 0.0,
    }
    assert set(document) == set(Measured.model_fields)
    assert len(document["rows"]) == 8


def test_an_accepted_document_that_was_edited_is_not_compared_with(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rate that somebody lowered by hand would hide the next regression."""
    main(["accept", "results/tiny/oracle/old"])
    path = project / "evals/accepted/tiny/oracle.json"
    assert main(["verify", "evals/accepted/tiny/oracle.json"]) == 0
    document = json.loads(path.read_bytes())
    (number,) = [
        number
        for number, row in enumerate(document["rows"])
        if (row["configuration"], row["name"]) == (WITH, "success")
    ]
    document["rows"][number]["passed"] = 0
    path.write_bytes(dumps(document))
    capsys.readouterr()

    assert main(["verify", "evals/accepted/tiny/oracle.json"]) == 1
    told = f"rows.{number}.pass_rate: says 1.0, its rows give 0.0\n"
    assert capsys.readouterr().out == f"evals/accepted/tiny/oracle.json: {told}"

    for baseline in ("accepted", "evals/accepted/tiny/oracle.json"):
        assert main(["compare", baseline, "results/bad"]) == 4
        assert capsys.readouterr().err == (
            f"pytest-evalarc: evals/accepted/tiny/oracle.json: rows.{number}.pass_rate: says 1.0, "
            "but its rows give 0.0; it was edited: accept the results again\n"
        )


def test_nothing_is_accepted_of_results_that_cannot_stand_for_anything(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them are looked at first: half of a batch would be believed for the whole."""
    write_trials(project / "partial")

    assert main(["accept", "partial/results/b1"]) == 1

    assert "tiny/oracle/b1: is partial" in capsys.readouterr().err
    assert not (project / "evals").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["results/none", "results/old"], 4, "results/none: holds no results that can be compared"),
        (["accepted", "results/old"], 4, "evals/accepted: holds no accepted results"),
        (["results/old", "one.json"], 4, "results/old: is no evaluation, and one.json is one"),
        (["one.json", "one.json", "--across", "model"], 4, "--across: is for batches and audits"),
        (["one.json", "one.json", "--markdown"], 4, "--markdown: is for batches and audits"),
        (
            ["results/old", "results/bad", "--output", "no/x.json"],
            4,
            "no/x.json: cannot be written",
        ),
        (["edited.json", "results/old"], 4, "edited.json: killed: says 0, but its rows give 2"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    sentence: str,
) -> None:
    """Neither a regression nor none."""
    write_model(project / "one.json", evaluation())
    write_model(project / "edited.json", audit().model_copy(update={"killed": 0}))

    assert main(["compare", *arguments]) == status

    said = capsys.readouterr()
    assert said.err.startswith(f"pytest-evalarc: {sentence}")
    assert said.err.count("\n") == 1


def test_an_accepted_document_that_was_moved_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under another client's name it would be that client's."""
    main(["accept", "results/tiny/oracle/old"])
    accepted = project / "evals/accepted/tiny"
    (accepted / "oracle.json").rename(accepted / "claude.json")

    assert main(["compare", "accepted", "results/old"]) == 4

    assert "claude.json: is of task tiny and oracle" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_the_summary_is_printed_in_place_of_the_document_or_written_beside_it(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A terminal shows one thing, and a workflow keeps both."""
    assert main(["compare", "results/old", "results/bad", "--markdown"]) == 1
    printed = capsysbinary.readouterr().out
    both = ["--markdown", "found.md", "--output", "found.json"]
    assert main(["compare", "results/old", "results/bad", *both]) == 1

    assert capsysbinary.readouterr().out == b""
    assert (tmp_path / "found.md").read_bytes() == printed
    assert printed.startswith(b"### Something regressed\n")
    assert read_model(tmp_path / "found.json", BatchComparison).changes[Change.REGRESSED] == 2


# The page.

PAGE = (Path(__file__).parents[2] / "docs" / "compare.md").read_text("utf-8")


def first_words(head: str) -> list[str]:
    """Return the first code word of each row of the table with this head."""
    _, found, rest = PAGE.partition(f"| {head} |\n")
    assert found
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    return [line.split("`")[1] for line in lines]


def test_the_page_lists_every_key_change_and_condition() -> None:
    """A reader takes each table for whole."""
    assert first_words("key | what it holds") == list(BatchComparison.model_fields)
    assert first_words("change | what it means") == [change.value for change in Change]
    assert first_words("word for `--across` | what must be equal") == list(ACROSS)


@pytest.mark.usefixtures("project")
def test_the_commands_of_the_page_work(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A reader pastes them."""
    for batch in ("old", "bad"):
        latest = project / "results" / "tiny" / "oracle" / "latest"
        latest.unlink(missing_ok=True)
        latest.symlink_to(batch)
        if batch == "old":
            assert main(["accept", "results/latest"]) == 0
    shown = [
        line.split()[1:]
        for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
        for line in block.splitlines()
    ]
    calls = [
        [
            word.replace("url-slugs/claude", "tiny/oracle")
            .replace("monday", "old")
            .replace("tuesday", "bad")
            for word in call
        ]
        for call in shown
    ]

    assert [main(call) for call in calls] == [1, 1, 1, 0]
    assert (project / "summary.md").exists()
