"""What a controller spends on each trial that another host runs and sends to it over ssh.

It needs the package with its tests, OpenSSH's daemon and client, and a bubblewrap that works. The
hosts are daemons on this machine.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import helpers  # noqa: F401 - what lets the next ones be found.
from figures import Figure, Known, require

from tests.plugin.project import Project
from tests.system.ssh_hosts import Hosts

CONTROLLER = """
import sys, time, pytest
status = pytest.main(sys.argv[1:])
print(time.process_time())
raise SystemExit(status)
"""
"""The controller's own CPU is measured in it: ssh is a process of its own."""
FEW = 4


class Wanted(NamedTuple):
    """The figures, in the order of the table."""

    remote: Known
    local: Known


WANTED = Wanted(
    remote=Known("remote trial, CPU of the controller", "ms", at_most=30),
    local=Known("local trial, CPU of the controller", "ms"),
)
FIGURES = tuple(WANTED)


class Spread:
    """A project with a task that is graded in a moment, on two hosts."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder / "project", folder / "alone" / "trials")
        self.hosts = Hosts(folder / "ssh", compiled=folder / "compiled")
        self.hosts.check_out(self.project.root)

    def controller_s(self, trials: int, *over: str) -> float:
        """Return the CPU of a controller whose workers run so many trials."""
        batch = f"--evalarc-batch=b{trials}-{len(over)}"
        asked = ("evals", "-q", "-m", "evalarc_trial", "--evalarc-client=oracle", batch)
        own = ("-p", "no:randomly", "-p", "no:cacheprovider", f"--evalarc-trials={trials}")
        done = subprocess.run(
            [sys.executable, "-c", CONTROLLER, *own, *asked, *over],
            cwd=self.project.root,
            env=self.project.env,
            capture_output=True,
            text=True,
            check=False,
        )
        require(done.returncode == 0, done.stdout + done.stderr)
        return float(done.stdout.splitlines()[-1])


def ssh_figures(folder: Path, *, quick: bool) -> Iterator[Figure]:
    """Yield every figure: what grows with the trials, beyond a session of few."""
    many = 12 if quick else 44
    spread = Spread(folder)
    spread.hosts.start()
    try:
        yield each_trial(spread, WANTED.remote, many, *spread.hosts.tx())
        yield each_trial(spread, WANTED.local, many, "-n2")
    finally:
        spread.hosts.stop()


def each_trial(spread: Spread, wanted: Known, many: int, *over: str) -> Figure:
    """Return what one more trial costs the controller of workers that are given so."""
    # The first session compiles what it imports.
    spread.controller_s(1, *over)
    few_s, many_s = (spread.controller_s(trials, *over) for trials in (FEW, many))
    # Each number of trials is run with the treatment and without it.
    each_ms = 1000 * (many_s - few_s) / (2 * (many - FEW))
    return wanted.of(each_ms, f"{many_s:.2f} s for {2 * many} trials")
