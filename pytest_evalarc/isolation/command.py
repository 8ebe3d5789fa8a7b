"""What is run, what it may touch, and how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_evalarc.errors import InfrastructureError, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.task import Limits

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_evalarc.model.isolation import IsolationRecord


_ANNOUNCE = (
    'command -v "$2" >/dev/null || { echo "$2 cannot be run" >&2; exit 127; }; '
    'printf "%s\\n" "$1"; shift; '
)


class Secret(str):
    """A value that must not reach anything stored; what shows values does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return what stands for it, as among the variables of a frame in a traceback."""
        return "'********'"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program with everything it is started with; nothing is inherited."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""
    """Fed whole, then closed."""
    ready: str | None = None
    """A line that is printed once the sandbox stands and the program is found in it."""
    secrets: tuple[str, ...] = ()
    """Values that must not reach anything stored."""
    deadline_s: float | None = None
    """Wall-clock seconds after which a sandbox that can ends it from inside, its outcome then 124;
    the supervisor's own deadline comes later."""
    stop_signal: str = "TERM"
    """What ends it then: the signal at which it still says what it has done."""

    def by_shell(self, first: str = "") -> tuple[str, ...]:
        """Return what a sandbox starts inside: a shell that prints `ready` and becomes the program.

        Args:
            first: What the shell does before that, with a semicolon at its end. Where nothing is
                to be done there is no shell.
        """
        words = self.argv
        if self.ready is not None:
            first += _ANNOUNCE
            words = (self.ready, *words)
        return ("/bin/sh", "-c", f'{first}exec "$@"', "start", *words) if first else words


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a process may read, write and reach; the most specific path decides.

    System folders are readable everywhere. Outside them nothing is, but `read` and `write`.
    """

    read: tuple[Path, ...] = ()
    deny_read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    domains: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    reserved_mib: int = 0
    """What the program maps and never fills, which counts for no limit of memory."""
    resolved: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each path leads; what is given here is not looked up again."""

    def __post_init__(self) -> None:
        """Look up where the paths lead, and refuse what a hostile process could have prepared.

        Raises:
            InfrastructureError: A path is not absolute, or lies below a writable folder: whoever
                can write there can put a symbolic link in its way, and mounts are set up from
                outside.
        """
        paths = (*self.read, *self.deny_read, *self.write)
        for path in paths:
            if not path.is_absolute():
                raise InfrastructureError(str(path), "a policy takes absolute paths")
        found = {path: self.resolved.get(path) or os.path.realpath(path) for path in paths}
        object.__setattr__(self, "resolved", found)
        for folder in self.write:
            # As it is written and as it resolves: both may be where a mount is set up.
            above = (f"{folder}/", f"{found[folder]}/")
            for path in paths:
                if str(path).startswith(above) or found[path].startswith(above):
                    problem = f"no mount point may lie below the writable {folder}"
                    raise InfrastructureError(str(path), problem)

    def also(self, *, read: tuple[Path, ...] = (), write: tuple[Path, ...] = ()) -> Policy:
        """Return this policy with further folders; what it has is not looked up again."""
        return replace(self, read=(*self.read, *read), write=(*self.write, *write))


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a candidate's interpreter and folders are called by the process that runs it."""

    word: str
    """What stands for the interpreter in the template of a command, as `python` for `{python}`."""
    program: str
    workspace: Path
    """The candidate's own folder, in which it starts."""
    state: Path
    """The folder that it may write."""
    reads: tuple[Path, ...] = ()
    """What of the host the interpreter needs to be shown."""
    path: tuple[str, ...] | None = None
    """Folders in which programs are looked for; None: an image, of which only it is known."""

    @property
    def values(self) -> dict[str, str]:
        """What to fill a command's template with."""
        return {
            self.word: self.program,
            "workspace": str(self.workspace),
            "state": str(self.state),
        }


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """A command as the host starts it."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""
    descriptor_at: int | None = None
    """Where in `argv` the number of a descriptor goes on which a namespace sandbox writes a JSON
    object with the `child-pid` of its first process; it then ends by itself when the harness does.
    None: the tree needs a keeper for that."""
    ends_itself: bool = False
    """Whether the command's own deadline is kept inside, where its signal reaches the client
    alone; the supervisor's then comes later."""
    ran_out_of_memory: Callable[[int | None], bool] = lambda _: False
    """Whether the kernel ended a process of the tree for its memory, given the exit status of the
    command, negative for a signal; asked before `cleanup`."""
    cleanup: Callable[[], None] = lambda: None
    """Called once, when nothing of the tree lives."""


class Ended(StrEnum):
    """What ended a process."""

    EXITED = "exited"
    STARTUP = "startup_deadline"
    DEADLINE = "deadline"
    IDLE = "idle_deadline"
    OUTPUT = "output_limit"
    FINISHED = "finished"
    """It had delivered its result and was then ended by us."""
    CANCELLED = "cancelled"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How a supervised process ended; an exit status alone proves nothing."""

    reason: Ended
    status: int | None
    """Exit status, negative for a signal; None when it never started."""
    stdout_bytes: int
    stderr_bytes: int
    """True counts, also of what was not kept."""
    wall_time_s: float
    """From its start to its end, without the time in which the harness stood still."""
    stood_still_s: float = 0.0
    """How long that was."""
    survivors: tuple[int, ...] = ()
    """Process ids that outlived the sweep; empty in every ordinary case."""
    out_of_memory: bool = False
    detail: str = ""


def policy_document(policy: Policy) -> JsonValue:
    """Return a policy in the shape that results keep it in."""

    def paths(values: tuple[Path, ...]) -> list[JsonValue]:
        return [str(value) for value in values]

    return {
        "filesystem": {
            "denyRead": paths(policy.deny_read),
            "allowRead": paths(policy.read),
            "allowWrite": paths(policy.write),
            "denyWrite": [],
        },
        "network": {"allowedDomains": list(policy.domains), "deniedDomains": []},
    }


class HostPrograms:
    """What sandboxes have in common that show the host's programs, and each where it is."""

    name: str
    image: str | None = None
    masks_denied: bool = False

    def with_image(self, image: str) -> Sandbox:
        """Refuse the image."""
        problem = f"cannot be {printable(image)}, for the sandbox {self.name} has no image"
        raise UsageError("--evalarc-image", problem, "add --evalarc-sandbox podman, or docker")

    def names(self, host: Names) -> Names:
        """Return the host's names."""
        return host

    def document(self, policy: Policy) -> JsonValue:
        """Return the policy as it is."""
        return policy_document(policy)

    def threads(self, limits: Limits) -> AbstractContextManager[Callable[[], None]]:
        """Return a manager of threads that are under the limits themselves."""
        from pytest_evalarc.isolation.limits import Joined

        return Joined(limits)


class Sandbox(Protocol):
    """Turns a command and a policy into what the host starts: an argv prefix, nothing more."""

    @property
    def name(self) -> str:
        """The word in options and results."""
        ...

    @property
    def private_tmp(self) -> Path | None:
        """A temporary folder of bounded size that every process gets for itself; None if not."""
        ...

    @property
    def masks_denied(self) -> bool:
        """Whether a denied folder stands inside as an empty one that can be written."""
        ...

    @property
    def image(self) -> str | None:
        """What candidates of packs find in place of the host's programs; None: those programs.

        Only candidates run in an image, for sessions and checks need what is staged on the host.
        """
        ...

    def with_image(self, image: str) -> Sandbox:
        """Return this sandbox with another image.

        Raises:
            UsageError: It has none.
        """
        ...

    @property
    def remedy(self) -> str:
        """What to do where it does not start, as the end of a sentence."""
        ...

    def names(self, host: Names) -> Names:
        """Return what a candidate's things are called inside, given what the host calls them."""
        ...

    def threads(self, limits: Limits) -> AbstractContextManager[Callable[[], None]]:
        """Return what surrounds the life of threads that start processes under these limits.

        It gives what each of them calls first. Threads may do without: it only saves time.
        """
        ...

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        """Return the command as the host starts it; inside, by `Command.by_shell`.

        Raises:
            InfrastructureError: The sandbox is not there, or cannot express the policy.
        """
        ...

    def document(self, policy: Policy) -> JsonValue:
        """Return what results keep of a policy: what the sandbox is really told.

        Raises:
            InfrastructureError: The sandbox cannot express the policy.
        """
        ...

    def record(self, limits: Limits) -> IsolationRecord:
        """Return what results say of this sandbox: version, digest, limits by enforcer."""
        ...
