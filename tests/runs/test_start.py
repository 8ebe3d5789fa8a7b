"""A client's own offer, recorded from an empty home, and what a trial's client has beyond it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.protocol import Needs, Plays
from pytest_evalarc.isolation.command import Command
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.runs.start import NO_CREDENTIAL
from tests.evals import DONE, SOLUTION, Evals, Shell
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]

SOLVE = f"cat > app/__init__.py <<'END'\n{SOLUTION}END\n"


def listing(*skills: str) -> str:
    """Return the command that prints a start event, and whatever skill folders are there too."""
    own = ",".join(json.dumps(skill) for skill in skills)
    return f"""\
found=
for skill in .agents/skills/*/; do
    [ -d "$skill" ] && found="$found,\\"$(basename "$skill")\\""
done
printf '{{"type":"start","format":"evalarc.stream.v1","cwd":"/p","skills":[{own}%s]}}\\n' "$found"
"""


@dataclass(frozen=True, kw_only=True)
class Listing(Shell):
    """An agent that says at its start which skills it has, as its own start is watched for."""

    name: str = "listing"
    plays: Plays = Plays.NOTHING
    starts: tuple[Path, ...] = ()
    """Where the prompt and the environment of each launch are noted."""

    def start_watcher(self) -> Callable[[bytes], bool]:
        return lambda chunk: b"\n" in chunk

    def launch(  # type: ignore[override]
        self, brief: TaskBrief, layout: RunLayout, *, env: Mapping[str, str], **_: object
    ) -> Command:
        for file in self.starts:
            with file.open("a") as notes:
                notes.write(json.dumps([brief.name, brief.prompt, dict(env)]) + "\n")
        script = self.script if brief.name != "start" else f"{self.script}\nsleep 600"
        return Command(argv=("/bin/sh", "-c", script), cwd=layout.project, env=env)


def agent(says: str, **facts: Any) -> Listing:
    return Listing(script=f"{says}{SOLVE}{DONE}", **facts)


def test_what_a_client_has_of_its_own_voids_no_trial(make: Make) -> None:
    """Clients list skills of their maker's, in both arms alike."""
    evals = make(agent(listing("review", "verify")), batch_name="own")

    baseline = evals.run(evals.trial("without-skills"))
    treated = evals.run(evals.trial("with-skills"))

    assert baseline.outcome is Outcome.SUCCEEDED
    assert treated.isolation.findings == ()
    kept = json.loads((evals.folder / "start.json").read_bytes())
    assert kept["offered"] == {
        "skills": ["review", "verify"],
        "plugins": [],
        "agents": [],
        "mcp_servers": [],
    }


@pytest.mark.parametrize("configuration", ["without-skills", "with-skills"])
def test_what_a_client_lists_beyond_its_own_and_the_planned_voids_the_trial(
    make: Make, configuration: str
) -> None:
    """It came from the other arm or from the operator: either way nothing is compared with it."""
    # The operator's skill is where no start in an empty home finds it.
    leaks = 'case "$PWD" in *start-*) ;; *) mkdir -p .agents/skills/operators ;; esac\n'
    evals = make(agent(leaks + listing("review")), batch_name=f"beyond-{configuration}")

    result = evals.run(evals.trial(configuration))

    assert result.outcome is Outcome.EXCLUDED_ISOLATION
    assert result.cause is not None and result.cause.kind == "arm_mismatch"
    assert result.cause.detail == "the client offers unplanned skills: operators"


def test_the_start_is_recorded_once_without_a_key_and_without_the_task(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs no token, and what an empty home lists does not change within a batch."""
    monkeypatch.setenv("MY_KEY", "test-key-not-real")
    notes = tmp_path / "launches"
    client = agent(listing("review"), starts=(notes,), needs=Needs(key_env=("MY_KEY",)))
    evals = make(client, batch_name="once")

    for configuration in ("without-skills", "with-skills"):
        evals.run(evals.trial(configuration))

    launches = [json.loads(line) for line in notes.read_text().splitlines()]
    starts = [(prompt, env) for name, prompt, env in launches if name == "start"]
    assert len(launches) == 3 and len(starts) == 1
    assert starts[0][0] == "Say nothing."
    assert starts[0][1]["MY_KEY"] == NO_CREDENTIAL
    assert "test-key-not-real" not in json.dumps(starts)
    trials = [env for name, _, env in launches if name == "tiny"]
    assert [env["MY_KEY"] for env in trials] == ["test-key-not-real"] * 2


def test_a_client_that_lists_nothing_is_a_setup_failure(make: Make) -> None:
    """Without its own start nobody could say that a baseline is clean."""
    evals = make(agent("echo no licence >&2; exit 3\n"), batch_name="silent")

    result = evals.run(evals.trial())

    assert result.outcome is Outcome.SETUP_FAILURE
    assert result.cause is not None and result.cause.kind == "preparation"
    assert "client listing: did not list what it has" in result.cause.detail
    assert "it said: no licence" in result.cause.detail
