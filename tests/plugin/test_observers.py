"""The hooks that see results: where each is called, how often, and with what."""

from __future__ import annotations

import json

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

OBSERVER = """
import json, os
from pathlib import Path

KIND = "controller"

def pytest_configure(config):
    global KIND
    KIND = "worker" if hasattr(config, "workerinput") else "controller"

def _note(hook, document, path):
    kept = json.loads(path.read_bytes())
    note = {"hook": hook, "process": KIND, "path": str(path), "same": document.to_json() == kept}
    with Path(os.environ["SHELL_STARTS"]).with_name("notes").open("a") as notes:
        notes.write(json.dumps(note) + "\\n")

def pytest_evalarc_trial_finished(result, folder):
    _note("trial_finished", result, folder / "result.json")

def pytest_evalarc_benchmark(benchmark, path):
    _note("benchmark", benchmark, path)

def pytest_evalarc_audit(audit, path):
    _note("audit", audit, path)
"""


@pytest.mark.parametrize(
    ("workers", "runner"), [((), "controller"), (("-n", "2"), "worker")], ids=["alone", "workers"]
)
def test_each_observer_is_called_once_with_what_was_written(
    workers: tuple[str, ...], runner: str, project: Project
) -> None:
    """An exporter that is called twice, or before the file is there, reports what never was."""
    project.write("conftest.py", f"from shell import *\n{OBSERVER}")
    run = ("--evalarc-task=hello", "--evalarc-batch=b")

    session = project.pytest(*workers, *run)
    project.pytest(*workers, *run, "-k", "run")

    assert session.ret == 0, session.stdout
    notes = [
        json.loads(line)
        for line in project.starts_file.with_name("notes").read_text("utf-8").splitlines()
    ]
    assert all(note["same"] for note in notes)
    seen = [(note["hook"], note["process"]) for note in notes]
    # The second session runs no trial again; what the batch adds up to is written by both.
    assert seen.count(("trial_finished", runner)) == 2
    assert seen.count(("benchmark", "controller")) == seen.count(("audit", "controller")) == 2
    assert len(seen) == 6
    trials = {note["path"] for note in notes if note["hook"] == "trial_finished"}
    assert len(trials) == 2
