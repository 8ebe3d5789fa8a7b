"""A report that no process can send kills the worker, and with it the trials it was to run.

A test records a path, a worker cannot serialise it, and xdist ends the session with an internal
error: what was paid for is on disk, and what was planned is never started.
Source: pytest-dev/pytest-xdist#1145, numirias/pytest-json-report#75.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pytest_evalarc.plugin.reports import plain
from tests.needs import needs_bwrap
from tests.plugin.project import Project

OWN_TEST = """\
import enum, pathlib

class Colour(enum.IntEnum):
    RED = 1

class Loud:
    def __str__(self):
        return "\\x1b[31mloud"

def test_own(evalarc_trial, record_property):
    record_property("path", pathlib.Path("/tmp/x"))
    record_property("bytes", b"\\xff\\x00")
    record_property("half", "\\ud835")
    record_property("set", {1})
    record_property("colour", Colour.RED)
    record_property("object", Loud())
    record_property("number", 3)
"""
AUTOUSE = """\
import pathlib, pytest

@pytest.fixture(autouse=True)
def noted(record_property):
    record_property("path", pathlib.Path("/tmp/x"))
"""


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_what_a_test_records_of_a_trial_reaches_the_report(
    project: Project, workers: tuple[str, ...]
) -> None:
    """It is told alike with workers and without, and nothing of it ends a session."""
    project.write("evals/test_own.py", OWN_TEST)
    project.write("evals/conftest.py", AUTOUSE)

    session = project.pytest(
        *workers, "evals", "--evalarc-client=good", "--junitxml=junit.xml", "-q"
    )

    assert session.ret == 0
    assert project.document("benchmark.json")["selection"] == "complete"
    cases = list(ElementTree.parse(project.root / "junit.xml").iter("testcase"))
    assert len(cases) == session.counts["passed"] == 18
    own = next(case for case in cases if str(case.get("name")).startswith("test_own"))
    told = {each.get("name"): each.get("value") for each in own.iter("property")}
    assert told["bytes"] == "\ufffd\\x00"
    assert (told["half"], told["path"], told["set"]) == ("\ufffd", "/tmp/x", "{1}")
    assert (told["colour"], told["number"], told["object"]) == ("1", "3", "\\x1b[31mloud")


@pytest.mark.parametrize("value", [None, True, 3, 0.5])
def test_what_is_plain_stays_what_it_is(value: object) -> None:
    """A reader of reports compares numbers as numbers."""
    assert plain(value) is value


def test_a_long_text_is_cut_in_its_middle() -> None:
    """A report is held in memory in two processes, and read by a person at the end."""
    told = plain("x" * (1 << 20))

    assert isinstance(told, str)
    assert len(told) < 70_000
    assert "characters dropped" in told
