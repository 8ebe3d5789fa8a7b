"""A small task for Node, and a bench to run single steps and checks of what tests submit to it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.grading.grade import Session, grade
from pytest_evalarc.grading.lab import FileLab, Stopwatch, scratch
from pytest_evalarc.grading.submission import make_control, make_copy, read_submission
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.model.grading import CheckRow, Grading, StepRow
from pytest_evalarc.model.task import Task
from pytest_evalarc.tasks.load import load_task
from tests.grading.node_attacks import WRONG

RIGHT = "export const value = () => 42;\nexport const rows = () => [1, 2, 3];\n"
CORE = "src/core.mjs"

TASK = """\
kind = "capability"
prompt = "Make the numbers right."
toolchain = "node"
editable = ["src", "test"]
fixtures = [{fixtures}]
fmt_check = true

[deadlines]
grading = 60
check = {check}
"""

IN_PROCESS = """\
import assert from "node:assert/strict";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";
import { rows, value } from "../src/core.mjs";

test("value", () => {
  ASSERTIONS;
});
"""

CHILD_FORM = """\
import assert from "node:assert/strict";
import test from "node:test";
import { isDeepStrictEqual } from "node:util";

const value = () => submission.call("src/core.mjs:value");
const rows = () => submission.call("src/core.mjs:rows");

test("value", () => {
  ASSERTIONS;
});
"""

STRICT = "assert.equal(value(), 42);\n  assert.deepEqual(rows(), [1, 2, 3])"


def forms(assertions: str) -> dict[str, str]:
    """Return a check that asserts so, in either form."""
    return {
        "in process": IN_PROCESS.replace("ASSERTIONS", assertions),
        "as a child": CHILD_FORM.replace("ASSERTIONS", assertions),
    }


@dataclass(frozen=True, kw_only=True)
class NodeBench:
    """A project with one task, and where its submissions are graded."""

    root: Path
    tools: Tools

    @property
    def folder(self) -> Path:
        return self.root / "project" / "evals" / "tasks" / "small"

    def write(self, path: str, content: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")

    def task(self, check: str = "", *, deadline: float = 20, fixtures: str = "") -> Task:
        """Return the task with one hidden check."""
        self.write("task.toml", TASK.format(check=deadline, fixtures=fixtures))
        self.write("starter/package.json", '{ "type": "module" }\n')
        self.write(f"starter/{CORE}", WRONG)
        self.write(f"solution/{CORE}", RIGHT)
        self.write("checks/only.test.mjs", check or IN_PROCESS.replace("ASSERTIONS", STRICT))
        return load_task(self.folder, root=self.root / "project", toolchains=["node"])

    def lab(self) -> FileLab:
        return FileLab(
            sandbox=Bwrap(),
            toolchain=Node(),
            tools=self.tools,
            work=self.root / "work",
            deny_read=(self.root / "project",),
            jobs=1,
        )

    def control(self, task: Task, name: str) -> Grading:
        return grade(task, make_control(task, name, self.root / name), self.lab())

    def check(self, task: Task, core: str) -> CheckRow:
        """Run the hidden check alone."""
        return self._run(task, {CORE: core}, None)  # type: ignore[return-value]

    def step(self, task: Task, name: str, files: Mapping[str, str]) -> StepRow:
        """Run one step alone."""
        return self._run(task, files, name)  # type: ignore[return-value]

    def _run(self, task: Task, files: Mapping[str, str], step: str | None) -> CheckRow | StepRow:
        project = self.root / "submitted"
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(task.starter, project)
        for path, content in files.items():
            file = project / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")
        lab = self.lab()
        with scratch(lab.work, "alone") as root:
            copy = make_copy(task, read_submission(project), root)
            session = Session(task, copy, lab, Stopwatch(), None)
            if step is None:
                return session.run_check(task.checks[0])
            steps = lab.toolchain.steps(task, copy, lab.tools)
            return session.run_step(next(found for found in steps if found.name == step))
