from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_evalarc.counting.measured import accepted, content_sha256
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.measured import Measured, MeasuredConditions, MeasuredRow
from pytest_evalarc.reporting.measured import read_measured
from tests.batches import transcript_of, write_batch
from tests.documents import case, grading, write_trials

WITH, WITHOUT = "with-skills", "without-skills"
Rows = dict[tuple[str | None, str, str], tuple[int, int]]


def rows_of(folder: Path) -> Rows:
    (found,) = read_measured(folder)
    return {(row.configuration, row.part, row.name): (row.passed, row.judged) for row in found.rows}


def test_each_check_is_counted_over_trials_and_passes_with_every_seed(tmp_path: Path) -> None:
    """A check of a pack that fails with one seed has failed, in that dimension alone."""
    rows = tuple(
        case(check, seed, ("says.style",) if seed == 41 else ())
        for seed in (17, 41)
        for check in ("adds", "says")
    )
    gradings = [grading(rows=rows, steps={"build": "pass", "fmt_check": "skipped"}), None]
    folder = write_batch(tmp_path, {WITH: [None, None], WITHOUT: gradings})

    found = rows_of(folder)

    assert {key[1:]: value for key, value in found.items() if key[0] == WITHOUT} == {
        ("success", "success"): (1, 2),
        ("step", "build"): (1, 1),
        ("check", "adds"): (2, 2),
        ("check", "says.words"): (2, 2),
        ("check", "says.style"): (1, 2),
    }
    assert found[WITH, "success", "success"] == (2, 2)


def test_what_a_broken_submission_kept_from_being_run_has_not_passed(tmp_path: Path) -> None:
    """Otherwise a submission that does not build would leave the rate of every check as it was."""
    unbuilt = grading(steps={"build": "fail"}, rows=())
    folder = write_batch(tmp_path, {WITH: [None, unbuilt], WITHOUT: [None, None]})

    assert rows_of(folder)[WITH, "check", "adds"] == (1, 2)


def test_what_our_side_broke_is_not_judged(tmp_path: Path) -> None:
    """The trial is excluded, and its checks say nothing."""
    broke = Cause(kind="grader_broke", detail="the disk is full")
    gradings: list[Grading | None] = [
        None,
        grading(status="infrastructure_error", cause=broke, rows=()),
    ]
    folder = write_batch(tmp_path, {WITH: [None, None], WITHOUT: gradings})

    found = rows_of(folder)

    assert found[WITHOUT, "success", "success"] == (1, 1)
    assert found[WITHOUT, "check", "adds"] == (1, 1)


def test_conditions_say_how_the_trials_came_to_be(tmp_path: Path) -> None:
    """Whoever compares needs all of them, and no more."""
    folder = write_batch(
        tmp_path, {WITH: [None], WITHOUT: [None]}, transcript=transcript_of("2.1.3")
    )

    (found,) = read_measured(folder)

    assert (found.task, found.client, found.batch) == ("tiny", "oracle", "b1")
    assert found.selection == "complete"
    conditions = found.conditions
    assert conditions.client_version == "2.1.3"
    assert conditions.served == ("m1",)
    assert (conditions.treatment, conditions.isolation) == ("skills", "enforced")
    assert conditions.task is not None and len(conditions.task) == 64


def test_a_batch_with_trials_that_were_not_reached_is_partial(tmp_path: Path) -> None:
    """Of the outcomes only those that count are in the rates."""
    (found,) = read_measured(write_trials(tmp_path))

    assert found.selection == "partial"
    judged = {
        row.configuration: (row.passed, row.judged) for row in found.rows if row.part == "success"
    }
    assert judged == {WITH: (1, 2), WITHOUT: (0, 1)}
    expected = [
        (row.name, row.passed, row.judged) for row in found.rows if row.part == "expectation"
    ]
    assert expected == [("used-use-numbers", 1, 1)]


def test_what_is_accepted_says_its_rates_and_a_digest_that_its_file_gives_again(
    tmp_path: Path,
) -> None:
    """A reviewer sees a rate move, and an edit by hand contradicts the rest of the document."""
    rows = (row("adds", 1, 3), row("says\ud800", 0, 0))
    kept = accepted(measured(rows, settings={"temperature": 0.10, "seed": 1}))
    write_model(tmp_path / "kept.json", kept)

    again = read_model(tmp_path / "kept.json", Measured)

    assert [found.pass_rate for found in again.rows] == [0.33333333, None]
    assert kept.content_sha256 == content_sha256(again)
    assert accepted(kept) == kept
    other = accepted(measured(rows, settings={"temperature": 0.11, "seed": 1}))
    assert other.content_sha256 != kept.content_sha256


def row(name: str, passed: int, judged: int) -> MeasuredRow:
    return MeasuredRow(configuration=WITH, part="check", name=name, passed=passed, judged=judged)


def measured(rows: tuple[MeasuredRow, ...], **conditions: Any) -> Measured:
    return Measured(
        schema_version=SCHEMA_VERSION,
        kind="trials",
        task="tiny",
        client="claude",
        batch="b1",
        selection="complete",
        conditions=MeasuredConditions(settings=conditions["settings"], isolation="enforced"),
        rows=rows,
    )
