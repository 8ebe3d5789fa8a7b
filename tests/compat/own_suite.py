"""Pytest's own test suite, run without the plugin and with it: every outcome is compared.

`python -m tests.compat.own_suite`, from the root of the repository and with the Python of an
environment of its own, in which the plugin is taken out and put back; `nox -s pytest_own` makes
that environment. Three states are run:

- the plugin is not installed;
- it is installed, and there are tasks beside the suite;
- it is installed, and every session that a test of pytest starts has that folder of tasks.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from release.build import unpack

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "docs" / "examples" / "first-task" / "evals"
HEADER = "evalarc: tasks in "

SHORT = (
    "testing/test_collection.py",
    "testing/test_junitxml.py",
    "testing/test_nodes.py",
    "testing/test_pluginmanager.py",
    "testing/test_session.py",
)
"""Files of the suite that ask most of what a plugin with collectors and options can break."""

EVERYWHERE = '''\
"""Has every session look for its tasks in one folder, wherever the root of its project is."""

from pytest_evalarc.plugin import entry

entry.DEFAULT_TASKS = {tasks!r}
'''

EXPLAINED: Mapping[str, str] = {
    "testing.test_debugging.TestPDB::test_pdb_custom_cls_with_set_trace": (
        "it replaces PYTHONPATH, by which tasks are brought into every session"
    ),
}
"""Tests that come out differently and break nothing, by class and name, each with its reason."""


class State(StrEnum):
    """How the plugin takes part in a run."""

    WITHOUT = "without the plugin"
    BESIDE = "with the plugin, tasks beside the suite"
    EVERYWHERE = "with the plugin, tasks in every session"


class Run(NamedTuple):
    """What one run of the suite came to."""

    counts: str
    """Of pytest's last line, without the time that it took."""
    outcomes: dict[str, str]
    """By class and name, as the JUnit file tells them."""


class Difference(NamedTuple):
    """One test that came out differently."""

    test: str
    without: str
    beside: str


class Suite:
    """A suite that lies in a folder, and the environment that runs it."""

    def __init__(self, folder: Path, *, python: str = sys.executable) -> None:
        self.folder = folder
        self._python = python
        self._everywhere = folder.with_name("everywhere")

    def put_tasks(self) -> None:
        """Lay tasks beside the suite: in every state, so that only the plugin differs."""
        evals = self.folder / "evals"
        shutil.copytree(TASKS, evals)
        self._everywhere.mkdir()
        text = EVERYWHERE.format(tasks=str(evals / "tasks"))
        (self._everywhere / "evalarc_everywhere.py").write_text(text, "utf-8")

    def run(self, state: State, *arguments: str) -> Run:
        """Run pytest on the suite.

        Args:
            state: What the environment was brought to before.
            arguments: Of pytest.

        Raises:
            SystemExit: Pytest came to no end, or the plugin's part is not what the state says.
        """
        junit = self.folder.with_name("junit.xml")
        junit.unlink(missing_ok=True)
        argv = [self._python, "-m", "pytest", "--color=no", f"--junitxml={junit}", *arguments]
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self._env(state),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if not junit.exists():
            raise SystemExit(f"pytest came to no end {state}:\n{done.stdout}")
        if (HEADER in done.stdout) == (state is State.WITHOUT):
            raise SystemExit(f"this was no run {state}:\n{done.stdout}")
        return Run(counts(done.stdout), outcomes(junit.read_text("utf-8")))

    def _env(self, state: State) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        if state is State.EVERYWHERE:
            env |= {"PYTEST_PLUGINS": "evalarc_everywhere", "PYTHONPATH": str(self._everywhere)}
        return env

    def node_id(self, test: str) -> str:
        """Return the node id of a test that the JUnit file calls by class and name."""
        dotted, _, name = test.partition("::")
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            file = Path(*parts[:length]).with_suffix(".py")
            if (self.folder / file).is_file():
                return "::".join([file.as_posix(), *parts[length:], name])
        return test


def counts(output: str) -> str:
    """Return the counts of pytest's last line, without the time that it took."""
    (last,) = [line.strip("= ") for line in output.splitlines()[-3:] if " in " in line][-1:] or [""]
    return last.partition(" in ")[0]


def outcomes(junit: str) -> dict[str, str]:
    """Return each test's outcome by class and name.

    Args:
        junit: A JUnit file of pytest. A test that fails and then cannot be torn down has two
            entries there, and both outcomes here.
    """
    found: dict[str, str] = {}
    for case in ET.fromstring(junit).iter("testcase"):
        test = f"{case.get('classname')}::{case.get('name')}"
        words = sorted(child.tag for child in case if child.tag in ("failure", "error", "skipped"))
        found[test] = " and ".join([*filter(None, [found.get(test)]), *(words or ["passed"])])
    return found


def differences(without: Run, beside: Run) -> list[Difference]:
    """Return the tests that came out differently, or took part in one of two runs alone."""
    tests = sorted(without.outcomes.keys() | beside.outcomes.keys())
    pairs = ((test, without.outcomes.get(test), beside.outcomes.get(test)) for test in tests)
    return [
        Difference(test, first or "absent", second or "absent")
        for test, first, second in pairs
        if first != second
    ]


def enter(state: State) -> None:
    """Take the plugin out of this environment, or put it back."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    is_installed = bool([*importlib.metadata.distributions(name="pytest-evalarc", path=_site())])
    if is_installed and state is State.WITHOUT:
        subprocess.run([*pip, "uninstall", "--yes", "pytest-evalarc"], check=True)
    elif not is_installed and state is not State.WITHOUT:
        subprocess.run([*pip, "install", "--no-deps", "--editable", str(ROOT)], check=True)


def _site() -> list[str]:
    """Return the path without the repository, whose metadata is there in every state."""
    return [path for path in sys.path if path and Path(path).resolve() != ROOT]


def fetch(version: str, folder: Path) -> Path:
    """Return the folder of pytest's sdist of a version, fetched from the package index."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    wanted = ["--no-deps", "--no-binary", "pytest", f"pytest=={version}"]
    subprocess.run([*pip, *wanted, "--dest", str(folder)], check=True)
    (archive,) = folder.glob("pytest-*.tar.gz")
    with tarfile.open(archive) as packed:
        unpack(packed, folder)
    return folder / archive.name.removesuffix(".tar.gz")


def tried_again(suite: Suite, found: Sequence[Difference], state: State) -> list[Difference]:
    """Return the differences that are there again when their tests run alone.

    A few tests of pytest measure time or depend on what ran before them; what such a test does
    twice differently in one state is no difference between two.
    """
    if not found:
        return []
    ids = [suite.node_id(difference.test) for difference in found]
    again = {}
    for each in (state, State.WITHOUT):
        enter(each)
        again[each] = suite.run(each, *ids)
    return differences(again[State.WITHOUT], again[state])


def told(state: State, run: Run, found: Sequence[Difference], again: Sequence[Difference]) -> str:
    """Return what to print of a state: its counts, and every test that came out differently."""
    lines = [f"{state}: {run.counts}"]
    stand = {difference.test for difference in again}
    for test, without, beside in found:
        reason = "" if test in stand else ", the same when run alone"
        if test in EXPLAINED:
            reason = f": {EXPLAINED[test]}"
        lines.append(f"  {test}: {without} without, {beside} with{reason}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite in every state, and print what each came to; return 1 for a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.compat.own_suite")
    parser.add_argument("--short", action="store_true", help="run a few files of the suite alone")
    parser.add_argument("--workers", default="2", help="so many processes run it (2)")
    given = parser.parse_args(arguments)
    version = importlib.metadata.version("pytest")
    print(f"pytest {version}, its own {'files ' + ' '.join(SHORT) if given.short else 'suite'}")
    wanted = ("-n", given.workers, *(SHORT if given.short else ("testing",)))
    with tempfile.TemporaryDirectory(prefix="evalarc-pytest-") as name:
        suite = Suite(fetch(version, Path(name).resolve()))
        suite.put_tasks()
        return compared(suite, wanted)


def compared(suite: Suite, wanted: Sequence[str]) -> int:
    """Run in every state with these arguments of pytest, and print; return 1 for a difference."""
    enter(State.WITHOUT)
    without = suite.run(State.WITHOUT, *wanted)
    print(told(State.WITHOUT, without, (), ()), flush=True)
    unexplained: list[Difference] = []
    for state in (State.BESIDE, State.EVERYWHERE):
        enter(state)
        run = suite.run(state, *wanted)
        found = differences(without, run)
        again = tried_again(suite, found, state)
        print(told(state, run, found, again), flush=True)
        unexplained += [each for each in again if each.test not in EXPLAINED]
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
