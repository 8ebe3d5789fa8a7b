"""What is run before a client is, and what its session may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.command import CommandClient
from pytest_evalarc.isolation.command import Command
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.task import Task
from pytest_evalarc.runs.prepare import SESSION_LIMITS, Trial
from pytest_evalarc.treatments.protocol import Staged
from pytest_evalarc.treatments.skills import Skills
from tests.evals import SOLUTION, Evals, shell
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]

SOLVE = f"cat > app/__init__.py <<'END'\n{SOLUTION}END\n"


@dataclass(frozen=True)
class Initialised(Skills):
    """A treatment with a program of its own, which is run before the session."""

    script: str = ":"
    version: str | None = "1"

    def fill(self, folder: Path) -> None:
        program = folder / "greet"
        program.write_text("#!/bin/sh\necho hello\n")
        program.chmod(0o755)

    def stage(
        self, task: Task, needs: Any, layout: RunLayout, *, env: Mapping[str, str], **facts: Any
    ) -> Staged:
        staged = super().stage(task, needs, layout, env=env, **facts)
        command = Command(argv=("/bin/sh", "-c", self.script), cwd=layout.project, env=env)
        tools = facts["tools"]
        return replace(staged, init=(command,), links={"greet": tools / "greet"}, reads=(tools,))


def treated(evals: Evals, script: str) -> Trial:
    """Return the treated trial of a batch whose treatment runs a script first."""
    return replace(evals.trial("with-skills"), treatment=Initialised(script=script))


def test_a_treatment_is_initialised_in_the_sandbox_before_the_client_starts(make: Make) -> None:
    """What it writes is there for the session, and its program is on the session's PATH alone."""
    script = 'greet > "$HOME/greeting"; cat /etc/shadow > "$HOME/shadow"; true'
    reads = 'cp "$HOME"/greeting app/; cp "$HOME"/shadow app/ ; greet > app/again; true\n'
    evals = make(shell(SOLVE + reads), batch_name="initialised")

    result = evals.run(treated(evals, script))

    left = evals.trial("with-skills").folder / "submission" / "app"
    assert result.outcome in (Outcome.SUCCEEDED, Outcome.FAILED), result.cause
    assert (left / "greeting").read_text() == "hello\n" == (left / "again").read_text()
    assert (left / "shadow").read_text() == ""


def test_a_baseline_cannot_reach_the_programs_of_a_treatment(make: Make) -> None:
    """It runs beside them: by no name and by no path are they there."""
    evals = make(shell(""), batch_name="reach")
    evals.run(treated(evals, ":"))
    program = evals.batch.folders.work / "tools" / "skills" / "greet"
    assert program.is_file()
    tries = f"greet > app/by-name; {program} > app/by-path; cat {program} > app/read\n"
    baseline = replace(
        evals.trial("without-skills"), client=shell(SOLVE + tries), treatment=Initialised()
    )

    result = evals.run(baseline)

    left = baseline.folder / "submission" / "app"
    assert result.outcome is Outcome.SUCCEEDED, result.cause
    assert {name: (left / name).read_bytes() for name in ("by-name", "by-path", "read")} == {
        "by-name": b"",
        "by-path": b"",
        "read": b"",
    }


def test_a_treatment_that_cannot_be_initialised_is_a_setup_failure(make: Make) -> None:
    """The client has not started, so nothing of it can be counted."""
    evals = make(shell(SOLVE), batch_name="refused")

    result = evals.run(treated(evals, "echo no such agent >&2; exit 3"))

    assert result.outcome is Outcome.SETUP_FAILURE
    assert result.cause is not None and result.cause.kind == "preparation"
    assert "ended with exited, status 3: no such agent" in result.cause.detail


def test_a_real_client_is_not_held_to_the_limits_of_what_is_graded(make: Make) -> None:
    """A task may allow its checks 16 MiB of scratch; an agent with a compiler needs more."""
    evals = make(shell(""))
    embedded = evals.trial()

    real = replace(embedded, client=CommandClient())

    assert embedded.limits == evals.task.limits
    assert real.limits == SESSION_LIMITS
    assert SESSION_LIMITS.tmp_mib > evals.task.limits.tmp_mib
