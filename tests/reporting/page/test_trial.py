from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.model.task import PackRef, Task
from pytest_evalarc.reporting.page import trial
from pytest_evalarc.reporting.page.trial import Allowance, embedded
from tests.reporting.page.batches import Batch, stream


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch(tmp_path, with_={"succeeded": 1}, without={"failed": 1})


def blocks(batch: Batch, name: str = "trial-1-with-skills", **facts: Any) -> dict[str, Any]:
    data = batch.page(**facts).trials[f"trial:tiny/oracle/{name}"]
    return {block["heading"]: block for block in data["blocks"]}


def test_a_session_is_told_turn_by_turn_with_its_skill_loads(batch: Batch) -> None:
    """What an agent did explains its outcome better than any number."""
    session = blocks(batch)["Session"]

    assert [turn["source"] for turn in session["turns"]] == ["user", "agent", "agent", "agent"]
    assert session["turns"][0]["text"] == "Make total() add its arguments."
    (skill,), (edit,) = (turn["calls"] for turn in session["turns"][1:3])
    assert (skill["kind"], skill["name"], skill["result"]) == (
        *("skill", "skill: use-numbers"),
        "Use sum().",
    )
    assert (edit["name"], edit["ended"]) == ("edit: app/__init__.py", "done")
    assert session["turns"][3]["text"] == "I add them up."
    assert ["skill load", "use-numbers: done"] in session["facts"]


def test_checks_evidence_isolation_and_output_are_told(batch: Batch) -> None:
    """Each rests on a file of the trial, and is shown as that says it."""
    with_, without = blocks(batch), blocks(batch, "trial-1-without-skills")

    assert ["adds", "sums", "failed", "0.25", "it gave -1"] in without["Steps and checks"]["rows"]
    assert with_["Expectations and their evidence"]["rows"] == [
        ["used-use-numbers", "pass", "the transcript shows its load"]
    ]
    assert "Expectations and their evidence" not in without
    assert ["sandbox", "bwrap 0.12.0"] in with_["Isolation"]["facts"]
    assert '"allowedDomains": []' in with_["Isolation"]["texts"][0][1]
    assert with_["Output of steps and checks"]["texts"] == [["adds", "1 passed\n"]]


def test_what_the_agent_changed_is_compared_with_the_starter(batch: Batch) -> None:
    """The task folder is at hand, and is the one that was evaluated."""
    (file,) = blocks(batch)["What the agent changed"]["files"]

    assert (file["path"], file["word"]) == ("app/__init__.py", "changed")
    assert "+    return sum(values)" in file["lines"]


def test_without_the_task_neither_prompt_nor_changes_are_guessed(batch: Batch) -> None:
    """The agent may have been asked something else than what stands there now."""
    found = blocks(batch, task_of=lambda ref: None)

    assert "not at hand" in found["What the agent changed"]["note"]
    assert [turn["source"] for turn in found["Session"]["turns"]] == ["agent"] * 3
    assert "The prompt is not at hand" in found["Session"]["note"]


def test_a_pack_that_nobody_offers_or_that_fails_costs_its_changes_alone(batch: Batch) -> None:
    """The page of a colleague without that package still shows all else."""
    gone = replace(batch.evals.task, pack=PackRef(name="gone"))
    silent = replace(batch.evals.task, pack=PackRef(name="durable-kv", language="cobol"))

    def note(task: Task, **facts: Any) -> str:
        found: str = blocks(batch, task_of=lambda _: task, **facts)["What the agent changed"][
            "note"
        ]
        return found

    def failing(name: str) -> Pack:
        raise ZeroDivisionError(name)

    assert note(gone).startswith("No comparison: pack 'gone': there is no such one")
    assert note(silent).startswith("No comparison: language of the pack: there is no candidate in")
    assert note(gone, packs=failing) == "No comparison: the pack fails: ZeroDivisionError: gone"


def test_a_trial_without_a_stream_says_so(batch: Batch) -> None:
    """An empty session would look like an agent that said nothing."""
    (batch.folder / "trial-1-with-skills/transcript.jsonl").unlink()

    assert "never started" in blocks(batch)["Session"]["note"]


def test_a_client_that_nobody_offers_costs_its_sessions_alone(batch: Batch) -> None:
    """The page of a colleague without that plugin still shows all else."""
    plan = batch.folder / "plan.json"
    plan.write_text(plan.read_text().replace('"client_kind": "oracle"', '"client_kind": "gone"'))

    assert "gone" in blocks(batch)["Session"]["note"]


def test_a_stream_that_is_too_large_is_linked(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be read into memory whole."""
    monkeypatch.setattr(trial, "MOST_STREAM_BYTES", 10)

    found = blocks(batch)

    assert "too large" in found["Session"]["note"]
    assert ["transcript.jsonl", "results/tiny/oracle/b1/trial-1-with-skills/transcript.jsonl"] in (
        found["Files"]["links"]
    )


def test_what_is_beyond_the_allowance_is_linked_and_told(batch: Batch) -> None:
    """A page of a gigabyte is not opened; the rest stays a click away."""
    found = batch.page(allowance=Allowance(bytes_left=1000))

    data = [block for each in found.trials.values() for block in each["blocks"]]
    notes = [block.get("note", "") for block in data]
    assert any("Too much for this page" in note for note in notes)
    assert any(block.get("turns") for block in data)
    assert "were too much for this page and are linked" in found.html


def test_trials_beyond_those_that_can_be_opened_lead_to_their_results(batch: Batch) -> None:
    """The details of ten thousand trials would be a page of 50 MB that no reader opens."""
    allowance = Allowance(to_open=1)

    found = batch.page(allowance=allowance)

    assert len(found.trials) == 1
    assert allowance.unopened >= 1
    assert found.html.count('/result.json">trial ') == allowance.unopened
    assert f"{allowance.unopened} trial" in found.html
    assert "lead to their results" in found.html


def test_links_start_from_where_the_page_lies(batch: Batch) -> None:
    """A page in another folder leads to the same files, whatever their names hold."""
    place = batch.root / "pages" / "a b#?"
    place.mkdir(parents=True)
    batch.write_page(place / "page.html")

    assert '"../../results/tiny/oracle/b1/trial-1-with-skills/result.json"' in (
        (place / "page.html").read_text("utf-8")
    )


def test_data_cannot_end_its_element() -> None:
    """`<` is what ends a script, begins a comment and opens a tag."""
    text = embedded({"a": "</script><!--\u2028\ud800\x00"})

    assert "<" not in text
    assert text == '{"a":"\\u003c/script>\\u003c!--\u2028\N{REPLACEMENT CHARACTER}\\\\x00"}'


def test_a_line_that_is_no_event_is_told(tmp_path: Path) -> None:
    """What was not understood may be the very thing that a reader looks for."""
    batch = Batch(
        tmp_path, with_={"succeeded": 1}, without={}, events=[*stream(), {"type": "unheard of"}]
    )

    assert "not understood" in blocks(batch)["Session"]["note"]
