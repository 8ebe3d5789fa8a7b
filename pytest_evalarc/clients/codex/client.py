"""Codex as a client: a command line out, a transcript in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evalarc.clients.agent import Agent
from pytest_evalarc.clients.codex import program
from pytest_evalarc.clients.codex.events import is_end
from pytest_evalarc.clients.codex.options import KEY, exec_words
from pytest_evalarc.clients.codex.places import places
from pytest_evalarc.clients.codex.reader import Reader
from pytest_evalarc.clients.codex.session_file import session_usage
from pytest_evalarc.clients.codex.settings import CodexSettings
from pytest_evalarc.clients.codex.shell import SKILL_FOLDER
from pytest_evalarc.clients.lines import EventWatch, read_into
from pytest_evalarc.clients.protocol import Needs, Script
from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.command import Command, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Transcript


@dataclass(frozen=True, kw_only=True)
class CodexClient(Agent[CodexSettings]):
    """Codex, found as it is installed and run from a copy."""

    label: str = "codex"
    key_env: tuple[str, ...] = (KEY,)
    settings: CodexSettings = field(default_factory=CodexSettings)

    name = "codex"

    @property
    def needs(self) -> Needs:
        """What its table asks for, and what every Codex needs."""
        return Needs(
            domains=self.settings.hosts,
            key_env=self.key_env,
            env=self.settings.env,
            skill_folder=SKILL_FOLDER,
            agent="codex",
            places=places(),
        )

    def stage(self, folder: Path) -> None:
        """Copy the program into a folder, with what it needs beside it.

        Raises:
            SetupError: It is not there, or too old.
            SubmissionError: Something of it cannot be read.
            InfrastructureError: It cannot be copied.
        """
        program.stage(self.tool.path, folder)

    def watcher(self) -> EventWatch:
        """Return what looks for the end of a new session's turn."""
        return EventWatch(is_end)

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
        plugins: tuple[Path, ...] = (),  # noqa: ARG002
        confinement: Policy | None = None,
    ) -> Command:
        """Return its command line, with the prompt on its stdin.

        Raises:
            SetupError: The program was not staged, or no model is named.
        """
        if not model:
            hint = "add model to its table, or give --evalarc-model"
            raise SetupError(f"client {self.label}", "names no model", hint)
        return Command(
            argv=(
                str(program.staged_in(program_dir)),
                *exec_words(
                    model=model,
                    settings=self.settings,
                    key_env=self.key_env,
                    confined=None if confinement is None else layout,
                ),
            ),
            cwd=layout.project,
            env=env,
            stdin=brief.prompt.encode(),
            secrets=tuple(env[name] for name in self.key_env),
            deadline_s=brief.agent_deadline_s,
        )

    def read(self, stdout: Path, exit: Exit, layout: RunLayout) -> Transcript:
        """Return what the session's stream shows.

        Tokens of a session that ended before it told them come from the file that it kept in its
        home, as long as that is there.
        """
        reader = read_into(Reader(), stdout, true_bytes=exit.stdout_bytes)
        transcript = reader.transcript(layout)
        if transcript.usage is None and reader.thread is not None and not reader.has_agents:
            usage = session_usage(layout.home, reader.thread)
            return transcript.model_copy(update={"usage": usage})
        return transcript
