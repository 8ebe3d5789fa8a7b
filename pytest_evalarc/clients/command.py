"""Any agent CLI, described by a table of the project: a command out, an exit status back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from pytest_evalarc.clients.program import find_program, program_digest
from pytest_evalarc.clients.protocol import ClientBase, Needs, Script
from pytest_evalarc.clients.template import filled, places_in
from pytest_evalarc.errors import SetupError, UsageError, nearest
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.command import Command, Ended, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import JsonObject, Model
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Completion, Transcript

ARGUMENT_BYTES = 128 * 1024
"""Linux takes only arguments that are shorter than this."""
RESPONSE_BYTES = 64 * 1024
"""How much of the end of its output is taken for the client's last words."""


def _absolute(path: str) -> str:
    if not Path(path).is_absolute() or os.path.realpath(path) == "/":
        raise ValueError("write absolute paths of folders, and not the root")
    return path


def _below_the_project(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or path.startswith("/") or "\0" in path:
        raise ValueError("write a path below the project, as .claude/skills")
    return str(PurePosixPath(path))


Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class CommandSettings(Model):
    """The settings of a client that is a command."""

    prompt: Literal["argument", "stdin"] = "argument"
    """How the prompt reaches it."""
    env: tuple[Variable, ...] = ()
    """Further variables of the harness's environment that it gets, by name."""
    reads: tuple[Annotated[str, AfterValidator(_absolute)], ...] = ()
    """Folders of the host that it must see."""
    domains: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Hosts that it must reach."""
    skill_folder: Annotated[str, AfterValidator(_below_the_project)] = Needs().skill_folder
    """Where it looks for skills, below the project."""


@dataclass(frozen=True, kw_only=True)
class CommandClient(ClientBase):
    """A program that works in the project and tells by its exit status whether it came to an end.

    Nothing of what it prints is interpreted, so no load of a skill is ever observed.
    """

    label: str = "command"
    command: tuple[str, ...] = ()
    """The program, then the words of its command line as templates; empty before it is known."""
    key_env: tuple[str, ...] = ()
    settings: CommandSettings = field(default_factory=CommandSettings)

    name = "command"
    version = None
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
            UsageError: The command is not there, or does not fit its settings or the model.
        """
        where = f"client {label}"
        client = type(self)(
            label=label,
            command=_words(command, where=where),
            key_env=tuple(_variable(name, where=where) for name in key_env),
            settings=_settings(settings, where=where),
        )
        client._check_places(model)
        return client

    def _check_places(self, model: str | None) -> None:
        """Refuse a command that would not be told the prompt, or the model that results name."""
        where = f"client {self.label}: command"
        named = [places_in(word, where=where) for word in self.command[1:]]
        places = frozenset[str]().union(*named)
        by_stdin = self.settings.prompt == "stdin"
        if by_stdin and "prompt" in places:
            hint = 'take it out, or write prompt = "argument"'
            raise UsageError(where, "names {prompt}, which comes by standard input", hint)
        if not by_stdin and "prompt" not in places:
            hint = 'add "{prompt}" to the command, or prompt = "stdin" to the settings'
            raise UsageError(where, "never names {prompt}", hint)
        if "model" in places and model is None:
            hint = "add model to its table, or give --evalarc-model"
            raise UsageError(where, "names {model}, and no model is given", hint)
        if "model" not in places and model is not None:
            hint = 'add "{model}" to the command where the program takes it'
            raise UsageError(where, f"never names {{model}}, so {model!r} would not reach it", hint)

    @property
    def needs(self) -> Needs:
        """What its table asks for."""
        return Needs(
            domains=self.settings.domains,
            key_env=self.key_env,
            env=self.settings.env,
            reads=tuple(Path(path) for path in self.settings.reads),
            skill_folder=self.settings.skill_folder,
        )

    @cached_property
    def program(self) -> Path:
        """Where its program is on this host.

        Raises:
            SetupError: It is not there.
        """
        return find_program(self.command[0])

    def missing(self) -> str | None:
        """Return that its program, or a folder that it must see, is not there."""
        try:
            self.program  # noqa: B018 - asking is what finds it.
        except SetupError as error:
            return str(error)
        absent = next((path for path in self.needs.reads if not path.exists()), None)
        return None if absent is None else f"setting reads: {absent} is not there"

    def sha256(self) -> str | None:
        """Return the digest of its program's file; None where it cannot be read."""
        try:
            return program_digest(self.program) if self.command else None
        except (SetupError, OSError):
            return None

    def launch(
        self,
        brief: TaskBrief,
        layout: RunLayout,
        *,
        python: Path,  # noqa: ARG002
        program_dir: Path,  # noqa: ARG002
        env: Mapping[str, str],
        model: str | None,
        settings: JsonObject,  # noqa: ARG002 - they are known since it was configured.
        script: Script | None,  # noqa: ARG002
        plugins: tuple[Path, ...] = (),  # noqa: ARG002
        confinement: Policy | None = None,  # noqa: ARG002
    ) -> Command:
        """Return its command line, filled in.

        Raises:
            SetupError: There is no such program, or no argument can hold the prompt.
        """
        by_stdin = self.settings.prompt == "stdin"
        values = {
            "prompt": brief.prompt,
            "model": model or "",
            "project": str(layout.project),
        }
        words = [filled(word, values) for word in self.command[1:]]
        self._require_arguments(words)
        return Command(
            argv=(str(self.program), *words),
            cwd=layout.project,
            env=env,
            stdin=brief.prompt.encode() if by_stdin else b"",
            secrets=tuple(env[name] for name in self.key_env),
        )

    def _require_arguments(self, words: Iterable[str]) -> None:
        for place, word in enumerate(words, start=1):
            size = len(os.fsencode(word))
            if size >= ARGUMENT_BYTES or "\0" in word:
                what = f"is {size} bytes long, and the system takes less than {ARGUMENT_BYTES}"
                raise SetupError(
                    f"client {self.label}: argument {place}",
                    what if size >= ARGUMENT_BYTES else "would hold a NUL, which no argument can",
                    'set prompt = "stdin", and take {prompt} out of the command',
                )

    def read(self, stdout: Path, exit: Exit, layout: RunLayout) -> Transcript:  # noqa: ARG002
        """Return how it ended and the end of what it printed.

        A kept stream that is read again has no status, and so no completion.
        """
        with stdout.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - RESPONSE_BYTES))
            said = file.read()
        return Transcript(
            events=0,
            completion=_completion(exit),
            interpreted=False,
            response=printable(said, limit=RESPONSE_BYTES),
        )


def _completion(exit: Exit) -> Completion | None:
    """Return what an exit status says of a session that ended by itself."""
    if exit.reason is not Ended.EXITED or exit.status is None:
        return None
    return Completion(is_error=exit.status != 0, detail=f"it ended with status {exit.status}")


def _words(command: tuple[str, ...], *, where: str) -> tuple[str, ...]:
    if not command or not command[0] or "\0" in command[0]:
        hint = 'write command = ["my-agent", "--", "{prompt}"] in [tool.evalarc.clients.<label>]'
        raise UsageError(where, "has no command", hint)
    return command


def _variable(name: str, *, where: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        shown = printable(name, limit=100)
        raise UsageError(f"{where}: key_env", f"{shown!r} is no variable", "write its name")
    return name


def _settings(settings: JsonObject, *, where: str) -> CommandSettings:
    known = tuple(CommandSettings.model_fields)
    for name in settings:
        if name not in known:
            raise UsageError(where, f"takes no setting {name!r}", nearest(name, known))
    try:
        return CommandSettings.model_validate(settings)
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0])
        shown = printable(repr(settings[name]), limit=200)
        said = fault["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where}: setting {name}", f"is {shown}", said) from error
