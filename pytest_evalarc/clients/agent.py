"""What the clients share whose program is a tool of its own: how a table names one and finds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from pytest_evalarc.clients.program import find_program, program_digest
from pytest_evalarc.clients.protocol import ClientBase
from pytest_evalarc.clients.settings import read_settings, require_variables
from pytest_evalarc.errors import SetupError, UsageError
from pytest_evalarc.isolation import toolset
from pytest_evalarc.isolation.toolset import Tool
from pytest_evalarc.model.base import JsonObject, Model

S = TypeVar("S", bound=Model)


@dataclass(frozen=True, kw_only=True)
class Agent(ClientBase, Generic[S]):
    """A coding agent with a model, found as it is installed and run from a copy."""

    label: str
    command: Path | None = None
    """The program to use; None is the one that is installed."""
    key_env: tuple[str, ...]
    """The variables that carry its credentials, that of the model's API first."""
    settings: S

    name: ClassVar[str]
    """The client's kind, by which its tool is known too."""
    embedded: ClassVar[bool] = False

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
        client = replace(
            self,
            label=label,
            command=_program(command, name=self.name, where=where) if command else self.command,
            key_env=require_variables(key_env, where=where) or self.key_env,
            settings=read_settings(type(self.settings), settings, where=where),
        )
        client._refuse_clashes()
        return client

    def _refuse_clashes(self) -> None:
        """Refuse a table that asks for what no session would get; here, nothing is known to be."""

    @property
    def tool(self) -> Tool:
        """The program that sessions run a copy of.

        Raises:
            SetupError: It is not there, too old, or no program of its own.
        """
        if self.command is None:
            return toolset.require(self.name)
        where = f"client {self.label}: command {self.command}"
        found = toolset.at(self.name, find_program(str(self.command)))
        if found is None:
            hint = "name the program itself, or that of an npm package with its binary installed"
            raise SetupError(where, "is a script, or tells no version", hint)
        if found.is_too_old:
            least = toolset.MINIMUM[self.name]
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


def _program(command: tuple[str, ...], *, name: str, where: str) -> Path:
    program, *words = command
    if words:
        hint = 'leave one word, or describe it with client = "command"'
        raise UsageError(f"{where}: command", "is more than a program", hint)
    if not Path(program).is_absolute() or "\0" in program:
        hint = f"write the absolute path of a {name}, or leave it out to use the installed one"
        raise UsageError(f"{where}: command", "is no absolute path", hint)
    return Path(program)
