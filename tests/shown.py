"""Commands that the pages show, and a project in which they can be run as they stand.

Its tasks have the names that the pages use and are graded by the shell, so that a trial takes a
moment; agents that cost money are labels of one that is a few lines of shell. Everything between
is the real thing: a shell, pytest, the sandbox, the documents.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.plugin.project import TASK, Project

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
SHELL = re.compile(r"^```(?:bash|console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Shown(NamedTuple):
    """One command of a page; a block that begins as a script does is one command."""

    page: str
    text: str


def commands(page: Path) -> Iterator[Shown]:
    """Yield the commands of a page in their order, each as it is typed."""
    name = page.relative_to(ROOT).as_posix()
    for block in SHELL.findall(page.read_text("utf-8")):
        if block.startswith("#!"):
            yield Shown(name, block)
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield Shown(name, " ".join(line.split()))


PLAIN = re.sub(r"^plugins.*\n|^\[expected\]\n(.+\n)+", "", TASK, flags=re.MULTILINE)
SLUGS = '"""Names for addresses."""\n\n\ndef slug(text):\n    """Return it."""\n'
TASKS = {
    "hello": TASK,
    # Each fault is noticed by two cases.
    "store-durability": TASK.replace(
        "[[mutants]]",
        '[checks.greets-loud]\ndimension = "greets"\n[checks.names-loud]\ndimension = "names"\n'
        "\n[[mutants]]",
        1,
    ),
    "settings-durability": PLAIN,
    "ticket-labels": TASK,
    "url-slugs": PLAIN.replace('["src"]', '["src", "slugs.py"]'),
}
LABELS = """\
[tool.evalarc.clients.{label}]
client = "paid"
"""
AGENTS = ("claude", "codex", "mine", "my-agent")
CONFTEST = """\
import shell
from shell import *

USAGE = shell.line(type="usage", input_tokens=10, output_tokens=2)
WORK = "test ! -e .agents || " + shell.WORK
SCRIPT = shell.START + shell.SKILL + WORK + USAGE + shell.DONE
NEEDS = shell.Needs(reports_cost=True)


def pytest_evalarc_clients():
    return {"paid": lambda: shell.ShellClient(name="paid", script=SCRIPT, needs=NEEDS)}
"""


OPTIONS = "-p no:randomly -p no:cacheprovider --evalarc-cache"
"""Trials of one project leave the same again and again, and need be graded once."""


class World:
    """A folder with a project, a home and a folder for temporary files, and nobody else's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"

    @classmethod
    def made(cls, folder: Path) -> World:
        """Return one whose project holds a task and a label for each that the pages name."""
        project = Project(folder / "project", folder / "tmp" / "trials")
        for name, text in TASKS.items():
            project.add_task(name, text)
        for place in ("starter", "solution"):
            project.write(f"evals/tasks/url-slugs/{place}/slugs.py", SLUGS)
        for check in ("greets", "names"):
            source = project.root / f"evals/tasks/store-durability/checks/{check}.sh"
            shutil.copy(source, source.with_stem(f"{check}-loud"))
        friday = LABELS.format(label="friday").replace("paid", "replay")
        settings = 'settings = { recording = "recordings/friday" }\n'
        labels = "".join(LABELS.format(label=label) for label in AGENTS)
        project.write("pyproject.toml", f"{labels}{friday}{settings}")
        project.write("conftest.py", CONFTEST)
        for name in ("home", "tmp"):
            (folder / name).mkdir(exist_ok=True)
        return cls(folder)

    def copied(self, folder: Path) -> World:
        """Return another one that holds the same."""
        shutil.copytree(self.folder, folder, symlinks=True, dirs_exist_ok=True)
        return World(folder)

    def keep_tasks(self, commands: Sequence[str]) -> None:
        """Remove the tasks that no command names, but for one: some commands are about all."""
        named = {name for name in TASKS if any(name in command for command in commands)}
        for name in TASKS.keys() - (named or {"url-slugs"}):
            shutil.rmtree(self.project / "evals" / "tasks" / name)

    def run(self, command: str, more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the project, by a shell in which our own environment is active."""
        own = Path(sys.executable).parent
        env = {
            "PATH": f"{own}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "SHELL_STARTS": str(self.folder / "starts"),
            "PYTEST_ADDOPTS": OPTIONS,
        }
        return subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.project,
            env={**env, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=300,
            check=False,
        )
