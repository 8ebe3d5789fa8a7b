"""Claude Code as a client: a command line out, a transcript in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pytest_evalarc.clients.claude.confinement import confined_env, confined_settings
from pytest_evalarc.clients.claude.places import places
from pytest_evalarc.clients.claude.reader import read_stream
from pytest_evalarc.clients.claude.session_file import session_usage
from pytest_evalarc.clients.claude.settings import ClaudeSettings
from pytest_evalarc.clients.claude.turns import EndWatch, is_start
from pytest_evalarc.clients.lines import EventWatch
from pytest_evalarc.clients.program import find_program, program_digest
from pytest_evalarc.clients.protocol import ClientBase, Needs, Script
from pytest_evalarc.clients.settings import read_settings, require_variables
from pytest_evalarc.errors import SetupError, UsageError
from pytest_evalarc.files.manifest import Entry, EntryType, Manifest
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.isolation import toolset
from pytest_evalarc.isolation.command import Command, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.toolset import Tool
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
class ClaudeClient(ClientBase):
    """Claude Code, found as it is installed and run from a copy."""

    label: str = "claude"
    command: Path | None = None
    """The program to use; None is the one that is installed."""
    key_env: tuple[str, ...] = (KEY,)
    settings: ClaudeSettings = field(default_factory=ClaudeSettings)

    name = "claude"
    embedded = False

    def configured(  # type: ignore[override]
        self,
        label: str,
        *,
        command: tuple[str, ...],
        key_env: tuple[str, ...],
        model: str | None,
        settings: JsonObject,
    ) -> Self:
        """Return the client of one table of the project's.

        Raises:
            UsageError: A setting is wrong, the command is more than a program, or no model is
                named: which one an account prefers is no part of an evaluation.
        """
        where = f"client {label}"
        if not model:
            hint = "add model to its table, or give --evalarc-model"
            raise UsageError(where, "names no model", hint)
        if len(command) > 1:
            hint = 'leave one word, or describe it with client = "command"'
            raise UsageError(f"{where}: command", "is more than a program", hint)
        client = type(self)(
            label=label,
            command=_program(command[0], where=where) if command else None,
            key_env=require_variables(key_env, where=where) or (KEY,),
            settings=read_settings(ClaudeSettings, settings, where=where),
        )
        client._refuse_clashes()
        return client

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

    @property
    def tool(self) -> Tool:
        """The program that sessions run a copy of.

        Raises:
            SetupError: It is not there, too old, or no program of its own.
        """
        if self.command is None:
            return toolset.require("claude")
        where = f"client {self.label}: command {self.command}"
        found = toolset.at("claude", find_program(str(self.command)))
        if found is None:
            hint = "name the program itself, or that of an npm package with its binary installed"
            raise SetupError(where, "is a script, or tells no version", hint)
        if found.is_too_old:
            least = toolset.MINIMUM["claude"]
            raise SetupError(where, f"is {found.version}, older than {least}", "update it")
        return found

    @property
    def version(self) -> str | None:
        """The program's version; None when there is none."""
        try:
            return self.tool.version
        except (SetupError, OSError):
            return None

    def missing(self) -> str | None:
        """Return that the program is not there, or too old."""
        try:
            self.tool  # noqa: B018 - asking is what finds it.
        except SetupError as error:
            return str(error)
        return None

    def sha256(self) -> str | None:
        """Return the digest of the program; None where it cannot be read."""
        try:
            return program_digest(self.tool.path)
        except (SetupError, OSError):
            return None

    def stage(self, folder: Path) -> None:
        """Copy the program into a folder: it is one file, which needs nothing beside it.

        Raises:
            SetupError: It is not there, or too old.
            InfrastructureError: It cannot be copied.
        """
        program = self.tool.path
        size = program.stat().st_size
        entry = Entry(path=program.name, type=EntryType.FILE, mode=0o755, size=size)
        copy_tree(program.parent, Manifest((entry,)), folder)

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
        reader = read_stream(stdout, true_bytes=exit.stdout_bytes)
        transcript = reader.transcript()
        if transcript.usage is None and reader.start is not None:
            usage = session_usage(layout.home, reader.start)
            return transcript.model_copy(update={"usage": usage})
        return transcript


def _program(word: str, *, where: str) -> Path:
    if not Path(word).is_absolute() or "\0" in word:
        hint = "write the absolute path of a claude, or leave it out to use the installed one"
        raise UsageError(f"{where}: command", "is no absolute path", hint)
    return Path(word)


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
