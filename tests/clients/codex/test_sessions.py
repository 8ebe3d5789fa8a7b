"""Sessions of the real program, as the client starts them, with a model that is scripted."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.codex.client import CodexClient
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Ended, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.task import Limits, TaskBrief
from pytest_evalarc.model.transcript import Load, Transcript, Usage
from pytest_evalarc.treatments.loads import Known, observe_load
from pytest_evalarc.treatments.snapshot import snapshot
from tests.model_server import (
    KEY,
    Error,
    Hang,
    ModelServer,
    Read,
    Run,
    Say,
    Script,
    Skill,
    Think,
    Write,
    turn,
)
from tests.needs import needs, needs_bwrap, needs_codex

pytestmark = [pytest.mark.slow, needs_codex]

MODEL = "gpt-5.5"
PROMPT = '--help: say "it\'s" $HOME, `id` and\n\\ é'
LONGEST_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that has ended."""

    exit: Exit
    transcript: Transcript
    stderr: str


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a staged program: all sessions run from one copy, as in a batch."""
    folder = tmp_path_factory.mktemp("program")
    CodexClient().stage(folder)
    return folder


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


class Trial:
    """The folders of a trial, and what starts sessions in them."""

    def __init__(self, root: Path, program: Path) -> None:
        self.layout = RunLayout(root=root / "run")
        self.program = program
        for folder in (*self.layout.writable, self.layout.bin):
            folder.mkdir(parents=True)

    def add_skill(self, name: str, folder: Path) -> None:
        file = folder / ".agents" / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nname: {name}\ndescription: How to {name}.\n---\n{name} all.\n")

    def command(
        self,
        prompt: str = PROMPT,
        model: str = MODEL,
        confinement: Policy | None = None,
        **facts: Any,
    ) -> tuple[CodexClient, Command]:
        made = CodexClient().configured(
            "mine", command=(), key_env=(), model=model, settings={"max_retries": 0, **facts}
        )
        env = {
            "HOME": str(self.layout.home),
            "PATH": f"{self.layout.bin}:/usr/bin:/bin",
            "TMPDIR": str(self.layout.tmp),
            "CODEX_API_KEY": KEY,
        }
        brief = TaskBrief(name="fix", prompt=prompt)
        return made, made.launch(
            brief,
            self.layout,
            python=Path("/usr/bin/python3"),
            program_dir=self.program,
            env=env,
            model=model,
            settings={},
            script=None,
            confinement=confinement,
        )

    def run(self, *, until: Callable[[], bool] | None = None, **facts: Any) -> Session:
        """Run a session without any sandbox around it; end it when something has happened."""
        made, command = self.command(**facts)
        path = self.layout.root / "stream"
        complaints, cancelled = Capture(1 << 20), threading.Event()
        if until is not None:
            threading.Thread(target=_set_when, args=(cancelled, until), daemon=True).start()
        with path.open("wb", buffering=0) as file:
            exit = supervise(
                Local().wrap(command, Policy(limits=Limits(memory_mib=8192, processes=1024))),
                Watch(
                    total_s=LONGEST_S,
                    polite=True,
                    is_finished=made.watcher(),
                    cancelled=cancelled,
                ),
                stdout=Capture(1 << 24, file=file),
                stderr=complaints,
            )
        return Session(
            exit=exit,
            transcript=made.read(path, exit, self.layout),
            stderr=complaints.data().decode(errors="replace"),
        )


def _set_when(event: threading.Event, happened: Callable[[], bool]) -> None:
    last = time.monotonic() + LONGEST_S
    while not happened() and time.monotonic() < last:
        time.sleep(0.05)
    event.set()


@pytest.fixture
def trial(tmp_path: Path, program: Path) -> Trial:
    return Trial(tmp_path, program)


TIDY = Known.at("tidy", ".agents/skills/tidy")


def test_a_session_is_told_and_understood_as_it_was(trial: Trial, server: ModelServer) -> None:
    """Prompt in, edits, skills, words and tokens out: each is what the scripted model did."""
    script = Script(
        (
            turn(Think("Let me see."), Skill("tidy")),
            turn(Write("notes.txt", "tidy\n")),
            turn(Read("missing.txt")),
            turn(Run("echo $PATH; echo key=$CODEX_API_KEY; rg --version")),
            turn(Say("Done.")),
        )
    )
    server.add("fix", script)
    trial.add_skill("tidy", trial.layout.project)
    watched = CodexClient().needs.places.watched
    before = snapshot(trial.layout, watched)

    ended = trial.run(base_url=server.url("fix", "codex"))

    found = ended.transcript
    assert ended.exit.reason in (Ended.EXITED, Ended.FINISHED), ended.stderr
    assert found.completion is not None and not found.completion.is_error, ended.stderr
    assert (found.interpreted, found.fault, found.response) == (True, None, "Done.")
    assert [(it.kind, it.target, it.is_error) for it in found.tool_calls[:3]] == [
        ("read", ".agents/skills/tidy/SKILL.md", False),
        ("edit", "notes.txt", False),
        ("read", "missing.txt", True),
    ]
    assert observe_load(found, TIDY).load is Load.LOADED
    assert (trial.layout.project / "notes.txt").read_text() == "tidy\n"
    turns = server.turns("fix")
    assert found.usage == Usage(
        input_tokens=1000 * len(turns),
        output_tokens=50 * len(turns),
        cache_read_tokens=300 * len(turns),
        cache_write_tokens=200 * len(turns),
    )
    first = turns[0]
    assert first.conversation is not None
    assert PROMPT in first.conversation.opening
    # The commands of the agent find the trial's programs first, and never the key.
    path, key, searches = (found.tool_calls[3].result or "").splitlines()[:3]
    assert f"{trial.layout.bin}:/usr/bin:/bin" in path
    assert "/usr/local" not in path and "sbin" not in path
    assert (key, searches.split()[0]) == ("key=", "ripgrep")
    # Nobody can help it unseen, and nothing is fetched by the model's host.
    assert not {"spawn_agent", "web_search"} & first.conversation.tools
    assert all(seen.is_turn for seen in server.requests)
    # What is watched is not written by a session itself.
    assert snapshot(trial.layout, watched) == before


def test_a_long_prompt_arrives_whole(trial: Trial, server: ModelServer) -> None:
    """No argument could hold it."""
    server.add("fix", Script((turn(Say("Done.")),)))
    prompt = "line of a long prompt\n" * 10_000 + "end"

    ended = trial.run(base_url=server.url("fix", "codex"), prompt=prompt)

    (first,) = server.turns("fix")
    assert first.conversation is not None and prompt in first.conversation.opening
    assert ended.transcript.completion is not None


@needs("git")
def test_a_repository_around_the_trial_stays_outside(trial: Trial, server: ModelServer) -> None:
    """Its instructions and skills would reach every trial that runs below it."""
    server.add("fix", Script((turn(Say("Done.")),)))
    outer = trial.layout.root.parent
    subprocess.run(["git", "init", "--quiet", outer], check=True)
    (outer / "AGENTS.md").write_text("Instructions from outside.")
    trial.add_skill("outer", outer)
    trial.add_skill("tidy", trial.layout.project)
    (trial.layout.project / "AGENTS.md").write_text("Instructions from inside.")

    trial.run(base_url=server.url("fix", "codex"))

    (first,) = server.turns("fix")
    assert first.conversation is not None
    assert "tidy" in first.conversation.skills and "outer" not in first.conversation.skills
    assert "Instructions from inside." in first.conversation.opening
    assert "Instructions from outside." not in first.conversation.opening


def test_a_session_that_is_ended_leaves_its_tokens_behind(
    trial: Trial, server: ModelServer
) -> None:
    """It has cost something, and what it did until then is known."""
    server.add("fix", Script((turn(Write("notes.txt", "tidy\n")), turn(Hang()))))

    def waits() -> bool:
        """Whether it waits for the second turn, and has kept the tokens of the first."""
        kept = trial.layout.home.glob(".codex/sessions/*/*/*/*.jsonl")
        return len(server.turns("fix")) > 1 and any("token_count" in it.read_text() for it in kept)

    ended = trial.run(base_url=server.url("fix", "codex"), until=waits)

    found = ended.transcript
    assert ended.exit.reason is Ended.CANCELLED
    assert (found.completion, found.interpreted) == (None, False)
    assert [(call.kind, call.target) for call in found.tool_calls] == [("edit", "notes.txt")]
    assert observe_load(found, TIDY).load is Load.UNKNOWN
    assert found.usage == Usage(
        input_tokens=1000, output_tokens=50, cache_read_tokens=300, cache_write_tokens=200
    )


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "api_refused"), (401, "api_refused"), (529, "api_unavailable")]
)
def test_a_refused_request_is_told_from_a_server_without_capacity(
    trial: Trial, server: ModelServer, status: int, kind: str
) -> None:
    """The one is for whoever set it up, and the other passes."""
    server.add("fix", Script((turn(Error(status)),)))

    found = trial.run(base_url=server.url("fix", "codex")).transcript

    assert found.completion is not None and found.completion.is_error
    assert found.fault is not None and found.fault.kind == kind


def test_a_model_that_is_out_of_reach_ends_the_session(trial: Trial) -> None:
    """It would wait for the network until its deadline otherwise."""
    ended = trial.run(base_url="http://127.0.0.1:9/v1")

    assert ended.exit.reason in (Ended.EXITED, Ended.FINISHED)
    assert ended.transcript.fault is not None
    assert ended.transcript.fault.kind == "api_unavailable"


@needs_bwrap
def test_its_own_sandbox_keeps_the_agent_in_the_trial(trial: Trial, server: ModelServer) -> None:
    """Without one of ours it is all there is."""
    outside = trial.layout.root / "outside"
    folders = (*trial.layout.writable, outside)
    outside.mkdir()
    tries = "; ".join(f"touch {folder}/probe && echo yes || echo no" for folder in folders)
    server.add("fix", Script((turn(Run(tries)), turn(Say("Done.")))))

    found = trial.run(base_url=server.url("fix", "codex"), confinement=Policy()).transcript

    (call,) = found.tool_calls
    said = [line for line in (call.result or "").splitlines() if line in ("yes", "no")]
    assert said == ["yes"] * len(trial.layout.writable) + ["no"], call.result
