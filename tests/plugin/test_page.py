"""The report page of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project
from tests.reporting.page.batches import Page

pytestmark = [needs_bwrap, pytest.mark.slow]


def parsed(file: Path) -> Page:
    return Page(file.read_text("utf-8"))


def test_a_session_writes_its_page_over_workers_too(project: Project) -> None:
    """One process writes it, once all results are there."""
    session = project.pytest(
        "evals", "--evalarc-client=good", "--evalarc-html=pages/p.html", "-n2", "-q"
    )

    assert session.ret == 0, session.stdout
    assert f"report page: {project.root / 'pages/p.html'}" in session.stdout
    found = parsed(project.root / "pages/p.html")
    assert set(found.trials) == {
        "trial:hello/good/trial-1-with-skills",
        "trial:hello/good/trial-1-without-skills",
    }
    document = project.document("benchmark.json")
    sides = document["configurations"]
    rates = [side["success_rate"] for side in sides.values()]
    numbers = found.numbers("What the trials add up to")
    assert numbers["success rate"] == [*rates, document["delta"]["success_rate"]]
    audit = project.document("audit.json")
    assert f"caught {audit['killed']} of {audit['total']} declared faults" in found.html
    files = [
        file["path"]
        for each in found.trials.values()
        for block in each["blocks"]
        for file in block.get("files", ())
    ]
    assert "src/greeting" in files


def test_a_session_without_results_says_that_there_is_no_page(project: Project) -> None:
    """Nothing failed, and a page of nothing would look like results that are lost."""
    session = project.pytest("evals", "--evalarc-check-tasks", "--evalarc-html=p.html", "-q")

    assert session.ret == 0, session.stdout
    assert "no report page: nothing was run" in session.stdout
    assert not (project.root / "p.html").exists()


def test_a_page_that_cannot_be_written_fails_the_run(project: Project) -> None:
    """Whoever waits for it must not take an old one for it."""
    project.write("file", "")

    session = project.pytest("evals", "-m", "evalarc_audit", "--evalarc-html=file/p.html", "-q")

    assert session.ret == 1
    assert "not written:" in session.stdout
    assert project.document("audit.json")["passed"]


def test_a_regrading_gets_the_page_of_the_batch_that_it_graded_again(project: Project) -> None:
    """Both gradings stand beside each other."""
    run = ("evals", "-m", "evalarc_trial", "--evalarc-batch=b", "-q")
    assert project.pytest(*run, "--evalarc-client=good").ret == 0

    session = project.pytest(
        "--evalarc-regrade=results", "--evalarc-batch=b", "--evalarc-html=p.html", "-q"
    )

    assert session.ret == 0, session.stdout
    found = parsed(project.root / "p.html")
    assert "Re-grading 1" in found.html
    assert "2 kept submissions were graded again, and every verdict stayed." in found.html
