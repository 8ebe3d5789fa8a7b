"""A valid small task for the grader, and a bench to grade what tests submit to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.files.manifest import read_manifest
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.grading.grade import Session, grade
from pytest_evalarc.grading.lab import FileLab, Stopwatch, scratch
from pytest_evalarc.grading.submission import (
    Submission,
    make_control,
    make_copy,
    read_submission,
)
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.model.grading import CheckRow, Grading, StepRow
from pytest_evalarc.model.task import Task
from pytest_evalarc.tasks.load import load_task

CANARY = "canary-3f1c9a77"
"""Stands in all that is hidden, and nowhere else."""

TASK = """\
kind = "capability"
prompt = "Make the numbers right."
toolchain = "python"
editable = [{editable}]
fixtures = ["numbers"]
fmt_check = true

[deadlines]
grading = {grading}
check = {check}

[limits]
memory_mib = {memory_mib}
processes = 64
tmp_mib = 16
output_mib = 1
disk_mib = 64
"""

WRONG = "def value():\n    return 41\n\n\ndef rows():\n    return []\n"
RIGHT = """\
from app import _fixtures  # noqa: F401
from fixture_numbers import ANSWER


def value():
    return ANSWER


def rows():
    return ['a', 'b', 'c']
"""

FILES = {
    "evals/fixtures/numbers/fixture_numbers/__init__.py": "ANSWER = 42\n",
    "evals/tasks/small/starter/pyproject.toml": "[tool.ruff.format]\nquote-style = 'single'\n",
    "evals/tasks/small/starter/README.md": "Numbers.\n",
    "evals/tasks/small/starter/app/__init__.py": "",
    "evals/tasks/small/starter/app/_fixtures.py": (
        "import sys\nfrom pathlib import Path\n\n"
        "sys.path.append(str(Path(__file__).resolve().parents[2] / 'fixtures' / 'numbers'))\n"
    ),
    "evals/tasks/small/starter/app/core.py": WRONG,
    "evals/tasks/small/solution/app/core.py": f"{RIGHT}\n\n# {CANARY}-solution\n",
    "evals/tasks/small/checks/in_process.py": (
        f"# {CANARY}-check-in-process\n"
        "from app import core\n\n\n"
        "def test_values():\n"
        "    assert core.value() == 42\n"
        "    assert len(core.rows()) == 3\n"
    ),
    "evals/tasks/small/checks/child_form.py": (
        f"# {CANARY}-check-child-form\n"
        "def test_values(submission):\n"
        "    assert submission.call('app.core:value') == 42\n"
        "    assert len(submission.call('app.core:rows')) == 3\n"
    ),
    "evals/tasks/small/notes.txt": f"{CANARY}-task\n",
}


@dataclass(frozen=True, kw_only=True)
class SmallTask:
    """A project with the task `small`: fixture, starter, solution, a check in either form."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "evals" / "tasks" / "small"

    def write(self, path: str, content: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")

    def only_check(self, source: str) -> None:
        """Have one hidden check instead of the two."""
        for old in (self.folder / "checks").iterdir():
            old.unlink()
        self.write("checks/only.py", source)

    def load(
        self,
        *,
        editable: Iterable[str] = ("app", "tests"),
        grading: float = 60,
        check: float = 30,
        memory_mib: int = 512,
    ) -> Task:
        listed = ", ".join(f'"{path}"' for path in editable)
        self.write(
            "task.toml",
            TASK.format(editable=listed, grading=grading, check=check, memory_mib=memory_mib),
        )
        return load_task(self.folder, root=self.root, toolchains=["python"])


def make_small_task(root: Path) -> SmallTask:
    for path, content in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    return SmallTask(root=root)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where submissions are made and graded, everything of it below one folder."""

    root: Path
    tools: Tools
    task: SmallTask

    @property
    def work(self) -> Path:
        return self.root / "work"

    def lab(self, sandbox: Sandbox | None = None, *, jobs: int = 2) -> FileLab:
        self.work.mkdir(exist_ok=True)
        return FileLab(
            sandbox=sandbox if sandbox is not None else Bwrap(),
            toolchain=Python(),
            tools=self.tools,
            work=self.work,
            deny_read=(self.task.root,),
            jobs=jobs,
        )

    def reference(self, task: Task) -> Submission:
        return self.control(task, "reference")

    def control(self, task: Task, name: str) -> Submission:
        return make_control(task, name, self._folder(name))

    def submit(
        self, task: Task, files: Mapping[str, str | bytes], *, gone: Iterable[str] = ()
    ) -> Submission:
        """Return the starter with some files changed, added or deleted."""
        project = self._folder("project")
        copy_tree(task.starter, read_manifest(task.starter), project)
        for path in gone:
            (project / path).unlink()
        for path, content in files.items():
            file = project / os.fsdecode(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_submission(project)

    def _folder(self, name: str) -> Path:
        return self.root / f"{name}-{sum(1 for _ in self.root.iterdir())}"

    def grade(
        self, task: Task, submission: Submission, sandbox: Sandbox | None = None, *, jobs: int = 2
    ) -> Grading:
        """Grade, and see to it that nothing is left over."""
        grading = grade(task, submission, self.lab(sandbox, jobs=jobs))
        assert list(self.work.iterdir()) == []
        return grading

    def check(
        self,
        task: Task,
        files: Mapping[str, str | bytes],
        check: str,
        sandbox: Sandbox | None = None,
    ) -> CheckRow:
        """Run one check alone, which a build that fails would have kept from running."""
        with self._session(task, files, sandbox) as session:
            return session.run_check(next(row for row in task.checks if row.id == check))

    def step(self, task: Task, files: Mapping[str, str | bytes], name: str) -> StepRow:
        """Run one step alone."""
        with self._session(task, files, None) as session:
            steps = session.lab.toolchain.steps(task, session.copy, session.lab.tools)
            return session.run_step(next(step for step in steps if step.name == name))

    @contextmanager
    def _session(
        self, task: Task, files: Mapping[str, str | bytes], sandbox: Sandbox | None
    ) -> Iterator[Session]:
        submission = self.submit(task, files)
        lab = self.lab(sandbox)
        with scratch(lab.work, "alone") as root:
            yield Session(task, make_copy(task, submission, root), lab, Stopwatch(), None)


def outcomes(grading: Grading) -> dict[str, str]:
    """Return the status of every step and check by its name."""
    steps = {step.name: step.status for step in grading.steps}
    return steps | {row.check: row.status for row in grading.rows}


def facts(grading: Grading) -> list[tuple[object, ...]]:
    """Return of a grading what does not depend on when and where it was made."""
    steps = [(step.name, step.status, step.cause) for step in grading.steps]
    rows = [(row.check, row.status, row.cause, row.verdicts, row.answered) for row in grading.rows]
    return [*steps, *rows]
