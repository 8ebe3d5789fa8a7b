"""A project with one valid tiny task, of which a test then breaks one thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import TaskProblems
from pytest_evalarc.model.task import Task
from pytest_evalarc.tasks.load import load_task

TOOLCHAINS = ("python", "rust", "node")

TASK = """\
kind = "capability"
prompt = "Make the settings survive a restart."
toolchain = "python"
editable = ["src"]
fixtures = ["store"]
plugins = ["guide"]
tags = ["storage"]

[weights]
durability = 0.75
speed = 0.25

[deadlines]
agent = 60

[limits]
memory_mib = 512

[expected]
installed = ["use-store"]
used = ["use-store"]
not_used = ["tune-store"]

[checks.persists]
dimension = "durability"
deadline = 5

[checks.quick]
dimension = "speed"

[[mutants]]
name = "memory-only"
target = "durability"
edits = [{ file = "src/app.py", find = "disk", replace = "memory" }]

[[mutants]]
name = "slow"
target = "speed"
overlay = "faults/slow"
"""

SKILL = "---\nname: {}\ndescription: Use it.\n---\n"

FILES = {
    "evals/tasks/tiny/task.toml": TASK,
    "evals/tasks/tiny/starter/src/app.py": "place = None\n",
    "evals/tasks/tiny/starter/README.md": "An app.\n",
    "evals/tasks/tiny/solution/src/app.py": "place = 'disk'\n",
    "evals/tasks/tiny/faults/slow/src/app.py": "place = 'tape'\n",
    "evals/tasks/tiny/checks/persists.py": "def test_persists():\n    assert True\n",
    "evals/tasks/tiny/checks/quick.py": "def test_quick():\n    assert True\n",
    "evals/fixtures/store/Store.py": "",
    "evals/plugins/guide/skills/use-store/SKILL.md": SKILL.format("use-store"),
    "evals/plugins/other/skills/tune-store/SKILL.md": SKILL.format("tune-store"),
}

LABEL = "evals/tasks/tiny/task.toml"


class Project:
    """A project root with `evals/`, and its task `tiny`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path, content in FILES.items():
            self.write(path, content)

    @property
    def task(self) -> Path:
        return self.root / "evals" / "tasks" / "tiny"

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Write a file below the project root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def edit(self, old: str, new: str) -> None:
        """Replace the one place where task.toml says something."""
        text = (self.task / "task.toml").read_text("utf-8")
        assert text.count(old) == 1, old
        self.write(LABEL, text.replace(old, new))

    def line(self, text: str) -> int:
        """Return the 1-based line of the first place where task.toml says something."""
        return self.read().partition(text)[0].count("\n") + 1

    def read(self) -> str:
        return (self.task / "task.toml").read_text("utf-8")

    def load(self) -> Task:
        return load_task(self.task, root=self.root, toolchains=TOOLCHAINS)

    def problems(self) -> list[str]:
        """Return every sentence that loading the task gives."""
        with pytest.raises(TaskProblems) as caught:
            self.load()
        return [str(problem) for problem in caught.value.problems]
