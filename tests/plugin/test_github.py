from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [pytest.mark.slow, needs_bwrap]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_run_on_github_adds_a_summary_and_annotates_the_audit_that_did_not_pass(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    workers: tuple[str, ...],
) -> None:
    """The controller alone says it, and once."""
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    project.write("evals/tasks/hello/checks/names.sh", "true\n")

    session = project.pytest("-k", "audit", *workers)

    text = summary.read_text("utf-8")
    assert text.count("## Evaluations") == 1
    assert "| hello | **no** | 0.50 | 1 of 2 | 0 |" in text
    commands = [line for line in session.stdout.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error title=the audit of hello did not pass::")
    assert "nameless (survived)" in commands[0]


def test_elsewhere_nothing_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file that is named by chance is nobody's summary."""
    summary = tmp_path / "summary.md"
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    session = project.pytest("-k", "audit")

    assert session.ret == 0
    assert "::error" not in session.stdout
    assert not summary.exists()
