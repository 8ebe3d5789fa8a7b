"""Sessions of the installed client, started as `launch` says, with a model that is scripted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.claude.client import ClaudeClient
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Ended, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.isolation.toolset import require
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.treatments.snapshot import snapshot
from tests.model_server import (
    KEY,
    Error,
    ModelServer,
    Read,
    Run,
    Say,
    Script,
    Skill,
    Write,
    slow,
    turn,
)
from tests.needs import needs_claude

pytestmark = [pytest.mark.slow, needs_claude]

MODEL = "claude-sonnet-4-5"
LONGEST_S = 120.0
SKILL = "---\nname: greet\ndescription: How to greet.\n---\n# Greet\nAlways SHOUT.\n"
SKILL_FILE = ".claude/skills/greet/SKILL.md"
DONE = turn(Say("Done."))


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that has ended."""

    exit: Exit
    transcript: Transcript
    stderr: str
    server: ModelServer

    @property
    def told(self) -> str:
        """All that the model was told last."""
        return str(self.server.turns("script")[-1].body["messages"])


class Trials:
    """Runs sessions, without a sandbox and with nothing in their environment but what is given."""

    def __init__(self, root: Path, server: ModelServer) -> None:
        self.layout = RunLayout(root=root / "run")
        self.server = server
        self.program_dir = root / "program"
        for folder in (*self.layout.writable, self.layout.fixtures, self.program_dir):
            folder.mkdir(parents=True)
        # The program alone is what `stage` copies; hundreds of megabytes are not copied here.
        (self.program_dir / "claude").symlink_to(require("claude").path)

    def add(self, path: str, content: str) -> None:
        """Put a file into the run folder."""
        file = self.layout.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def run(
        self,
        script: Script,
        prompt: str = "Please do the task.",
        *,
        settings: dict[str, Any] | None = None,
        ends_after_s: float | None = None,
        total_s: float = LONGEST_S,
        until_start: bool = False,
        **facts: Any,
    ) -> Session:
        """Run one session.

        Args:
            script: What the model says.
            prompt: The task's prompt.
            settings: What the client's table says.
            ends_after_s: When it is asked to end, by the signal that its command names.
            total_s: When it is ended.
            until_start: Whether it is ended as soon as it has listed what it has.
            facts: Further arguments of `launch`.
        """
        self.server.add("script", script)
        given = {"base_url": self.server.url("script"), "max_retries": 1, **(settings or {})}
        client = ClaudeClient().configured(
            "mine", command=(), key_env=(), model=MODEL, settings=given
        )
        command = client.launch(
            TaskBrief(name="task", prompt=prompt),
            self.layout,
            python=Path("/python"),
            program_dir=self.program_dir,
            env=self._env,
            model=MODEL,
            settings={},
            script=None,
            **facts,
        )
        argv = command.argv
        if ends_after_s is not None:
            argv = ("timeout", "-s", command.stop_signal, "-k", "20", str(ends_after_s), *argv)
        stream, complaints = self.layout.root / "stream", Capture(1 << 16)
        with stream.open("wb", buffering=0) as file:
            watcher = client.start_watcher() if until_start else client.watcher()
            watch = Watch(total_s=total_s, polite=True, is_finished=watcher)
            wrapped = Local().wrap(command, Policy())
            wrapped = type(wrapped)(
                argv=argv, cwd=wrapped.cwd, env=wrapped.env, stdin=command.stdin
            )
            exit = supervise(wrapped, watch, stdout=Capture(1 << 24, file=file), stderr=complaints)
        return Session(
            exit=exit,
            transcript=client.read(stream, exit, self.layout),
            stderr=complaints.data().decode(errors="replace"),
            server=self.server,
        )

    @property
    def _env(self) -> dict[str, str]:
        own = {"HOME": str(self.layout.home), "TMPDIR": str(self.layout.tmp)}
        return {**own, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": KEY}


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    with ModelServer() as server:
        yield Trials(tmp_path, server)


def calls(session: Session) -> list[tuple[str, str, bool | None]]:
    return [(call.kind, call.target, call.is_error) for call in session.transcript.tool_calls]


def completed(session: Session) -> bool:
    end = session.transcript.completion
    return end is not None and not end.is_error and session.transcript.interpreted


def test_a_session_works_in_the_project_and_tells_of_it(trials: Trials) -> None:
    """The command line, the reader and the program fit each other."""
    trials.add(f"project/{SKILL_FILE}", SKILL)
    trials.add("fixtures/lib/notes.txt", "notes\n")

    session = trials.run(
        Script(
            turns=(
                turn(Skill("greet")),
                turn(Write("greet.txt", "HELLO\n")),
                turn(Read(SKILL_FILE)),
                turn(Run(f"cat {SKILL_FILE}")),
                turn(Run("cat ../fixtures/lib/notes.txt && exit 3")),
                DONE,
            )
        )
    )

    assert completed(session), session.stderr
    assert (session.exit.reason, session.exit.status) == (Ended.EXITED, 0)
    assert calls(session) == [
        ("skill", "greet", False),
        ("edit", "greet.txt", False),
        ("read", SKILL_FILE, False),
        ("read", SKILL_FILE, False),
        ("command", "cat ../fixtures/lib/notes.txt && exit 3", True),
    ]
    assert (trials.layout.project / "greet.txt").read_text() == "HELLO\n"
    found = session.transcript
    assert found.response == "Done."
    assert found.models == (MODEL,)
    assert found.client_version == require("claude").version
    assert found.steps[0].text == "Please do the task."
    assert found.offered is not None and "greet" in found.offered.skills
    assert found.usage is not None and found.usage.total and found.usage.cost_usd
    assert {request.has_key for request in session.server.requests} == {True}


@pytest.mark.parametrize(
    "prompt",
    [
        "-h --version",
        'say "it\'s" $HOME `id`\n\\ é\u2028\t*\n',
        "/etc/hosts is wrong, mend it",
        "!ls\n# not a note",
        "many words " * 20_000,
    ],
    ids=["option", "quotes", "path", "signs", "long"],
)
def test_a_prompt_arrives_as_it_was_written(prompt: str, trials: Trials) -> None:
    """A prompt that is cut, expanded or taken for an option is another task."""
    session = trials.run(Script(turns=(DONE,)), prompt)

    messages = session.server.turns("script")[0].body["messages"]
    texts = [part["text"] for part in messages[-1]["content"] if part["type"] == "text"]
    assert prompt in texts
    assert session.transcript.steps[0].text == prompt
    assert completed(session)


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        ("/greet now", ("skill", "greet", False)),
        (f"Look at @{SKILL_FILE}.", ("read", SKILL_FILE, None)),
    ],
    ids=["slash", "mention"],
)
def test_what_a_prompt_itself_loads_is_seen(
    prompt: str, call: tuple[str, str, bool | None], trials: Trials
) -> None:
    """Otherwise a skill that was used would be told as never observed."""
    trials.add(f"project/{SKILL_FILE}", SKILL)

    session = trials.run(Script(turns=(DONE,)), prompt)

    assert "Always SHOUT." in session.told
    assert calls(session) == [call]


def test_hooks_plugins_and_what_they_bring_are_told(trials: Trials, tmp_path: Path) -> None:
    """What was planned is compared with what the client says it has."""
    files = {
        ".claude-plugin/plugin.json": '{"name": "house", "version": "0.1.0"}',
        "skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies.\n---\nTidy up.\n",
        "hooks/hooks.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command",'
        ' "command": "exit 0"}]}]}}',
    }
    for name, content in files.items():
        trials.add(f"house/{name}", content)

    bare = trials.run(Script(turns=(DONE,)), until_start=True)
    script = Script(turns=(turn(Skill("house:tidy", anyway=True)), DONE))
    session = trials.run(script, plugins=(trials.layout.root / "house",))

    assert completed(session), session.stderr
    assert calls(session) == [("skill", "house:tidy", False)]
    assert [(run.event, run.succeeded) for run in session.transcript.hooks or ()] == [
        ("Stop", True)
    ]
    own = bare.transcript.offered
    assert own is not None and session.transcript.offered is not None
    assert session.transcript.offered.beyond(own) == Offered(
        skills=("house:tidy",), plugins=("house",)
    )


def test_a_session_is_ended_once_it_has_listed_what_it_has(trials: Trials) -> None:
    """It is started without a key and a network for that alone, and must cost nothing."""
    session = trials.run(Script(turns=(turn(slow(600)), DONE)), until_start=True)

    assert session.exit.reason is Ended.FINISHED
    assert session.transcript.offered is not None


def test_a_session_that_is_asked_to_end_tells_what_it_used(trials: Trials) -> None:
    """The signal of the command is the one at which it does."""
    script = Script(turns=(turn(Write("a.txt", "a\n")), turn(slow(600)), DONE))

    session = trials.run(script, ends_after_s=8)

    found = session.transcript
    assert found.completion is not None and found.completion.is_error
    assert found.fault is not None and found.fault.kind == CauseKind.CLIENT_ERROR
    assert found.usage is not None and found.usage.cost_usd
    assert [call[:2] for call in calls(session)][:1] == [("edit", "a.txt")]


def test_a_session_that_is_killed_left_its_tokens_in_its_home(trials: Trials) -> None:
    """They were paid, whether it could tell or not."""
    script = Script(turns=(turn(Write("a.txt", "a\n")), turn(slow(600)), DONE))

    session = trials.run(script, total_s=8)

    found = session.transcript
    assert session.exit.reason is Ended.DEADLINE
    assert (found.completion, found.interpreted) == (None, False)
    assert found.usage is not None and found.usage.total and found.usage.cost_usd is None


def test_an_api_that_has_no_capacity_is_told_from_one_that_refuses(trials: Trials) -> None:
    """Neither is the agent's fault, and only one of them may be over tomorrow."""
    overloaded = trials.run(Script(turns=(turn(Error(529)),)))
    refused = trials.run(Script(turns=(turn(Error(400)),)))

    for session, kind in (
        (overloaded, CauseKind.API_UNAVAILABLE),
        (refused, CauseKind.API_REFUSED),
    ):
        assert session.transcript.completion is not None
        assert session.transcript.completion.is_error
        assert session.transcript.fault is not None
        assert session.transcript.fault.kind == kind


def test_an_ordinary_session_changes_nothing_that_is_watched(trials: Trials) -> None:
    """A change makes expectations inconclusive, so the client must not make one itself."""
    hook = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
    trials.add("home/.claude/settings.json", hook)
    trials.add("home/.claude.json", '{"mcpServers": {"x": {"command": "false"}}}')
    trials.add("project/.mcp.json", '{"mcpServers": {"y": {"command": "false"}}}')
    watched = ClaudeClient().needs.places.watched
    before = snapshot(trials.layout, watched)

    session = trials.run(Script(turns=(turn(Write("a.txt", "a\n")), DONE)))

    assert completed(session), session.stderr
    assert snapshot(trials.layout, watched) == before
    assert set(before.values()) > {"absent"}


def test_without_a_sandbox_of_ours_its_own_confines_it(trials: Trials, tmp_path: Path) -> None:
    """It may work in the project, and neither read nor write beside the trial."""
    secret = tmp_path / "secret.txt"
    secret.write_text("secret\n")
    policy = Policy(read=(trials.layout.root,), write=trials.layout.writable)

    session = trials.run(
        Script(
            turns=(
                turn(Write("a.txt", "a\n")),
                turn(Run("cat a.txt && echo b > b.txt && touch $TMPDIR/in-tmp")),
                turn(Run(f"cat {secret}")),
                turn(Read(str(secret))),
                turn(Read("/etc/passwd")),
                turn(Write(str(tmp_path / "c.txt"), "c\n")),
                turn(Run(f"echo d > {tmp_path}/d.txt && cat {tmp_path}/d.txt")),
                DONE,
            )
        ),
        confinement=policy,
    )

    assert completed(session), session.stderr
    failed = [call.is_error for call in session.transcript.tool_calls]
    told = [call.result for call in session.transcript.tool_calls]
    assert failed[:6] == [False, False, True, True, True, True], told[1]
    assert (trials.layout.project / "b.txt").read_text() == "b\n"
    # What lies around the trial is an empty folder to a command, and what it writes there is lost.
    assert not (tmp_path / "c.txt").exists() and not (tmp_path / "d.txt").exists()
    assert "secret\n" not in session.told
