"""The seam of all clients: what one needs, what it is told, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from pytest_evalarc.isolation.command import Command, Exit, Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import TaskBrief

if TYPE_CHECKING:
    from pytest_evalarc.model.base import JsonObject
    from pytest_evalarc.model.transcript import Transcript


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A part of a configuration file that decides what reaches a session."""

    file: str
    """POSIX path below the run folder, as `home/.claude/settings.json`."""
    keys: tuple[str, ...] = ()
    """Top-level keys of a JSON or TOML file, by its suffix; empty is the whole file."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where a client takes configuration from that no trial planned, and what a trial watches."""

    machine: tuple[Path, ...] = ()
    """Files and folders of the machine that reach every session of the client: managed settings,
    MCP servers, plugins, skills, memory. Each must be absent, or an empty folder."""
    watched: tuple[Watched, ...] = ()
    """Hook, MCP and plugin configuration of the trial's own, compared before and after."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a client asks of the trial around it."""

    domains: tuple[str, ...] = ()
    """Hosts it must reach, as `api.example.com` or `127.0.0.1:8080`; none for a client without a
    model."""
    key_env: tuple[str, ...] = ()
    """The variables of the harness's environment that carry its credentials."""
    env: tuple[str, ...] = ()
    """Further variables of the harness's environment that it gets, by name."""
    reads: tuple[Path, ...] = ()
    """Folders of the host that its program lies in or rests on."""
    skill_folder: str = ".agents/skills"
    """Where it looks for skills, as a POSIX path below the project."""
    reports_cost: bool = False
    agent: str | None = None
    """What Symposium calls it; None for a client that Symposium does not know."""
    takes_plugins: bool = False
    """Whether it loads plugin folders by an option of its own."""
    places: Places = Places()


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


Watcher: TypeAlias = Callable[[bytes], bool]
"""Sees each chunk of one session's stdout; True once the session has delivered its end."""


class Client(Protocol):
    """An agent, seen from outside: it builds a command and reads a transcript."""

    @property
    def name(self) -> str:
        """The client's kind, as `oracle`."""
        ...

    @property
    def version(self) -> str | None:
        """The version that results name; None when it is not known without running something."""
        ...

    @property
    def needs(self) -> Needs:
        """What the trial must provide."""
        ...

    @property
    def embedded(self) -> bool:
        """Whether it is played from a script, without a model."""
        ...

    def configured(
        self,
        label: str,
        *,
        command: tuple[str, ...],
        key_env: tuple[str, ...],
        model: str | None,
        settings: JsonObject,
    ) -> Client:
        """Return the client that a label names: this one with what the label's table says.

        Args:
            label: How paths, ids and options call it.
            command: What starts it; empty leaves that to the client.
            key_env: The variables that carry its credentials; empty leaves that to the client.
            model: The model of the label's sessions; None leaves that to the client.
            settings: Model settings of the client's own making.

        Raises:
            UsageError: The client cannot be that.
        """
        ...

    def missing(self) -> str | None:
        """Return why no session can start on this host, as a sentence; None when it can."""
        ...

    def sha256(self) -> str | None:
        """Return the digest of the client's program; None when it is not known."""
        ...

    def stage(self, folder: Path) -> None:
        """Put what the client's sessions run from into an empty folder."""
        ...

    def watcher(self) -> Watcher | None:
        """Return what watches a new session for its end; None when only its exit tells.

        A session that delivered its end and stays alive is ended, and counts as completed.
        """
        ...

    def start_watcher(self) -> Watcher | None:
        """Return what watches a new session for its start event; None when that lists nothing.

        A session that is started without a key, a network and a task is ended once it is seen:
        what it lists then is the client's own.
        """
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
        plugins: tuple[Path, ...] = (),
        confinement: Policy | None = None,
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
            plugins: Plugin folders to load, for a client that takes some.
            confinement: What the client's own sandbox is to keep to; None when the session runs
                inside a sandbox of ours, and the client's own is off.

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


class ClientBase:
    """What a client answers that has nothing of its own to say; a convenience, not a duty."""

    def configured(self, label: str, **_: object) -> Self:  # noqa: ARG002
        """Return this very client: what its label says reaches it at the launch."""
        return self

    def missing(self) -> str | None:
        """Return None: nothing is known to be missing."""
        return None

    def sha256(self) -> str | None:
        """Return None: the program is not known."""
        return None

    def stage(self, folder: Path) -> None:
        """Leave the folder empty."""

    def watcher(self) -> Watcher | None:
        """Return None: a session ends when its process does."""
        return None

    def start_watcher(self) -> Watcher | None:
        """Return None: nothing is listed at its start."""
        return None
