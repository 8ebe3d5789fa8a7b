"""A tiny crate as a task, and a bench to run single steps and checks of what tests submit to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.grading.grade import Session, grade
from pytest_evalarc.grading.lab import FileLab, Stopwatch, scratch
from pytest_evalarc.grading.submission import (
    Submission,
    make_control,
    make_copy,
    read_submission,
)
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.grading.toolchains.rust import Rust
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.model.grading import CheckRow, Grading, StepRow
from pytest_evalarc.model.task import Task
from pytest_evalarc.tasks.load import load_task
from tests.grading.rust_attacks import CANARY, WRONG

RIGHT = "pub fn value() -> i32 {\n    42\n}\n"
LIB = "src/lib.rs"

TASK = """\
kind = "capability"
prompt = "Make the number right."
toolchain = "rust"
editable = ["src"]
fixtures = [{fixtures}]
fmt_check = true

[deadlines]
grading = 60
check = {check}

[limits]
tmp_mib = 64
output_mib = 4
"""

MANIFEST = """\
[package]
name = "numbers"
version = "0.1.0"
edition = "2021"
"""

LOCK = """\
version = 3

[[package]]
name = "numbers"
version = "0.1.0"
"""

CHECK = f"""\
use numbers::value;

/// {CANARY}
#[test]
fn value_is_right() {{
    assert_eq!(value(), 42);
}}
"""

CHILD_FORM = """\
use std::process::Command;

#[test]
fn value_is_right() {
    let program = env!("CARGO_BIN_EXE_numbers");
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\\n");
}
"""
MAIN = 'fn main() {\n    println!("{}", numbers::value());\n}\n'
"""A check that asks the program of a crate, and what makes a crate have one."""


@dataclass(frozen=True, kw_only=True)
class RustBench:
    """A project with one task, and where its submissions are graded."""

    root: Path
    tools: Tools

    @property
    def folder(self) -> Path:
        return self.root / "project" / "evals" / "tasks" / "small"

    def write(self, path: str, content: str) -> None:
        _write(self.folder, path, content)

    def task(
        self,
        check: str = CHECK,
        *,
        deadline: float = 30,
        starter: Mapping[str, str] = {},
        gone: Iterable[str] = (),
        fixtures: str = "",
    ) -> Task:
        """Return the task with one hidden check; its starter has further files, or lacks some."""
        self.write("task.toml", TASK.format(check=deadline, fixtures=fixtures))
        files = {"Cargo.toml": MANIFEST, "Cargo.lock": LOCK, LIB: WRONG, **starter}
        for path, content in files.items():
            self.write(f"starter/{path}", content)
        for path in gone:
            (self.folder / "starter" / path).unlink()
        self.write(f"solution/{LIB}", RIGHT)
        self.write("checks/only.rs", check)
        return load_task(self.folder, root=self.root / "project", toolchains=["rust"])

    def lab(self) -> FileLab:
        return FileLab(
            sandbox=Bwrap(),
            toolchain=Rust(),
            tools=self.tools,
            work=self.root / "work",
            deny_read=(self.root / "project",),
            jobs=2,
        )

    def submit(self, task: Task, files: Mapping[str, str]) -> Submission:
        project = self.root / f"submitted-{len(list(self.root.iterdir()))}"
        make_control(task, "starter", project)
        for path, content in files.items():
            _write(project, path, content)
        return read_submission(project)

    def grade(self, task: Task, submission: Submission) -> Grading:
        return grade(task, submission, self.lab())

    def control(self, task: Task, name: str) -> Grading:
        return self.grade(task, make_control(task, name, self.root / name))

    def check(self, task: Task, files: Mapping[str, str]) -> CheckRow:
        """Build, and run the hidden check alone."""
        with self.session(task, files) as session:
            build = self.run_step(session, "build")
            assert build.status == "pass", build.detail
            return session.run_check(task.checks[0])

    def step(self, task: Task, name: str, files: Mapping[str, str]) -> StepRow:
        """Run one step, behind the one that it builds on."""
        with self.session(task, files) as session:
            if name == "cargo_test_lib":
                self.run_step(session, "build")
            return self.run_step(session, name)

    @contextmanager
    def session(self, task: Task, files: Mapping[str, str]) -> Iterator[Session]:
        lab = self.lab()
        with scratch(lab.work, "alone") as root:
            copy = make_copy(task, self.submit(task, files), root)
            yield Session(task, copy, lab, Stopwatch(), None)

    def run_step(self, session: Session, name: str) -> StepRow:
        steps = session.lab.toolchain.steps(session.task, session.copy, session.lab.tools)
        return session.run_step(next(step for step in steps if step.name == name))


def _write(folder: Path, path: str, content: str) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, "utf-8")
