"""What a controller spends on each trial that another host runs and sends to it over ssh.

`python benchmarks/ssh.py` needs the package with its tests, OpenSSH's daemon and client, and a
bubblewrap that works. The hosts are daemons on this machine. It exits with 0 whatever the figures
are: a loaded machine is no defect. `--quick` measures fewer trials.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from foundation import Figure, show

ROOT = Path(__file__).resolve().parent.parent
# The helpers of the tests are found as they are in a test.
_helpers = ModuleType("tests")
_helpers.__path__ = [str(ROOT / "tests")]
sys.modules.setdefault("tests", _helpers)

from tests.plugin.project import Project  # noqa: E402
from tests.system.ssh_hosts import Hosts  # noqa: E402

CONTROLLER = """
import sys, time, pytest
status = pytest.main(sys.argv[1:])
print(time.process_time())
raise SystemExit(status)
"""
"""The controller's own CPU is measured in it: ssh is a process of its own."""
FEW = 4


class Spread:
    """A project with a task that is graded in a moment, on two hosts."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder / "project", folder / "alone" / "trials")
        self.hosts = Hosts(folder / "ssh")
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
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return float(done.stdout.splitlines()[-1])


def figures(folder: Path, many: int) -> Iterator[Figure]:
    """Yield the figures: what grows with the trials, beyond a session of few."""
    spread = Spread(folder)
    spread.hosts.start()
    try:
        for name, over, bar in (
            ("remote trial, CPU of the controller", spread.hosts.tx(), 30.0),
            ("local trial, CPU of the controller", ["-n2"], None),
        ):
            # The first session compiles what it imports.
            spread.controller_s(1, *over)
            few_s = spread.controller_s(FEW, *over)
            many_s = spread.controller_s(many, *over)
            # Each number of trials is run with the treatment and without it.
            each_ms = 1000 * (many_s - few_s) / (2 * (many - FEW))
            yield Figure(name, each_ms, "ms", bar, f"{many_s:.2f} s for {2 * many} trials")
    finally:
        spread.hosts.stop()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure fewer trials")
    given = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}", end=", ")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="evalarc-benchmark-") as name:
        many = 12 if given.quick else 44
        show(figures(Path(name).resolve(), many), lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
