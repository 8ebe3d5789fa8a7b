from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.reporting.page.batches import Page, Several

HELPED = {"a": (9, 2), "b": (8, 4), "c": (10, 5), "d": (7, 5), "e": (9, 6), "f": (6, 3)}
TITLE = "All tasks with oracle"


def facts(found: Page, title: str = TITLE) -> dict[str, float]:
    """Return the exact numbers of an answer over all tasks."""
    (answer,) = found.all("dl", **{"aria-label": title})
    return {
        found.below(row, "dt")[0].text: json.loads(found.below(row, "data")[0].attributes["value"])
        for row in found.below(answer, "div")
        if found.below(row, "data")
    }


def first_answer(found: Page) -> str:
    (answer,) = found.all("section", id="answer")
    boxes = [
        each for each in found.below(answer, "div") if "answer" in each.attributes.get("class", "")
    ]
    return " ".join(boxes[0].text.split())


def test_the_first_answer_is_that_of_all_tasks_with_every_number_of_its_json(
    tmp_path: Path,
) -> None:
    """Whoever runs many tasks asks of the treatment, and not of each of them."""
    batch = Several(tmp_path, HELPED)
    (across,) = batch.summary()["across_tasks"]
    assert across["verdict"] == "helped"

    found = batch.page()

    assert first_answer(found).startswith(
        "helped All tasks with oracle: skills helped, success rate +40 points "
        "The mean difference over 6 tasks is +40 points, 95 % interval from +25 points to "
        "+60 points: it leaves out 0. Each task weighs the same."
    )
    assert facts(found) == {
        "mean difference": across["delta"],
        "95 % interval from": across["delta_ci95"]["low"],
        "95 % interval to": across["delta_ci95"]["high"],
        "mean rate without-skills": across["configurations"]["without-skills"]["success_rate"],
        "mean rate with-skills": across["configurations"]["with-skills"]["success_rate"],
        "tasks that count": across["tasks"],
        "eligible trials": 120,
    }
    assert "Helped, adjusted for the number of tasks: a." in first_answer(found)


def test_each_task_has_its_part_with_the_adjusted_word(tmp_path: Path) -> None:
    """Of many tasks one differs by chance, and its reader must not take it for a finding."""
    batch = Several(tmp_path, HELPED)
    rows = {row["task"]: row for row in batch.summary()["tasks"]}

    found = batch.page()

    told = next(each.text for each in found.all("section", id="answer"))
    assert told.count("adjusted for their number, no difference is shown") == 1
    assert "c with oracle: skills helped, success rate +50 points" in told
    caption = f"{TITLE}, task by task"
    words = {task: cells[0].text for task, cells in found.table(caption).items() if task in rows}
    assert words == {
        "a": "helped",
        **dict.fromkeys("bcdef", "no difference shown"),
    }
    for task, numbers in found.numbers(caption).items():
        row = rows[task]
        sides = row["configurations"]
        assert numbers == [
            None,
            *(sides[name]["success_rate"] for name in ("without-skills", "with-skills")),
            row["delta"],
            *(row["delta_ci95"][end] for end in ("low", "high")),
            *(row["p_value"], row["p_value_holm"], row["matched"]["p_value"]),
            20,
        ]


def test_few_tasks_give_a_mean_and_no_interval(tmp_path: Path) -> None:
    """Three tasks say little of others, however many trials each of them had."""
    batch = Several(tmp_path, {"a": (9, 1), "b": (9, 1), "c": (9, 1)})

    found = batch.page()

    assert first_answer(found).startswith(
        "too few tasks All tasks with oracle: too few tasks to tell whether skills helped"
    )
    numbers = facts(found)
    assert numbers["mean difference"] == 0.8
    assert "95 % interval from" not in numbers
    told = found.below(found.all("svg")[0], "desc")[0].text
    assert told.startswith(
        "All tasks with oracle: with-skills 90 %, no interval, difference +80 points, no interval; "
        "without-skills 10 %, no interval."
    )


def test_a_task_that_does_not_count_is_named_with_its_reason(tmp_path: Path) -> None:
    """A mean over the tasks that went well is another number than it seems."""
    batch = Several(tmp_path, HELPED)
    (batch.results / "b/oracle/b1/trial-1-with-skills/result.json").unlink()

    found = batch.page()

    assert facts(found)["tasks that count"] == 5
    assert facts(found)["eligible trials"] == 100
    assert "Not counted: b." in first_answer(found)
    row = found.table(f"{TITLE}, task by task")["b"]
    assert row[0].text == "not counted: planned trials never reached their end"


def test_where_no_task_counts_there_is_no_number(tmp_path: Path) -> None:
    """A mean of nothing is no 0."""
    batch = Several(tmp_path, {"a": (5, 5), "b": (5, 5)})
    for path in batch.results.glob("*/oracle/b1/trial-1-with-skills/result.json"):
        path.unlink()

    found = batch.page()

    assert "not compared All tasks with oracle: no task can be counted" in first_answer(found)
    assert facts(found) == {"tasks that count": 0, "eligible trials": 0}
    assert first_answer(found).endswith("Not counted: a, b. Each task\u2019s part")


def test_a_single_task_is_its_own_answer(tmp_path: Path) -> None:
    """A second box that says the same with less would only be in the way."""
    found = Several(tmp_path, {"a": (9, 1)}).page()

    assert first_answer(found).startswith("helped a with oracle: skills helped")
    assert not found.all("section", id="tasks")


def test_a_batch_of_which_tasks_are_missing_is_not_summed_up(tmp_path: Path) -> None:
    """Its number would pass for that of all tasks, and contradict the document."""
    batch = Several(tmp_path, HELPED)
    later = batch.results / "a/oracle/b2"
    (batch.results / "a/oracle/b1").rename(later)
    for path in later.rglob("*.json"):
        path.write_text(path.read_text().replace('"batch": "b1"', '"batch": "b2"'))
    (batch.results / "a/oracle/b1").mkdir()
    (batch.results / "a/oracle/b1/plan.json").write_text("{")

    newest = batch.page()

    assert not newest.all("section", id="tasks")
    assert "Batch b1 has trials of more tasks or clients than this page shows" in newest.html
    assert "Batch b2 has trials" not in newest.html


def test_a_summary_that_says_otherwise_is_named(tmp_path: Path) -> None:
    """The page shows what the results give, and its reader learns that the file does not."""
    batch = Several(tmp_path, HELPED)
    document: Any = batch.summary()
    path = batch.results / "b1.summary.json"
    assert batch.write_page(tmp_path / "page.html").problems == ()
    document["across_tasks"][0]["delta"] = 0.9
    path.write_text(json.dumps(document))

    gathered = batch.write_page(tmp_path / "page.html")

    (problem,) = gathered.problems
    assert str(problem).startswith(f"{path}: says otherwise than the results beside it in across_")
    assert gathered.summaries[0].across_tasks[0].delta == pytest.approx(0.4)
