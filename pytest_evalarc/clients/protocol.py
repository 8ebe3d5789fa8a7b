"""The seam of all clients: what one needs, what it is told, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pytest_evalarc.isolation.command import Command, Exit
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Transcript


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a client asks of the trial around it."""

    domains: tuple[str, ...] = ()
    """Hosts it must reach; none for a client without a model."""
    key_env: str | None = None
    """The environment variable that carries its key."""
    skill_folder: str = ".agents/skills"
    """Where it looks for skills, as a POSIX path below the project."""
    reports_cost: bool = False
    minimum_version: str | None = None


class Plays(StrEnum):
    """Whose work an embedded client performs."""

    SOLUTION = "solution"
    NOTHING = "nothing"
    RECORDING = "recording"


@dataclass(frozen=True, kw_only=True)
class Script:
    """All that an embedded client does; paths are POSIX paths below the project.

    Reads come first, then removals, then writes and links.
    """

    reads: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    """Files, links or whole folders."""
    writes: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)
    """Content and permission bits (0 to 0o777) by path."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Target text of symbolic links by path: a recorded session may have left some."""
    transcript: bytes | None = None
    """A recorded stream to print instead of a report of one's own actions."""


class Client(Protocol):
    """An agent, seen from outside: it builds a command and reads a transcript."""

    @property
    def name(self) -> str:
        """The client's kind, as `oracle`."""
        ...

    @property
    def version(self) -> str:
        """The version that results name."""
        ...

    @property
    def needs(self) -> Needs:
        """What the trial must provide."""
        ...

    @property
    def embedded(self) -> bool:
        """Whether it is played from a script, without a model."""
        ...

    def launch(
        self,
        brief: TaskBrief,
        layout: RunLayout,
        *,
        python: Path,
        program_dir: Path,
        env: Mapping[str, str],
        model: str | None,
        settings: JsonObject,
        script: Script | None,
    ) -> Command:
        """Return what starts one session; sandboxing it is the caller's business.

        Args:
            brief: All that a client may know of the task.
            layout: The trial's folders, as the client sees them.
            python: An interpreter that the trial can run.
            program_dir: Folder that holds the client's staged program.
            env: The whole environment of the session, the key included.
            model: The model to use; None is the client's default.
            settings: Model settings of the client's own making.
            script: What an embedded client plays; None for a real one.

        Raises:
            SetupError: A setting is not one that this client takes.
        """
        ...

    def read(self, stdout: Path, exit: Exit, layout: RunLayout) -> Transcript:
        """Return what the session's output stream shows.

        Content never raises: what is torn, hostile or unknown makes the transcript
        uninterpreted.

        Args:
            stdout: The captured stream.
            exit: How the session ended.
            layout: The trial's folders.

        Raises:
            OSError: The captured stream cannot be read at all.
        """
        ...
