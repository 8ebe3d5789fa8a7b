"""Runs of pytest's own suite are read and compared right: a small suite stands for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.own_suite import (
    Difference,
    Run,
    State,
    Suite,
    compared,
    counts,
    differences,
    outcomes,
    told,
)

MARKED = """
import pytest

def test_passes(): pass

def test_fails(): assert False

@pytest.fixture
def broken():
    yield
    raise OSError

def test_breaks(broken): assert False

class TestIn:
    @pytest.mark.parametrize("value", [1])
    @pytest.mark.xfail
    def test_expected(self, value): assert False
"""

HEADER = """
pytest_plugins = "pytester"

def test_header(pytester):
    assert "evalarc: tasks in " not in pytester.runpytest().stdout.str()
"""
"""A test of pytest that tasks would break in a session that it starts."""

HELP = """
def test_help(pytester):
    assert "evalarc" not in pytester.runpytest("--help").stdout.str()
"""
"""A test that the plugin would break by being there."""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Return a suite whose files a test writes."""
    folder = tmp_path / "suite"
    (folder / "testing").mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:randomly\n", "utf-8")
    made = Suite(folder)
    made.put_tasks()
    return made


def write(suite: Suite, text: str) -> None:
    (suite.folder / "testing" / "test_some.py").write_text(text, "utf-8")


@pytest.mark.slow
def test_counts_and_the_outcome_of_every_test_are_read(suite: Suite) -> None:
    """One that is left out could come out differently without a word."""
    write(suite, MARKED)

    run = suite.run(State.BESIDE, "testing")

    assert run.counts == "2 failed, 1 passed, 1 xfailed, 1 error"
    assert run.outcomes == {
        "testing.test_some::test_passes": "passed",
        "testing.test_some::test_fails": "failure",
        "testing.test_some::test_breaks": "failure and error",
        "testing.test_some.TestIn::test_expected[1]": "skipped",
    }


@pytest.mark.slow
def test_a_test_that_the_plugin_breaks_is_found(suite: Suite) -> None:
    """The state with tasks in every session reaches the sessions that tests start."""
    write(suite, HEADER + HELP)

    beside = suite.run(State.BESIDE, "testing")
    everywhere = suite.run(State.EVERYWHERE, "testing")

    seen, header = "testing.test_some::test_help", "testing.test_some::test_header"
    assert beside.outcomes == {seen: "failure", header: "passed"}
    assert everywhere.outcomes == {seen: "failure", header: "failure"}
    assert differences(beside, everywhere) == [Difference(header, "passed", "failure")]


@pytest.mark.slow
def test_a_run_in_another_state_than_it_should_be_is_refused(suite: Suite) -> None:
    """Two equal runs with the plugin would read as if it changed nothing."""
    write(suite, "def test_passes(): pass\n")

    with pytest.raises(SystemExit, match="this was no run without the plugin"):
        suite.run(State.WITHOUT, "testing")


@pytest.mark.slow
def test_a_run_that_comes_to_no_end_is_refused(suite: Suite) -> None:
    """There is nothing to compare, which is not the same as no difference."""
    with pytest.raises(SystemExit, match="came to no end"):
        suite.run(State.BESIDE, "--no-such-option")


def test_tests_that_took_part_in_one_run_alone_differ() -> None:
    """A test that vanished is the easiest one to overlook."""
    first = Run("2 passed", {"a::one": "passed", "a::two": "passed"})
    second = Run("2 passed", {"a::two": "passed", "a::three": "passed"})

    assert differences(first, second) == [
        Difference("a::one", "passed", "absent"),
        Difference("a::three", "absent", "passed"),
    ]


def test_names_of_the_junit_file_lead_back_to_node_ids(suite: Suite) -> None:
    """What came out differently is run again alone, by its id."""
    write(suite, "")
    (suite.folder / "testing" / "deep").mkdir()
    (suite.folder / "testing" / "deep" / "test_in.py").touch()

    assert suite.node_id("testing.test_some.TestIn::test_x[a.b]") == (
        "testing/test_some.py::TestIn::test_x[a.b]"
    )
    assert suite.node_id("testing.deep.test_in::test_y") == "testing/deep/test_in.py::test_y"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("..\n===== 4 passed, 1 skipped in 0.12s =====\n", "4 passed, 1 skipped"),
        (
            "== 1 failed, 2 passed, 3 warnings in 65.00s (0:01:05) ==\n",
            "1 failed, 2 passed, 3 warnings",
        ),
        ("INTERNALERROR> boom\n", ""),
        ("", ""),
    ],
)
def test_the_counts_are_those_of_the_last_line(output: str, found: str) -> None:
    """The time differs in any two runs."""
    assert counts(output) == found


def test_two_entries_of_one_test_are_one_outcome() -> None:
    """Pytest writes an entry for the failure, and one for what could not be torn down."""
    entry = '<testcase classname="a.b" name="c"><{0}/></testcase>'
    text = f"<testsuites>{entry.format('failure')}{entry.format('error')}</testsuites>"

    assert outcomes(text) == {"a.b::c": "failure and error"}


def test_a_difference_is_told_with_what_it_came_to_when_run_alone() -> None:
    """A reader must tell a flaky test of pytest from one that the plugin breaks."""
    run = Run("1 failed, 1 passed", {})
    found = [Difference("a::one", "passed", "failure"), Difference("a::two", "failure", "passed")]

    assert told(State.BESIDE, run, found, found[:1]).splitlines() == [
        "with the plugin, tasks beside the suite: 1 failed, 1 passed",
        "  a::one: passed without, failure with",
        "  a::two: failure without, passed with, the same when run alone",
    ]


class Switched(Suite):
    """Leaves the plugin out of one run, where the real thing takes it out of the environment."""

    def run(self, state: State, *arguments: str) -> Run:
        off = ("-p", "no:evalarc") if state is State.WITHOUT else ()
        return super().run(state, *off, *arguments)


@pytest.mark.slow
def test_the_runs_are_compared_and_a_difference_fails(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks from a script reads the status alone."""
    entered: list[State] = []
    monkeypatch.setattr("tests.compat.own_suite.enter", entered.append)
    switched = Switched(suite.folder)
    write(suite, "def test_passes(): pass\n")
    equal = compared(switched, ["testing"])
    write(suite, HEADER)

    different = compared(switched, ["testing"])

    assert (equal, different) == (0, 1)
    assert capsys.readouterr().out.splitlines()[3:] == [
        "without the plugin: 1 passed",
        "with the plugin, tasks beside the suite: 1 passed",
        "with the plugin, tasks in every session: 1 failed",
        "  testing.test_some::test_header: passed without, failure with",
    ]
    # The test that came out differently is run again, in both states.
    assert entered[3:] == [
        *(State.WITHOUT, State.BESIDE, State.EVERYWHERE),
        *(State.EVERYWHERE, State.WITHOUT),
    ]
