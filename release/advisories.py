"""`python -m release.advisories`: are holes known in anything that is pinned?

pip-audit ends with "no known vulnerabilities" and status 0 when the service knew none of the
packages, and that is what it says where the service cannot be reached. Here such a package counts
as not asked about.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from release.locks import LOCKS

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "pytest_evalarc" / "tools"


class Status(IntEnum):
    """What the command ends with."""

    CLEAN = 0
    FOUND = 1
    NOT_ASKED = 3


class Answer(NamedTuple):
    """What a service said of the packages of one lock."""

    holes: tuple[str, ...]
    """One line for each, with the package and the advisory's own name."""
    not_asked: tuple[str, ...]
    """Packages, or one sentence why none could be asked about."""

    @property
    def status(self) -> Status:
        """A hole outweighs what could not be asked."""
        if self.holes:
            return Status.FOUND
        return Status.NOT_ASKED if self.not_asked else Status.CLEAN


def read_pip_audit(output: str, complaint: str) -> Answer:
    """Return what pip-audit answered.

    Args:
        output: Its standard output, JSON unless it gave up.
        complaint: Its standard error, told when it gave up.
    """
    report = _parsed(output)
    if "dependencies" not in report:
        return Answer((), (f"pip-audit gave up: {_last_line(complaint)}",))
    packages = report["dependencies"]
    holes = [
        f"{package['name']} {package['version']}: {hole['id']}"
        for package in packages
        for hole in package.get("vulns", ())
    ]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    return Answer(tuple(holes), tuple(skipped))


def read_npm_audit(output: str, complaint: str) -> Answer:
    """Return what `npm audit --json` answered; arguments as those of `read_pip_audit`."""
    report = _parsed(output)
    if "vulnerabilities" not in report:
        return Answer((), (f"npm gave up: {report.get('message') or _last_line(complaint)}",))
    holes = [f"{name}: {hole['severity']}" for name, hole in report["vulnerabilities"].items()]
    return Answer(tuple(holes), ())


def _parsed(output: str) -> dict[str, Any]:
    try:
        report = json.loads(output)
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _last_line(complaint: str) -> str:
    lines = complaint.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def told(name: str, answer: Answer) -> str:
    """Return what to print of one lock: every hole, and how much is unknown."""
    lines = [f"{name}: {hole}" for hole in answer.holes]
    if answer.not_asked:
        some = ", ".join([*answer.not_asked[:5], *(["…"] if len(answer.not_asked) > 5 else [])])
        lines.append(f"{name}: NOT ASKED, nothing is known of {len(answer.not_asked)}: {some}")
    return "\n".join(lines or [f"{name}: no hole is known in what is pinned"])


def ask_pip_audit(lock: Path) -> Answer:
    """Ask PyPI's service about every pin of a lock; needs a network, installs nothing."""
    argv = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes"]
    argv += ["--progress-spinner", "off", "--format", "json", "--requirement", str(lock)]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", check=False)
    return read_pip_audit(done.stdout, done.stderr)


def ask_npm_audit(folder: Path) -> Answer:
    """Ask npm's registry about every pin of a package-lock.json; installs nothing."""
    npm = shutil.which("npm")
    if npm is None:
        return Answer((), ("npm is not on PATH",))
    argv = [npm, "audit", "--package-lock-only", "--json"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    return read_npm_audit(done.stdout, done.stderr)


def main() -> int:
    """Ask about every lock; the worst answer decides the status."""
    pinned = [ROOT / "requirements" / lock.file for lock in LOCKS]
    asked = {f"requirements/{lock.name}": ask_pip_audit(lock) for lock in pinned}
    asked["pytest_evalarc/tools/package-lock.json"] = ask_npm_audit(TOOLS)
    for name, answer in asked.items():
        print(told(name, answer))
    statuses = {answer.status for answer in asked.values()}
    worst_first = (Status.FOUND, Status.NOT_ASKED, Status.CLEAN)
    return next(status for status in worst_first if status in statuses)


if __name__ == "__main__":
    sys.exit(main())
