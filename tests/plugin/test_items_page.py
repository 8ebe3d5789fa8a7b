"""The page on items lists every id, marker and word that a session can show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_evalarc.plugin.entry import MARKERS
from pytest_evalarc.plugin.reports import WORDS
from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

PAGE = (Path(__file__).parents[2] / "docs" / "items.md").read_text("utf-8")

NOTE_ITEMS = """
import json
from pathlib import Path
from shell import *

def pytest_collection_finish(session):
    marks = {
        item.nodeid: [m.name for m in item.iter_markers() if m.name.startswith("evalarc_")]
        for item in session.items
    }
    Path(__file__).with_name("items.json").write_text(json.dumps(marks))
"""


def listed(heading: str) -> list[tuple[str, str]]:
    """Return the first word of each row below a heading, and what stands in its last cell."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|(?:.*\|)? ?(.*?) ?\|$", text, re.MULTILINE)


def pattern(name: str) -> str:
    return re.sub("<[^>]+>", "[^:]+", name)


def told_of(nodeid: str) -> list[list[str]]:
    """Return the markers of each row that an id is of; a word of its own beats a placeholder."""
    below = nodeid.removeprefix(f"{TASK_ID}::")
    rows = [
        (name.count("<"), sorted(re.findall("`([^`]+)`", last)))
        for name, last in listed("Node ids")
        if re.fullmatch(pattern(name), below)
    ]
    fewest = min((number for number, _ in rows), default=0)
    return [marks for number, marks in rows if number == fewest]


@pytest.fixture
def collected(project: Project) -> dict[str, list[str]]:
    """Return the markers of every item, by its id, of sessions of each kind."""
    project.write("conftest.py", NOTE_ITEMS)
    named = ("--evalarc-task=hello", "--evalarc-batch=b")
    sessions = [
        (*named, "--co", "--evalarc-client=good"),
        (*named, "--co", "--evalarc-submission=evals/tasks/hello/solution"),
        (*named, "--evalarc-client=good", "-k", "run"),
        ("--co", "--evalarc-regrade=results", "--evalarc-batch=b"),
    ]
    found: dict[str, list[str]] = {}
    for session in sessions:
        assert project.pytest(*session).ret == 0
        found |= json.loads((project.root / "items.json").read_text("utf-8"))
    return found


@pytest.mark.slow
@needs_bwrap
def test_every_item_is_on_the_page_with_its_markers(collected: dict[str, list[str]]) -> None:
    """Who selects by an id or a marker relies on both."""
    wrong = {
        nodeid: (marks, told_of(nodeid))
        for nodeid, marks in collected.items()
        if sorted(set(marks)) not in told_of(nodeid)
    }
    ids = [nodeid.removeprefix(f"{TASK_ID}::") for nodeid in collected]
    unmet = [
        name
        for name, _ in listed("Node ids")
        if not any(re.fullmatch(pattern(name), found) for found in ids)
    ]

    assert wrong == {}
    assert unmet == []


def test_the_page_lists_every_marker() -> None:
    """What `--markers` shows and no page explains is used by nobody."""
    registered = [re.split(r"[(:]", marker)[0] for marker in MARKERS]

    assert [name for name, _ in listed("Markers")] == registered


def test_the_page_lists_every_word_of_ours() -> None:
    """A letter in the progress bar that nobody explains looks like an error."""
    text = PAGE.partition("\n## Words\n")[2]
    words = re.findall(r"^\| `([A-Z]+)` \| `(\w)` \|", text, re.MULTILINE)

    ours = [(word.word, word.letter) for word in WORDS.values() if word.word != "ERROR"]
    assert words == ours
