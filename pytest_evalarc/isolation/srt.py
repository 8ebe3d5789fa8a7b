"""The sandbox of real clients: the sandbox runtime, whose proxy lets them reach named hosts alone.

Srt is bubblewrap behind a Node script, with the network cut off but for a proxy, and sockets of
other kinds refused. It is started so that what it promises by itself is the least that holds: it
gets a policy that hides the root, and bubblewrap through a script that adds what srt leaves out.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.manifest import read_manifest
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree, write_tree
from pytest_evalarc.isolation import limits as limiting
from pytest_evalarc.isolation import toolset
from pytest_evalarc.isolation.bwrap import INSIDE_ID, sealed_proc
from pytest_evalarc.isolation.command import Command, HostPrograms, Policy, Wrapped
from pytest_evalarc.isolation.devices import Devices, device_pool
from pytest_evalarc.isolation.host import find_bwrap, require_unchanged
from pytest_evalarc.isolation.node import WHEEL, find_node
from pytest_evalarc.isolation.srt_policy import (
    Network,
    Ripgrep,
    Settings,
    filesystem_of,
    is_loopback,
    problems,
    problems_of_env,
)
from pytest_evalarc.model.task import Limits

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_evalarc.model.isolation import IsolationRecord

MINIMUM_NODE = 20
KILL_AFTER_S = 5
"""From the signal at the deadline to the one that cannot be ignored."""
OWN_PROCESSES = 48
"""What srt itself takes of a limit of processes, threads counted; a third of it in practice."""
OWN_MEMORY_MIB = 128
RESERVED_MIB = 512
"""What Node maps for compiled code, writable, before it runs anything."""
FOLDER_PREFIX = "pytest-evalarc-srt-"
SHARED_FOLDER = Path("/tmp/claude")
"""Srt lets every command write there, and so read what another has written."""
HIDDEN = (SHARED_FOLDER, Path("/sys"))
"""What srt shows whatever it is told."""
SOCKET_BYTES = 103
"""The longest path that a socket can have on every system."""
SYSTEM_PATH = "/usr/bin:/bin"
_SOCKET_NAME = "claude-socks-0123456789abcdef.sock"

_PACKAGES = {"socat": "socat", "rg": "ripgrep", "bash": "bash", "timeout": "coreutils"}
"""Programs that srt starts, or that we start inside it, by the package that brings each."""

_BWRAP = """#!/bin/sh
left=$#
added=
while [ "$left" -gt 0 ]; do
    if [ -z "$added" ] && [ "$1" = -- ]; then
        added=yes
        set -- "$@" {options}
    fi
    set -- "$@" "$1"
    shift
    left=$((left - 1))
done
exec {program} "$@"
"""
"""Starts bubblewrap with further options, after all others: the later of two mounts is seen."""


@dataclass(frozen=True, kw_only=True)
class Programs:
    """What srt is started from, on this host."""

    node: Path
    srt: toolset.Tool
    bwrap: Path
    socat: Path
    rg: Path
    timeout: Path
    env: Path


class Srt(HostPrograms):
    """The sandbox runtime: half a second to start, and a network of named hosts."""

    name = "srt"
    masks_denied = True
    private_tmp = None
    """It has one of its own, but nothing bounds its size."""
    remedy = "see what `pytest-evalarc doctor` says, and that user namespaces are allowed"

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        """Return the command as srt starts it, under the policy and its limits.

        Raises:
            InfrastructureError: Something is missing, or srt would not do what the policy says;
                everything that is wrong is told at once.
        """
        programs = _programs()
        private = _Private.make()
        undo = contextlib.ExitStack()
        undo.callback(remove_tree, private.root)
        with contextlib.ExitStack() as failing:
            failing.callback(undo.close)
            devices = device_pool(os.getpid()).take()
            undo.callback(device_pool(os.getpid()).give_back, devices)
            settings = _settings(programs, private, policy)
            _refuse(
                [
                    *problems(settings, policy),
                    *problems_of_env(command.env, policy),
                    *_problems_of(command),
                ]
            )
            private.fill(settings, _bwrap_script(programs.bwrap, devices))
            limits = _with_own(policy.limits)
            reserved_mib = policy.reserved_mib + RESERVED_MIB
            # They hold for srt itself as well, so the shell that sets them stands around it.
            whole = replace(command, argv=_argv(command, programs, private, settings), ready=None)
            first = limiting.rlimits(limits, reserved_mib=reserved_mib)
            limited = limiting.in_group(whole.by_shell(first), limits)
            undo.callback(limited.release)
            failing.pop_all()
        return Wrapped(
            argv=limited.argv,
            cwd=private.cwd,
            env=_env(command.env, private),
            stdin=command.stdin,
            ends_itself=command.deadline_s is not None,
            ran_out_of_memory=lambda _: limited.ran_out_of_memory(),
            cleanup=undo.close,
        )

    def document(self, policy: Policy) -> JsonValue:
        """Return the settings that srt is told.

        Raises:
            InfrastructureError: Something is missing, or srt would not do what the policy says.
        """
        return settings_of(policy).to_json()

    def record(self, limits: Limits) -> IsolationRecord:  # noqa: ARG002 - the same for any limits.
        """Return version, digest and the enforcer of each limit."""
        from pytest_evalarc.model.isolation import IsolationRecord

        srt = _programs().srt
        return IsolationRecord(
            level="enforced",
            sandbox=self.name,
            version=srt.version,
            sha256=_digest(srt.root),
            limits=limiting.enforced_by(bounded_tmp=False),
        )


@dataclass(frozen=True, kw_only=True)
class _Private:
    """A folder of one start of srt: its settings, its sockets, and where it is started.

    Its working folder is empty and never writable, since srt covers names there that could lead a
    program astray, and leaves the covers behind when it is killed.
    """

    root: Path

    @classmethod
    def make(cls) -> _Private:
        _remove_abandoned(os.getpid())
        made = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir=_place())
        private = cls(root=Path(os.path.realpath(made)))
        private.sockets.mkdir(0o700)
        private.cwd.mkdir(0o500)
        return private

    @property
    def cwd(self) -> Path:
        return self.root / "cwd"

    @property
    def sockets(self) -> Path:
        """All of it that is seen inside; the proxy is reached through a file in it."""
        return self.root / "s"

    @property
    def bwrap(self) -> Path:
        return self.root / "bwrap"

    @property
    def settings(self) -> Path:
        return self.root / "settings.json"

    def fill(self, settings: Settings, script: str) -> None:
        """Write all of it.

        Raises:
            InfrastructureError: It cannot be written.
        """
        files = {self.settings: dumps(settings.to_json()), self.bwrap: script.encode()}
        write_tree(self.root, {path.name: content for path, content in files.items()})
        self.bwrap.chmod(0o500)


def _place() -> str:
    """Return where the folders are made: for temporary files, unless its sockets had no room."""
    usual = os.path.realpath(tempfile.gettempdir())
    longest = f"{usual}/{FOLDER_PREFIX}4194304-12345678/s/{_SOCKET_NAME}"
    return usual if len(os.fsencode(longest)) <= SOCKET_BYTES else "/tmp"


@lru_cache(maxsize=1)
def _remove_abandoned(pid: int) -> None:  # noqa: ARG001 - a forked child looks again.
    """Remove the folders of harness processes that are gone; they cannot do it any more."""
    for folder in Path(_place()).glob(f"{FOLDER_PREFIX}*"):
        owner = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                remove_tree(folder)


def settings_of(policy: Policy) -> Settings:
    """Return the settings that a policy leads to, without what each start has of its own.

    Raises:
        InfrastructureError: Something is missing, or srt would not do what the policy says.
    """
    programs = _programs()
    settings = Settings(
        filesystem=filesystem_of(policy),
        network=Network(allowed_domains=policy.domains),
        bwrap_path=str(programs.bwrap),
        socat_path=str(programs.socat),
        ripgrep=Ripgrep(command=str(programs.rg)),
    )
    _refuse(problems(settings, policy))
    return settings


def _settings(programs: Programs, private: _Private, policy: Policy) -> Settings:
    # What srt starts inside has to be seen there, wherever it is installed.
    needed = (programs.srt.root / "vendor", private.sockets)
    return Settings(
        filesystem=filesystem_of(policy, needed=needed),
        network=Network(allowed_domains=policy.domains),
        bwrap_path=str(private.bwrap),
        socat_path=str(programs.socat),
        ripgrep=Ripgrep(command=str(programs.rg)),
    )


def _refuse(found: Sequence[str]) -> None:
    if found:
        raise InfrastructureError("sandbox srt", "; ".join(found))


def _problems_of(command: Command) -> Iterator[str]:
    if "=" in command.argv[0]:
        yield f"the program {printable(command.argv[0], limit=400)} has a = in its name"


def _argv(
    command: Command, programs: Programs, private: _Private, settings: Settings
) -> tuple[str, ...]:
    """Return srt's command line; what follows `--` is run inside, and read by nobody else.

    The deadline is kept inside, so that its signal reaches the client alone and everything around
    it stands until the client has said what it has done.
    """
    deadline: tuple[str, ...] = ()
    if command.deadline_s is not None:
        deadline = (
            *(str(programs.timeout), "-s", command.stop_signal, "-k", str(KILL_AFTER_S)),
            f"{command.deadline_s:.3f}",
        )
    # Srt exempts this machine from its proxy, and there is no other way out.
    through_proxy = any(is_loopback(host) for host in settings.network.allowed_domains)
    return (
        *(str(programs.node), str(programs.srt.path), "--settings", str(private.settings), "--"),
        *deadline,
        *(str(programs.env), "-C", str(command.cwd)),
        *(("NO_PROXY=", "no_proxy=") if through_proxy else ()),
        *command.by_shell(),
    )


def _env(given: Mapping[str, str], private: _Private) -> dict[str, str]:
    """Return the environment of srt, which hands it on but for the temporary folder.

    Without a home or a PATH it would take those of whoever runs the harness.
    """
    return {
        "HOME": str(private.cwd),
        "PATH": SYSTEM_PATH,
        **given,
        # Its sockets, whose paths must be short. The other name becomes TMPDIR inside.
        "TMPDIR": str(private.sockets),
        "CLAUDE_CODE_TMPDIR": given.get("TMPDIR", "/tmp"),
    }


def _bwrap_script(program: Path, devices: Devices) -> str:
    """Return what starts bubblewrap as srt asks for it, and then takes more away.

    To the kernel a harness that runs as root is root inside as well, and srt leaves it settings
    of the machine and everybody's device nodes.
    """
    hidden = [folder for folder in HIDDEN if folder.is_dir()]
    options = (
        *("--uid", INSIDE_ID, "--gid", INSIDE_ID),
        *devices.mounts,
        *sealed_proc(),
        *(word for it in hidden for word in ("--size", "4096", "--tmpfs", str(it))),
        *(word for it in hidden for word in ("--remount-ro", str(it))),
    )
    return _BWRAP.format(options=shlex.join(options), program=shlex.quote(str(program)))


def _with_own(limits: Limits) -> Limits:
    """Return limits with room for srt's own processes, which are in the same group."""
    return replace(
        limits,
        processes=limits.processes + OWN_PROCESSES,
        memory_mib=limits.memory_mib + OWN_MEMORY_MIB,
    )


@lru_cache
def _digest(package: Path) -> str:
    return read_manifest(package).sha256


def _programs() -> Programs:
    """Return what srt is started from.

    Raises:
        InfrastructureError: Something is missing.
    """
    if (problem := missing()) is not None:
        raise InfrastructureError("sandbox srt", *problem.split("; ", 1))
    node, bwrap = find_node(MINIMUM_NODE), find_bwrap()
    if node is None or bwrap is None:  # pragma: no cover - they were there a moment ago.
        raise InfrastructureError("sandbox srt", "node or bubblewrap is gone")
    srt = toolset.require("srt")
    for program in (srt.path, bwrap.path, node.program):
        require_unchanged(program, where="sandbox srt")
    return Programs(
        node=node.program,
        srt=srt,
        bwrap=bwrap.path,
        **{name: Path(str(shutil.which(name))) for name in ("socat", "rg", "timeout", "env")},
    )


def missing() -> str | None:
    """Return what srt needs and this host has not, as one sentence; None when it can be started.

    Srt tells it too, with the exit status of any command that fails.
    """
    if sys.platform != "linux":
        return "srt is driven on Linux alone; run the trials of this client there"
    lacks = list(_lacking())
    if not lacks:
        return None
    return f"{', '.join(lack.what for lack in lacks)}; {' && '.join(_mending(lacks))}"


class _Lack(NamedTuple):
    """What is lacking, with the package that brings it; without any, our own tools bring it."""

    what: str
    apt: str = ""
    pip: str = ""


def _lacking() -> Iterator[_Lack]:
    if (problem := toolset.missing("srt")) is not None:
        yield _Lack(problem.partition("; ")[0])
    elif _helper(toolset.require("srt")) is None:
        yield _Lack("srt has no program that filters system calls on this machine")
    if find_node(MINIMUM_NODE) is None:
        # That of a system is often older.
        yield _Lack(f"no Node of version {MINIMUM_NODE} or newer", pip=WHEEL)
    if find_bwrap() is None:
        yield _Lack("no usable bubblewrap", apt="bubblewrap")
    for program, package in _PACKAGES.items():
        if shutil.which(program) is None:
            yield _Lack(f"no {program}", apt=package)


def _mending(lacks: Sequence[_Lack]) -> Iterator[str]:
    """Yield the commands that bring all of it, in the order in which they work."""
    for installer, packages in (
        ("apt-get", sorted(lack.apt for lack in lacks if lack.apt)),
        ("pip", sorted(lack.pip for lack in lacks if lack.pip)),
    ):
        if packages:
            yield f"{installer} install {' '.join(packages)}"
    if any(not lack.apt and not lack.pip for lack in lacks):
        yield toolset.INSTALL


def _helper(srt: toolset.Tool) -> Path | None:
    """Return the program by which srt refuses sockets; without it, srt only warns."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, "")
    program = srt.root / "vendor" / "seccomp" / machine / "apply-seccomp"
    return program if os.access(program, os.X_OK) and machine else None
