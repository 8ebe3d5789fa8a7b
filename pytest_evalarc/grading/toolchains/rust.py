"""Rust: the toolchain that is active on the host, used in place; nothing of it is copied."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.text import printable
from pytest_evalarc.grading import sandboxed
from pytest_evalarc.grading.judges import Judges, python_judges, system_programs
from pytest_evalarc.grading.lab import SYSTEM_PATH
from pytest_evalarc.grading.scripted import FOLDER, script_grader, stage_scripts
from pytest_evalarc.grading.submission import GradingCopy, is_editable
from pytest_evalarc.grading.toolchain import Graders, Interpreter, Step, Tools
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.isolation.host import python_home
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.task import Check, Task
from pytest_evalarc.tasks.rust_source import tests

SCRIPTS = Path(sandboxed.__file__).parent / "rust"
FORMATTER_SETTINGS = (".rustfmt.toml", "rustfmt.toml")
"""Rustfmt takes the first of these."""
PROGRAMS = ("cargo", "rustc", "rustfmt", "cargo-fmt")
COMPILER = tuple(
    f"lib/{place}lib{name}*"
    for place in ("", "*/")
    for name in ("rustc_driver-", "LLVM", "std-", "test-")
)
"""Where the compiler's own libraries lie below the sysroot."""
INSTALL = "apt-get install cargo"

_RECEIPT = """
mod evalarc {
    trait Passed {
        fn unwrapped(self);
    }
    impl Passed for () {
        fn unwrapped(self) {}
    }
    impl<T: Passed, E: std::fmt::Debug> Passed for Result<T, E> {
        fn unwrapped(self) {
            self.unwrap().unwrapped()
        }
    }
    #[test]
    fn NAME() {
        use std::io::{Read, Write};
        let mut key = String::new();
        std::io::stdin().read_to_string(&mut key).unwrap();
        Passed::unwrapped(super::NAME());
        let receipt = format!("\\npassed {key}\\n");
        std::io::stdout().write_all(receipt.as_bytes()).unwrap();
    }
}
"""
"""What a check ends with: the one test, which writes its receipt when the check has returned. It
reads what it needs for that before anything of the submission is called."""


class Found(NamedTuple):
    """A toolchain that can be used."""

    bins: Path
    """Folder of its own programs, not of rustup's that stand for them."""
    sysroot: Path
    version: str


class Rust:
    """Builds with cargo, runs the submission's tests and each hidden check, and rustfmt."""

    name = "rust"
    fmt_step = "cargo_fmt_check"

    def missing(self) -> str | None:
        """Return what this machine lacks of cargo, rustc and a linker; None when nothing."""
        found = _find()
        return found if isinstance(found, str) else None

    @property
    def version(self) -> str:
        """What rustc says of itself."""
        return _toolchain().version

    def stage(self, folder: Path) -> None:
        """Write the scripts that grade, and see that a program can be linked."""
        _link_a_program()
        stage_scripts(folder, *SCRIPTS.glob("[!_]*.py"))

    def tools(self, folder: Path) -> Tools:
        """Return the toolchain, in place."""
        found = _toolchain()
        judges = Judges(staged=(folder / FOLDER,), host=(*_programs(found), *python_judges()))
        return Tools(
            root=folder,
            bins=(found.bins,),
            reads=(found.sysroot, python_home()),
            judges=judges,
        )

    def interpreter(self, staged: Callable[[], Path]) -> Interpreter:  # noqa: ARG002
        """Refuse: what a candidate is started with must not have to be built first."""
        raise SetupError("toolchain rust", "runs no candidate of a pack")

    def steps(self, task: Task, copy: GradingCopy, tools: Tools) -> Sequence[Step]:
        """Return build, the library's own tests and, when the task asks for it, rustfmt."""
        place = _Place(copy.build)
        build = script_grader(
            tools,
            "run_build.py",
            project=str(copy.project),
            fixtures=str(copy.fixtures),
            build=str(copy.build),
            command=str(place.command),
        )
        steps = [
            Step(name="build", graders=(replace(build, writes=(copy.build,)),), stops=True),
            Step(name="cargo_test_lib", graders=_own_tests(copy, tools)),
        ]
        if task.fmt_check:
            formatter = _formatter(task, copy, tools)
            steps.append(Step(name=self.fmt_step, graders=formatter, after_checks=True))
        return steps

    def check(self, task: Task, check: Check, copy: GradingCopy, tools: Tools) -> Graders:
        """Return what compiles the one test of a hidden check, and what then runs it."""
        place = _Place(copy.build)
        harness = _harness((task.root / str(check.file)).read_text("utf-8"))
        folder = place.checks / check.id
        shared = {"command": str(place.command), "program": str(folder / "check")}
        compiling = script_grader(
            tools, "compile_check.py", check=check.id, source=harness.source, **shared
        )
        running = script_grader(
            tools, "run_check.py", test=harness.test, project=str(place.project), **shared
        )
        return (
            replace(compiling, reads=(place.target,), writes=(folder,)),
            replace(running, reads=(place.target, place.crate, folder)),
        )


class _Place(NamedTuple):
    """What lies where below the build folder of a grading copy."""

    build: Path

    @property
    def crate(self) -> Path:
        """The project as it is compiled, and its fixtures."""
        return self.build / "crate"

    @property
    def project(self) -> Path:
        """The project as it is compiled."""
        return self.crate / "project"

    @property
    def target(self) -> Path:
        """Cargo's output."""
        return self.build / "target"

    @property
    def command(self) -> Path:
        """How a hidden check is compiled."""
        return self.target / "command.json"

    @property
    def programs(self) -> Path:
        """Which programs run the own tests."""
        return self.target / "programs.json"

    @property
    def checks(self) -> Path:
        """A folder for each hidden check, with its program alone."""
        return self.build / "checks"


class _Harness(NamedTuple):
    """A hidden check as it is compiled."""

    source: str
    test: str


def _harness(source: str) -> _Harness:
    """Return a check whose test is one of ours, which calls the one it was written with."""
    (test,) = tests(source)
    attribute = test.attribute
    # Lines and columns stay what they are.
    gap = "".join(char if char == "\n" else " " for char in source[attribute.start : attribute.end])
    rest = source[attribute.end :]
    return _Harness(
        source=source[: attribute.start] + gap + rest + _RECEIPT.replace("NAME", str(test.name)),
        test=str(test.name),
    )


def _own_tests(copy: GradingCopy, tools: Tools) -> Graders:
    place = _Place(copy.build)
    compiling = script_grader(
        tools, "compile_unit_tests.py", build=str(copy.build), programs=str(place.programs)
    )
    running = script_grader(
        tools,
        "run_unit_tests.py",
        project=str(place.project),
        fixtures=str(copy.fixtures),
        programs=str(place.programs),
    )
    return (
        replace(compiling, writes=(copy.build,)),
        replace(running, reads=(place.target, place.crate)),
    )


def _formatter(task: Task, copy: GradingCopy, tools: Tools) -> Graders:
    """Return rustfmt over the editable files, by the starter's settings and no others.

    Raises:
        SetupError: The toolchain has no rustfmt.
    """
    sources = [
        entry.path
        for entry in copy.manifest.files
        if entry.path.endswith(".rs") and is_editable(entry.path, task.editable)
    ]
    if not sources:
        return ()
    if not (_toolchain().bins / "rustfmt").exists():
        raise SetupError(
            "toolchain rust",
            "it has no rustfmt, which fmt_check needs",
            "rustup component add rustfmt, or apt-get install rustfmt",
        )
    settings = next(
        (task.starter / name for name in FORMATTER_SETTINGS if (task.starter / name).is_file()),
        None,
    )
    grader = script_grader(
        tools,
        "run_format.py",
        project=str(copy.project),
        settings="" if settings is None else str(settings),
        sources=sources,
    )
    # The agent has seen the starter, and the copy's settings may have been its own to edit.
    return (grader if settings is None else replace(grader, reads=(task.starter,)),)


def _toolchain() -> Found:
    found = _find()
    if isinstance(found, str):
        raise SetupError("toolchain rust", found)
    return found


@lru_cache(maxsize=1)
def _find() -> Found | str:
    """Return the toolchain to use, or what is missing as a sentence."""
    bins = _bins()
    if isinstance(bins, str):
        return bins
    rustc = bins / "rustc"
    if not rustc.exists():
        return f"there is no rustc beside {bins / 'cargo'}; {INSTALL}"
    if shutil.which("cc", path=os.pathsep.join(SYSTEM_PATH)) is None:
        return "no linker `cc` is in /usr/bin or /bin; apt-get install gcc libc6-dev"
    version, sysroot = (_run(rustc, *words) for words in (("--version",), ("--print", "sysroot")))
    if version.status != 0 or sysroot.status != 0:
        return f"{rustc} does not run: {version.said or sysroot.said}"
    return Found(bins, Path(sysroot.said), version.said)


def _bins() -> Path | str:
    """Return the folder of the toolchain's own programs, or what is missing as a sentence."""
    rustup = shutil.which("rustup")
    if rustup is not None:
        found = _run(Path(rustup), "which", "cargo")
        return (
            Path(found.said).parent
            if found.status == 0
            else f"rustup has no cargo: {found.said}; rustup default stable"
        )
    cargo = shutil.which("cargo")
    if cargo is None:
        return f"cargo is not on PATH; {INSTALL}"
    return Path(os.path.realpath(cargo)).parent


def _programs(found: Found) -> tuple[Path, ...]:
    """Return the programs of a toolchain, the compiler's libraries, and what links."""
    own = tuple(path for name in PROGRAMS if (path := found.bins / name).exists())
    # Where the system installs it, its libraries lie among all others.
    compiler = sorted(path for form in COMPILER for path in found.sysroot.glob(form))
    rustlib = found.sysroot / "lib" / "rustlib"
    standard = (rustlib,) if rustlib.exists() else ()
    return (*own, *compiler, *standard, *system_programs("cc", "ld", path=SYSTEM_PATH))


def _link_a_program() -> None:
    """Compile and link the smallest program there is.

    Raises:
        SetupError: It fails, and so would every submission.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "main.rs")
        source.write_text("fn main() {}\n", "ascii")
        done = _run(_toolchain().bins / "rustc", str(source), "--out-dir", folder)
    if done.status != 0:
        raise SetupError(
            "toolchain rust",
            f"it cannot make a program: {done.said}",
            "apt-get install gcc libc6-dev",
        )


class _Done(NamedTuple):
    """A program of the toolchain that has ended."""

    status: int | None
    said: str
    """Its output when it went well, else its complaint; one line."""


def _run(program: Path, *words: str) -> _Done:
    """Run a program of the host's in the harness's own environment."""
    out, complaints = Capture(4000), Capture(1000, 1000)
    command = Command(argv=(str(program), *words), cwd=Path.cwd(), env=dict(os.environ))
    wrapped = Local().wrap(command, Policy())
    status = supervise(wrapped, Watch(total_s=60), stdout=out, stderr=complaints).status
    said = out if status == 0 else complaints
    return _Done(status, " ".join(printable(said.data(), limit=2000).split()))
