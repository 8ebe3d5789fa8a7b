"""Claude Code as a client: a command line out, a transcript in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.clients.agent import Agent
from pytest_evalarc.clients.claude.confinement import confined_env, confined_settings
from pytest_evalarc.clients.claude.places import places
from pytest_evalarc.clients.claude.reader import Reader
from pytest_evalarc.clients.claude.session_file import session_usage
from pytest_evalarc.clients.claude.settings import ClaudeSettings
from pytest_evalarc.clients.claude.turns import EndWatch, is_start
from pytest_evalarc.clients.lines import EventWatch, read_into
from pytest_evalarc.clients.program import copy_program
from pytest_evalarc.clients.protocol import Needs, Script
from pytest_evalarc.errors import SetupError, UsageError
from pytest_evalarc.isolation.command import Command, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Transcript

KEY = "ANTHROPIC_API_KEY"

ALWAYS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_FORWARD_SUBAGENT_TEXT": "1",
    "DISABLE_AUTOUPDATER": "1",
}
"""Variables of every session: nothing but the model is called, what sub-agents of sub-agents do
is seen, and the program stays the one that was staged."""

NEVER = ("WebSearch",)
"""Tools that no session has: what the model's host looks up passes no boundary of the trial, and
could be the solution."""

UNCONFINED = {"IS_SANDBOX": "1"}
"""Variables of a session in a sandbox of ours, without which root may not work unasked."""

_STREAM = (
    *("-p", "--verbose", "--include-hook-events", "--replay-user-messages"),
    *("--input-format", "stream-json", "--output-format", "stream-json"),
)
"""The prompt comes in as JSON and is said again: so it needs no bound and no quotes, and what the
client makes of it, as of the name of a skill behind a slash, is seen."""


@dataclass(frozen=True, kw_only=True)
class ClaudeClient(Agent[ClaudeSettings]):
    """Claude Code, found as it is installed and run from a copy."""

    label: str = "claude"
    key_env: tuple[str, ...] = (KEY,)
    settings: ClaudeSettings = field(default_factory=ClaudeSettings)

    name = "claude"

    def _refuse_clashes(self) -> None:
        """Refuse a variable that would be overruled, so that nobody waits for its effect."""
        ours = {**ALWAYS, **UNCONFINED, **self._own}
        for name in (*self.settings.env, *self.key_env):
            if name in ours:
                problem = f"names {name}, which is {ours[name]!r} in every session"
                raise UsageError(f"client {self.label}: env", problem, "take it out")

    @property
    def needs(self) -> Needs:
        """What its table asks for, and what every Claude Code needs."""
        return Needs(
            domains=self.settings.hosts,
            key_env=self.key_env,
            env=self.settings.env,
            skill_folder=".claude/skills",
            reports_cost=True,
            agent="claude",
            takes_plugins=True,
            places=places(),
        )

    def stage(self, folder: Path) -> None:
        """Copy the program into a folder: it is one file, which needs nothing beside it.

        Raises:
            SetupError: It is not there, or too old.
            SubmissionError: It cannot be read.
            InfrastructureError: It cannot be copied.
        """
        copy_program(self.tool.path, folder)

    def watcher(self) -> EventWatch:
        """Return what looks for the last result of a new session."""
        return EventWatch(EndWatch())

    def start_watcher(self) -> EventWatch:
        """Return what looks for the list of what a new session has."""
        return EventWatch(is_start)

    def launch(
        self,
        brief: TaskBrief,
        layout: RunLayout,
        *,
        python: Path,  # noqa: ARG002
        program_dir: Path,
        env: Mapping[str, str],
        model: str | None,
        settings: JsonObject,  # noqa: ARG002 - they are known since it was configured.
        script: Script | None,  # noqa: ARG002
        plugins: tuple[Path, ...] = (),
        confinement: Policy | None = None,
    ) -> Command:
        """Return its command line, with the prompt on its stdin.

        Raises:
            SetupError: The program was not staged.
        """
        surroundings = UNCONFINED if confinement is None else confined_env(layout)
        return Command(
            argv=(
                str(_staged_in(program_dir)),
                *_STREAM,
                *(("--model", model) if model else ()),
                f"--disallowed-tools={','.join(NEVER)}",
                *self._options,
                *(word for folder in plugins for word in ("--plugin-dir", str(folder))),
                *_permissions(confinement, layout),
            ),
            cwd=layout.project,
            env={**env, **ALWAYS, **surroundings, **self._own},
            stdin=_message(brief.prompt),
            secrets=tuple(env[name] for name in self.key_env),
            deadline_s=brief.agent_deadline_s,
            # At this one it still says what it has used.
            stop_signal="INT",
        )

    @property
    def _own(self) -> dict[str, str]:
        """Variables that its settings ask for."""
        asked = {
            "ANTHROPIC_BASE_URL": self.settings.base_url,
            "CLAUDE_CODE_MAX_RETRIES": self.settings.max_retries,
        }
        return {name: str(value) for name, value in asked.items() if value is not None}

    @property
    def _options(self) -> tuple[str, ...]:
        asked = {"--effort": self.settings.effort, "--max-turns": self.settings.max_turns}
        given = ((name, str(value)) for name, value in asked.items() if value is not None)
        return tuple(word for pair in given for word in pair)

    def read(self, stdout: Path, exit: Exit, layout: RunLayout) -> Transcript:
        """Return what the session's stream shows.

        Tokens of a session that was ended before it told them come from the file that it kept in
        its home, as long as that is there.
        """
        reader = read_into(Reader(), stdout, true_bytes=exit.stdout_bytes)
        transcript = reader.transcript()
        if transcript.usage is None and reader.start is not None:
            usage = session_usage(layout.home, reader.start)
            return transcript.model_copy(update={"usage": usage})
        return transcript


def _staged_in(folder: Path) -> Path:
    """Return the one program that was staged.

    Raises:
        SetupError: There is none.
    """
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    if len(found) != 1:
        hint = "start a new batch, which stages it anew"
        raise SetupError(str(folder), "does not hold the program of claude alone", hint)
    return found[0]


def _message(prompt: str) -> bytes:
    """Return the prompt as the one message of a conversation."""
    message = {"type": "user", "message": {"role": "user", "content": prompt}}
    return json.dumps(message).encode("ascii") + b"\n"


def _permissions(confinement: Policy | None, layout: RunLayout) -> tuple[str, ...]:
    """Return the options that say what it may do unasked: all in our sandbox, little in its own."""
    if confinement is None:
        return ("--permission-mode", "bypassPermissions")
    settings = json.dumps(confined_settings(confinement, layout), sort_keys=True)
    return ("--permission-mode", "acceptEdits", "--settings", settings)
