"""A language of one's own: programs for the POSIX shell, and checks that are written as data."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_evalarc.errors import SetupError
from pytest_evalarc.grading.scripted import script_grader, script_tools, stage_scripts
from pytest_evalarc.grading.submission import GradingCopy
from pytest_evalarc.grading.toolchain import Graders, Interpreter, Step, Toolchain, Tools
from pytest_evalarc.model.task import Check, Task

RUNNER = Path(__file__).with_name("run_commands.py")


class PosixShell:
    """Parses every script, and runs one command for each hidden check."""

    name = "posix-shell"
    fmt_step = "fmt_check"
    version = "POSIX sh"

    def missing(self) -> str | None:
        """Return what this machine lacks; a task in this language is then skipped."""
        return None if shutil.which("sh", path="/usr/bin:/bin") else "there is no sh"

    def stage(self, folder: Path) -> None:
        """Put the script that grades into the folder of the batch."""
        stage_scripts(folder, RUNNER)

    def tools(self, folder: Path) -> Tools:
        """Return how to use the folder; verdicts rest on sh too, so the cache must know it."""
        return script_tools(folder, "sh")

    def interpreter(self, staged: Callable[[], Path]) -> Interpreter:  # noqa: ARG002
        """Refuse: no pack has candidates in this language."""
        raise SetupError("toolchain posix-shell", "runs no candidate of a pack")

    def steps(self, task: Task, copy: GradingCopy, tools: Tools) -> Sequence[Step]:  # noqa: ARG002
        """Return the steps beside the hidden checks; without a build nothing else is tried."""
        scripts = [file.path for file in copy.manifest.files if file.path.endswith(".sh")]
        parse = [{"argv": ["sh", "-n", path], "status": 0} for path in scripts]
        build = script_grader(tools, RUNNER.name, project=str(copy.project), commands=parse)
        return [Step(name="build", graders=(build,), stops=True)]

    def check(self, task: Task, check: Check, copy: GradingCopy, tools: Tools) -> Graders:
        """Return the process that runs a check's command and compares what came of it."""
        wanted = tomllib.loads((task.root / str(check.file)).read_text("utf-8"))
        project = str(copy.project)
        return (script_grader(tools, RUNNER.name, project=project, commands=[wanted]),)


def pytest_evalarc_toolchains() -> Mapping[str, Callable[[], Toolchain]]:
    """Offer the language under the word that task.toml uses."""
    return {"posix-shell": PosixShell}
