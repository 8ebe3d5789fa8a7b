from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.reporting.page.gather import Gathered, batch_folders
from tests.reporting.page.batches import Batch


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch(tmp_path, with_={"succeeded": 3}, without={"failed": 3}, has_sessions=False)


def gathered(batch: Batch) -> Gathered:
    found: Gathered = batch.write_page(batch.root / "page.html")
    return found


def result(batch: Batch, trial: str = "trial-1-with-skills") -> Path:
    return batch.folder / trial / "result.json"


def edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **fields}), "utf-8")


def only_problem(found: Gathered) -> str:
    (problem,) = found.problems
    return str(problem)


def test_whole_results_have_no_problem_and_give_the_written_benchmark(batch: Batch) -> None:
    """What the page shows is the document, read and computed alike."""
    document = batch.document()

    found = gathered(batch)

    assert found.problems == ()
    assert found.trials[0].benchmark.to_json() == document


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ('{"schema_version": "1.0",', "is not JSON"),
        ('{"a": 1, "a": 2}', "twice"),
    ],
)
def test_a_torn_result_is_named_and_counts_as_not_reached(
    batch: Batch, content: str, said: str
) -> None:
    """A rate that silently left it out would be of other trials than it says."""
    result(batch).write_text(content)

    found = gathered(batch)

    assert said in only_problem(found)
    assert str(result(batch)) in only_problem(found)
    (part,) = found.trials
    counted = part.benchmark.configurations["with-skills"]
    assert (counted.cancelled, counted.eligible) == (1, 2)
    assert part.benchmark.selection == "partial"
    assert part.left_out == 1


def test_an_edited_result_is_named_and_left_out(batch: Batch) -> None:
    """It says otherwise than its own rows, so nobody knows which of them is right."""
    edit(result(batch, "trial-2-without-skills"), outcome="succeeded", cause=None, success="pass")

    found = gathered(batch)

    assert "its rows give" in only_problem(found)
    assert found.trials[0].benchmark.configurations["without-skills"].eligible == 2


def test_a_result_in_the_place_of_another_trial_is_not_counted_twice(batch: Batch) -> None:
    """A copied success is no second success."""
    shutil.copy(result(batch), result(batch, "trial-2-with-skills"))

    found = gathered(batch)

    assert "trial" in only_problem(found)
    counted = found.trials[0].benchmark.configurations["with-skills"]
    assert (counted.succeeded, counted.eligible) == (2, 2)


@pytest.mark.parametrize(
    "name", ["trial-9-with-skills/result.json", "trial-1-with-skills/result-1.json"]
)
def test_a_file_that_no_plan_names_is_told(batch: Batch, name: str) -> None:
    """Whoever put it there believes that it counts."""
    path = batch.folder / name
    path.parent.mkdir(exist_ok=True)
    shutil.copy(result(batch), path)

    found = gathered(batch)

    assert "is not of the plan" in only_problem(found)
    assert found.trials[0].benchmark.configurations["with-skills"].eligible == 3


def test_a_batch_that_was_copied_under_another_name_is_left_out(batch: Batch) -> None:
    """The same trials under two names look like twice as many."""
    shutil.copytree(batch.folder, batch.results / "tiny/other/b1")

    found = gathered(batch)

    assert "holds the plan of tiny/oracle/b1" in only_problem(found)
    assert len(found.trials) == 1


def test_a_torn_plan_keeps_no_other_batch_from_being_shown(batch: Batch) -> None:
    """One bad folder is no reason to show nothing."""
    batch.write_audit()
    (batch.folder / "plan.json").write_text("{")

    found = gathered(batch)

    assert "plan.json" in only_problem(found)
    assert found.trials == ()
    assert len(found.audits) == 1


def test_a_benchmark_that_contradicts_its_results_is_told(batch: Batch) -> None:
    """What is shown comes from the results; who edited the document must learn it."""
    batch.document()
    path = batch.folder / "benchmark.json"
    path.write_text(path.read_text().replace('"succeeded": 3', '"succeeded": 2'))

    found = gathered(batch)

    assert "says otherwise than the results beside it" in only_problem(found)
    assert found.trials[0].benchmark.configurations["with-skills"].succeeded == 3


def test_a_benchmark_of_an_older_version_is_no_contradiction(batch: Batch) -> None:
    """Keys that it did not have yet are not missing."""
    batch.document()
    path = batch.folder / "benchmark.json"
    document = json.loads(path.read_text())
    for counted in document["configurations"].values():
        del counted["ci95"]
    path.write_text(json.dumps(document))

    assert gathered(batch).problems == ()


def test_a_torn_control_makes_its_audit_partial(batch: Batch) -> None:
    """A fault that was not judged must not look like one that was caught."""
    folder = batch.write_audit()
    (folder / "rows/first-only.json").write_text("{}")
    shutil.copy(folder / "rows/reference.json", folder / "rows/reference-2.json")

    found = gathered(batch)

    told = [str(problem) for problem in found.problems]
    assert [("first-only" in text, "reference-2" in text) for text in told] == [
        (True, False),
        (False, True),
    ]
    assert found.audits[0].selection == "partial"
    assert found.audits[0].mutation_score is None


def test_problems_stand_on_the_page_with_their_number(batch: Batch) -> None:
    """What is left out must be seen before what is shown is believed."""
    result(batch).write_text("torn")

    found = batch.page()

    (section,) = found.all("section", id="left-out")
    assert str(result(batch)) in section.text
    assert "1 file left out or contradicted" in found.html
    assert "1 file was left out" in " ".join(found.html.split())


def test_the_newest_batch_is_taken_unless_one_is_named(batch: Batch) -> None:
    """A reader of many nights wants the last one."""
    kind = batch.folder.parent
    other = kind / "b0"
    shutil.copytree(batch.folder, other)

    assert batch_folders(batch.results, None) == (batch.folder,)
    assert batch_folders(batch.results, "b0") == (other,)
    (kind / "latest").symlink_to("b0")
    assert batch_folders(batch.results, None) == (other,)
    assert batch_folders(batch.results, "b9") == ()
