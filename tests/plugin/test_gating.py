"""Gates in a session: refused before anything runs, decided at its end, and seen by other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_evalarc.counting.gate import Answer, Decision
from pytest_evalarc.counting.gate_names import CAUSE_GROUPS
from pytest_evalarc.plugin.gating import MOST_ANSWERS, gate_lines
from tests.needs import needs_bwrap
from tests.plugin.project import Project

RUN = ("--evalarc-task=hello", "--evalarc-batch=night")


def gates(stdout: str) -> list[str]:
    """Return the lines of the section of gates."""
    section = stdout.partition(" evalarc gates ")[2].splitlines()[1:]
    return [line for line in section if not line.startswith("=") and " in " not in line[:30]]


def cases(path: Path) -> Mapping[str, ElementTree.Element]:
    """Return the gates of a JUnit file by their names."""
    found = ElementTree.parse(path).iter("testcase")
    return {
        case.get("name", ""): case for case in found if case.get("classname") == "evalarc.gates"
    }


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_wrong_gate_ends_the_session_before_anything_runs(
    workers: tuple[str, ...], project: Project
) -> None:
    """Hours of trials would have been for nothing."""
    session = project.pytest(*workers, *RUN, "--evalarc-gate=sucess_rate>=0.8")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert "no document has 'sucess_rate'; nearest: success_rate" in session.stderr
    assert len(session.stderr.strip().splitlines()) == 1
    assert not project.results.exists()


def test_a_gate_without_tasks_is_refused(pytester: pytest.Pytester) -> None:
    """It would guard nothing, in silence."""
    done = pytester.runpytest_inprocess("--evalarc-gate=success_rate>=0.8")

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*--evalarc-gate: there is no folder of tasks at*"])


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_gates_decide_the_run_and_stand_in_its_junit_file(
    workers: tuple[str, ...], project: Project
) -> None:
    """Exit status, terminal and XML must say the same, whoever ran the trials."""
    expressions = ("success_rate==1 and mutation_score==1", "weakest_margin>=2", "resolved")
    options = [f"--evalarc-gate={text}" for text in expressions]

    session = project.pytest(*workers, *RUN, *options, "--junitxml=junit.xml")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts == {"passed": 16}
    benchmark = "results/hello/oracle/night/benchmark.json"
    audit = "results/hello/audit/night/audit.json"
    assert gates(session.stdout) == [
        "held: success_rate==1 and mutation_score==1",
        f"  success_rate==1: held, found 1, hello with oracle, {benchmark}",
        f"  mutation_score==1: held, found 1, hello: audit, {audit}",
        "failed: weakest_margin>=2",
        f"  weakest_margin>=2: failed, found 1, hello: audit, {audit}",
        "not decidable: resolved",
        "  resolved: not decidable, no document answers it: no submission was evaluated",
    ]
    suite = ElementTree.parse(project.root / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("19", "2")
    found = cases(project.root / "junit.xml")
    assert list(found) == list(expressions)
    failures = {name: case.find("failure") for name, case in found.items()}
    assert failures[expressions[0]] is None
    failure = failures["weakest_margin>=2"]
    assert failure is not None
    assert "failed, found 1, hello: audit" in str(failure.get("message"))
    (counted,) = {
        tuple(found["causes"])
        for found in project.document("benchmark.json")["configurations"].values()
    }
    assert counted == CAUSE_GROUPS


@needs_bwrap
@pytest.mark.slow
def test_a_run_that_holds_its_gates_passes(project: Project, pytester: pytest.Pytester) -> None:
    """And with `-q` a gate that is held has one line."""
    text = "success_rate.ci95.high==1 and causes.failed.timeout==0"

    session = project.inline(pytester, *RUN, f"--evalarc-gate={text}", "-q")

    assert session.ret == 0
    assert gates(session.stdout) == [f"held: {text}"]


@needs_bwrap
@pytest.mark.slow
def test_a_miss_that_a_gate_forbids_fails_the_run(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A miss alone is a measurement; the gate says what it must not come to."""
    options = ("--evalarc-client=nop", "evals", "-m", "evalarc_trial", "-q")

    session = project.inline(pytester, *options, "--evalarc-gate=success_rate>0")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert "failed" not in session.counts
    assert gates(session.stdout)[0] == "failed: success_rate>0"


@needs_bwrap
@pytest.mark.slow
def test_a_partial_benchmark_decides_no_gate(project: Project, pytester: pytest.Pytester) -> None:
    """Half of a batch may be its better half."""
    session = project.inline(
        pytester, *RUN, "--evalarc-gate=success_rate>=0", "-k", "with-skills and not without"
    )

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert "the trials are partial: not every planned one reached its end" in session.stdout


@needs_bwrap
@pytest.mark.slow
def test_a_gate_in_an_ini_file_is_about_the_documents_that_are_made(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A bare `pytest` starts no agent, so it is held to no rate; a typed gate must be answered."""
    project.write("pytest.ini", "[pytest]\nevalarc_gate =\n  success_rate>=0.5\n  killed==2\n")

    bare = project.inline(pytester, "evals")
    typed = project.inline(pytester, "evals", "--evalarc-gate=success_rate>=0.5")

    assert bare.ret == 0
    assert gates(bare.stdout)[0] == "held: killed==2"
    assert "success_rate" not in bare.stdout
    assert typed.ret == pytest.ExitCode.TESTS_FAILED
    assert "no document answers it: no trials were run" in typed.stdout


def test_collecting_decides_nothing(project: Project, pytester: pytest.Pytester) -> None:
    """There is nothing yet that could answer."""
    session = project.inline(pytester, *RUN, "--co", "--evalarc-gate=success_rate>=0.5")

    assert session.ret == 0
    assert "evalarc gates" not in session.stdout


def test_what_failed_stands_first_and_no_list_floods_the_terminal() -> None:
    """With hundreds of tasks the one that failed is what a reader looks for."""
    held = [
        Answer(condition="a>0", status="held", value=1.0, subject=f"task {n}", where="x.json")
        for n in range(MOST_ANSWERS + 5)
    ]
    failed = Answer(condition="a>0", status="failed", value=0.25, subject="bad", where="y.json")

    head, first, *rest = gate_lines(Decision(gate="a>0", answers=(*held, failed)))

    assert head == "failed: a>0"
    assert first == "a>0: failed, found 0.25, bad, y.json"
    assert len(rest) == MOST_ANSWERS
    assert rest[-1] == "… and 6 more answers"
