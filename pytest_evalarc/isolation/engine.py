"""The sandbox of candidates in images: a container of an engine, by its command line.

A container shows an image and two folders, the candidate's own at `/candidate` and the one it may
write at `/state`. It outlives the client that started it, so it has a name and is removed by it.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation.command import Command, Names, Policy, Wrapped, policy_document
from pytest_evalarc.isolation.engine_program import (
    HARNESS_LABEL,
    OOM_STATUS,
    PLACE_LABEL,
    Abilities,
    EngineProgram,
    client_environ,
    place,
)
from pytest_evalarc.isolation.host import require_unchanged
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import Limits

PYTHON_IMAGE = "python:3.12-slim"
NOBODY = 65534
"""User and group id inside."""
WORKSPACE = Path("/candidate")
STATE = Path("/state")

INIT_PROCESSES = 1
"""The container's first process shares the limit with what it runs."""

_INTERPRETERS = {"python": "python3"}
"""What an image calls an interpreter, where that is not the word for it."""

_INIT = f"""
"$@"
status=$?
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r $file ] || continue
    while read -r key count; do
        [ "$key" = oom_kill ] && [ "$count" != 0 ] && exit {OOM_STATUS}
    done < $file
done
exit $status
"""
"""The first process of a container ignores signals that end any other, so the candidate is the
second one. The first one can tell why the other was killed: not every engine learns that the
kernel did it for memory, and afterwards the control group is gone."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """An engine that answers and has the image."""

    program: Path
    sha256: str
    abilities: Abilities
    image_id: str


class _Shown(NamedTuple):
    """The folders of the host that a container shows."""

    workspace: Path
    state: Path | None


class Engine:
    """Docker or podman as a sandbox: about 0.3 s to start, and what it shows is an image.

    The image's name is looked up once, so whatever it is given to later, all candidates of this
    object run in the same one. Objects may be used by several threads.

    Args:
        name: The client's program: `docker` or `podman`.
        image: What candidates run in: a POSIX shell, and the interpreter they need.
        environ: The client's environment, which may lead to its engine; by default our own.
    """

    private_tmp = Path("/tmp")
    masks_denied = False
    """Inside, a memory file system of its own."""

    def __init__(
        self, name: str, image: str = PYTHON_IMAGE, *, environ: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.image = image
        self._client = EngineProgram(
            name=name, environ=client_environ(environ if environ is not None else os.environ)
        )
        self._lock = threading.Lock()
        self._found: _Ready | None = None
        self._opened: set[Path] = set()

    def with_image(self, image: str) -> Engine:
        """Return this engine with another image."""
        return Engine(self.name, image, environ=self._client.environ)

    @property
    def remedy(self) -> str:
        """What to do where it does not start."""
        return f"see that `{self.name} run --rm {self.image} true` works, or use another sandbox"

    def threads(self, limits: Limits) -> AbstractContextManager[Callable[[], None]]:  # noqa: ARG002
        """Return nothing to do: the engine starts the container, whoever asks it to."""
        return nullcontext(lambda: None)

    def names(self, host: Names) -> Names:
        """Return the names of a container; nothing of the host's interpreter is there."""
        program = _INTERPRETERS.get(host.word, host.word)
        return Names(word=host.word, program=program, workspace=WORKSPACE, state=STATE)

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        """Return the client's command that runs a command in a fresh container.

        The folder to read is shown at `/candidate`, the one to write at `/state`, and `PATH` is
        the image's, which knows where its programs are.

        Raises:
            InfrastructureError: The engine or the image is not there, or the policy names more
                than two folders, hides part of one, or wants a network.
        """
        shown = self._shown(policy)
        ready = self._ready()
        require_unchanged(ready.program, where=f"sandbox {self.name}")
        self._hand_over(shown, ready.abilities)
        container = f"evalarc-{secrets.token_hex(16)}"
        argv = (
            *(str(ready.program), "run", "--interactive", "--name", container),
            *_LIFE,
            *("--label", f"{PLACE_LABEL}={place()}", "--label", f"{HARNESS_LABEL}={os.getpid()}"),
            *_SEALED,
            *_own_options(ready.abilities),
            *("--user", _user(ready.abilities)),
            *_bounded(policy.limits),
            *_temporary(policy.limits, ready.abilities),
            *_mounts(shown),
            *("--workdir", str(command.cwd), "--entrypoint", ""),
            *_environment(command.env),
            ready.image_id,
            *("/bin/sh", "-c", _INIT, "init", *command.by_shell()),
        )
        is_podman = ready.abilities.is_podman
        return Wrapped(
            argv=argv,
            cwd=Path("/"),
            env=self._client.environ,
            stdin=command.stdin,
            ran_out_of_memory=partial(self._ran_out_of_memory, container),
            cleanup=lambda: self._client.remove(container, is_podman=is_podman),
        )

    def _ran_out_of_memory(self, container: str, status: int | None) -> bool:
        """Ask the engine only where the status of its client leaves it open: a call costs time.

        Success comes after a look of the first process, and a client dies of our signals alone.
        """
        if status is None or status <= 0:
            return False
        return status == OOM_STATUS or self._client.ran_out_of_memory(container)

    def document(self, policy: Policy) -> JsonValue:
        """Return the policy as it is."""
        return policy_document(policy)

    def record(self, limits: Limits) -> IsolationRecord:  # noqa: ARG002 - the same for any limits.
        """Return version, digest, image and the enforcer of each limit."""
        ready = self._ready()
        return IsolationRecord(
            level="enforced",
            sandbox=self.name,
            version=ready.abilities.version,
            sha256=ready.sha256,
            image=self.image,
            image_id=ready.image_id,
            limits={
                **ready.abilities.enforces,
                "tmp_mib": "tmpfs",
                "output_mib": "supervisor",
                "disk_mib": "rlimit, each file",
            },
        )

    def _ready(self) -> _Ready:
        """Ask the engine once what it is and what the image's name stands for."""
        with self._lock:
            if self._found is None:
                abilities = self._client.abilities()
                self._found = _Ready(
                    program=self._client.file,
                    sha256=self._client.sha256(),
                    abilities=abilities,
                    image_id=self._client.image_id(self.image),
                )
                self._client.remove_abandoned(is_podman=abilities.is_podman)
            return self._found

    def _shown(self, policy: Policy) -> _Shown:
        """Return the two folders of a policy; a container can express no more."""
        where = f"sandbox {self.name}"
        if policy.domains:
            hint = "use the sandbox srt for this client"
            raise InfrastructureError(where, "it has no network at all", hint)
        if len(policy.read) != 1 or len(policy.write) > 1:
            raise InfrastructureError(
                where,
                f"it shows one folder to read and one to write, not {len(policy.read)} and "
                f"{len(policy.write)}",
                "it is for candidates of packs; use bwrap for tasks whose checks are files",
            )
        for folder in (*policy.read, *policy.write):
            hidden = [path for path in policy.deny_read if path.is_relative_to(folder)]
            if hidden:
                raise InfrastructureError(where, f"it cannot hide {hidden[0]} in {folder}")
        return _Shown(policy.read[0], policy.write[0] if policy.write else None)

    def _hand_over(self, shown: _Shown, abilities: Abilities) -> None:
        """Let nobody, whom a harness of root's starts candidates as, have the two folders."""
        if os.geteuid() != 0 or abilities.is_rootless:
            return
        if shown.state is not None:
            os.chown(shown.state, NOBODY, NOBODY, follow_symlinks=False)
        with self._lock:
            if shown.workspace not in self._opened:
                _open_to_all(shown.workspace)
                self._opened.add(shown.workspace)


_LIFE = ("--pull=never", "--log-driver", "none", "--no-healthcheck")

_SEALED = (
    *("--network", "none", "--read-only", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges"),
)


def _own_options(abilities: Abilities) -> Iterator[str]:
    """Yield what only one of the two engines needs to be told to do as the other does."""
    if not abilities.is_podman:
        # Its client hands on the proxies of its settings, and they may hold a password.
        for name in _PROXIES:
            yield from ("--env", f"{name}=", "--env", f"{name.lower()}=")
        return
    yield from ("--read-only-tmpfs=false", "--http-proxy=false")
    # It asks for more than a harness in a container may hand on.
    yield from ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=16384:16384")
    if abilities.is_rootless:
        # Nobody inside is then the harness's own user, who can remove what a candidate wrote.
        yield f"--userns=keep-id:uid={NOBODY},gid={NOBODY}"


def _user(abilities: Abilities) -> str:
    """Return who a candidate is: somebody whose files the harness can remove, and nobody if so."""
    if os.geteuid() == 0 or abilities.is_rootless:
        return f"{NOBODY}:{NOBODY}"
    return f"{os.geteuid()}:{os.getegid()}"


def _bounded(limits: Limits) -> tuple[str, ...]:
    file_bytes = limits.disk_mib * MIB
    return (
        *("--pids-limit", str(limits.processes + INIT_PROCESSES)),
        # With swap on top, memory would be paged out rather than refused.
        *("--memory", f"{limits.memory_mib}m", "--memory-swap", f"{limits.memory_mib}m"),
        *("--cpus", f"{limits.cpus:g}"),
        *("--ulimit", "core=0:0", "--ulimit", f"fsize={file_bytes}:{file_bytes}"),
    )


def _temporary(limits: Limits, abilities: Abilities) -> tuple[str, ...]:
    options = f"rw,noexec,nosuid,nodev,mode=1777,size={limits.tmp_mib}m"
    if abilities.is_podman:
        # Otherwise it fills the folder with what the image has there.
        options += ",notmpcopyup"
    return ("--tmpfs", f"/tmp:{options}", "--shm-size", f"{limits.tmp_mib}m")


def _mounts(shown: _Shown) -> Iterator[str]:
    yield from ("--mount", f"type=bind,{_source(shown.workspace)},destination={WORKSPACE},readonly")
    if shown.state is not None:
        yield from ("--mount", f"type=bind,{_source(shown.state)},destination={STATE}")


def _source(folder: Path) -> str:
    """Return a field of a mount, which is read as comma-separated values."""
    field = f"source={folder.resolve()}"
    return '"{}"'.format(field.replace('"', '""')) if {",", '"'} & set(field) else field


def _environment(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        if name != "PATH":
            yield from ("--env", f"{name}={value}")


def _open_to_all(folder: Path) -> None:
    """Let everybody read a folder of ours, as the umask may not have."""
    for root, _, files in os.walk(folder):
        Path(root).chmod(Path(root).stat().st_mode | 0o555)
        for path in (Path(root, name) for name in files):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o444)
