"""Run small programs the way the harness does, and see what is left of them."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Exit, Policy, Sandbox
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.supervise import Watch, supervise

PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
SANDBOXES: dict[str, type[Bwrap | Local]] = {"bwrap": Bwrap, "local": Local}
PYTHON = (str(base_python()), "-I", "-S", "-c")
SEES_PYTHON = Policy(read=(python_home(),))
WITHOUT_GROUPS = {
    "memory_mib": "rlimit, each process",
    "processes": None,
    "cpus": None,
    "tmp_mib": "tmpfs",
    "output_mib": "supervisor",
    "disk_mib": "rlimit, each file",
}
"""What enforces each limit where no control group can be written."""


class Ran(NamedTuple):
    """How a program ended and what it said."""

    exit: Exit
    stdout: bytes
    stderr: bytes

    @property
    def lines(self) -> list[str]:
        return self.stdout.decode().splitlines()


def shell(script: str, *arguments: object) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script, "sh", *(str(argument) for argument in arguments))


def python(script: str, *arguments: object) -> tuple[str, ...]:
    return (*PYTHON, script, *(str(argument) for argument in arguments))


def run(
    sandbox: Sandbox,
    argv: tuple[str, ...],
    *,
    policy: Policy | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] = PATH,
    cwd: Path = Path("/"),
    watch: Watch | None = None,
    keeps: int = 1 << 16,
) -> Ran:
    """Run a command to its end under a watch that no test should ever need."""
    stdout, stderr = Capture(keeps, keeps), Capture(keeps, keeps)
    command = Command(argv=argv, cwd=cwd, env=env, stdin=stdin)
    wrapped = sandbox.wrap(command, policy if policy is not None else Policy())
    ended = supervise(wrapped, watch or Watch(total_s=60.0), stdout=stdout, stderr=stderr)
    return Ran(ended, stdout.data(), stderr.data())


def marker() -> str:
    """Return an argument by which a process and its children can be found."""
    return f"marker-{secrets.token_hex(8)}"


def living(mark: str) -> list[int]:
    """Return the processes that carry a marker among their arguments, zombies left out."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return [pid for pid in found if pid != os.getpid()]


def becomes_true(claim: Callable[[], bool], *, within_s: float = 20.0) -> bool:
    """Wait for a claim to come true; return whether it has."""
    until_s = time.monotonic() + within_s
    while not claim():
        if time.monotonic() >= until_s:
            return False
        time.sleep(0.01)
    return True
