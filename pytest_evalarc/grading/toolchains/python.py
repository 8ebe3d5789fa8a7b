"""Python: an interpreter of the host's, with pytest and ruff of its own, never the harness's."""

from __future__ import annotations

import compileall
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading import sandboxed
from pytest_evalarc.grading.judges import Judges, python_judges
from pytest_evalarc.grading.scripted import FOLDER, script_grader, stage_scripts
from pytest_evalarc.grading.submission import GradingCopy, is_editable
from pytest_evalarc.grading.toolchain import Graders, Interpreter, Step, Tools
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.model.task import Check, Task

SCRIPTS = Path(sandboxed.__file__).parent
FORMATTER_SETTINGS = (".ruff.toml", "ruff.toml", "pyproject.toml")
"""Ruff takes the first of these."""


class Python:
    """Byte-compiles and imports, runs the submission's tests, each hidden check, and ruff."""

    name = "python"
    fmt_step = "fmt_check"

    def missing(self) -> str | None:
        """Return what is not installed of pytest and ruff; None when both are there."""
        for name in ("pytest", "ruff"):
            try:
                distribution(name)
            except PackageNotFoundError:
                return f"the package {name} is not installed; pip install {name}"
        return None

    @property
    def version(self) -> str:
        """The implementation and its version."""
        return f"{platform.python_implementation()} {platform.python_version()}"

    def stage(self, folder: Path) -> None:
        """Make a virtual environment of the base interpreter with pytest and ruff in it."""
        site = _site(folder)
        site.mkdir(parents=True)
        for found in _with_requirements("pytest"):
            _copy_distribution(found, site)
        _make_environment(folder)
        stage_scripts(folder, *SCRIPTS.glob("*.*"))
        # Every check would compile anew what has no compiled form, for nobody may write there.
        for sources in (site, folder / FOLDER):
            compileall.compile_dir(sources, quiet=2)

    def tools(self, folder: Path) -> Tools:
        """Return the staged environment."""
        return Tools(
            root=folder,
            bins=(folder / "bin",),
            reads=(python_home(),),
            env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"},
            judges=Judges(
                staged=(_site(folder), folder / "bin" / "ruff", folder / FOLDER),
                host=python_judges(),
            ),
        )

    def interpreter(self, staged: Callable[[], Path]) -> Interpreter:  # noqa: ARG002
        """Return the bare interpreter of the host; a candidate gets no package beside it."""
        return Interpreter(
            word=self.name,
            program=base_python(),
            version=self.version,
            reads=(python_home(),),
            judges=Judges(host=python_judges()),
        )

    def steps(self, task: Task, copy: GradingCopy, tools: Tools) -> Sequence[Step]:
        """Return build, own tests and, when the task asks for it, the format check."""
        sources = [path for path in _sources(copy) if is_editable(path, task.editable)]
        build = script_grader(
            tools,
            "run_build.py",
            project=str(copy.project),
            roots=_folders(copy),
            sources=list(sources),
            modules=_modules(sources, _roots(copy)),
        )
        steps = [
            Step(name="build", graders=(build,), stops=True),
            Step(name="unit_tests", graders=self._own_tests(copy, tools)),
        ]
        if task.fmt_check:
            formatter = self._formatter(task, copy, tools, sources)
            steps.append(Step(name=self.fmt_step, graders=formatter, after_checks=True))
        return steps

    def _own_tests(self, copy: GradingCopy, tools: Tools) -> Graders:
        if not any(_is_test(path) for path in _sources(copy)):
            return ()
        grader = script_grader(
            tools,
            "run_unit_tests.py",
            site=str(_site(tools.root)),
            project=str(copy.project),
            roots=list(_roots(copy)),
            fixtures=str(copy.fixtures),
        )
        return (grader,)

    def _formatter(
        self, task: Task, copy: GradingCopy, tools: Tools, sources: Sequence[str]
    ) -> Graders:
        """Return ruff over the editable files, by the starter's settings and no others."""
        if not sources:
            return ()
        settings = next(
            (task.starter / name for name in FORMATTER_SETTINGS if (task.starter / name).is_file()),
            None,
        )
        ruff = str(tools.root / "bin" / "ruff")
        chosen = ["--isolated"] if settings is None else ["--config", str(settings)]
        grader = script_grader(
            tools,
            "run_format.py",
            project=str(copy.project),
            command=[ruff, "format", "--check", "--no-cache", *chosen],
            sources=list(sources),
        )
        # The agent has seen the starter, and the copy's settings may have been its own to edit.
        return (grader if settings is None else replace(grader, reads=(task.starter,)),)

    def check(self, task: Task, check: Check, copy: GradingCopy, tools: Tools) -> Graders:
        """Return a fresh interpreter that runs the one test of a hidden check."""
        grader = script_grader(
            tools,
            "run_check.py",
            check=check.id,
            # Byte for byte, since a file may name an encoding of its own.
            source=(task.root / str(check.file)).read_bytes().decode("latin-1"),
            site=str(_site(tools.root)),
            roots=_folders(copy),
        )
        return (grader,)


def _site(folder: Path) -> Path:
    return folder / "lib" / f"python{_minor()}" / "site-packages"


def _minor() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _sources(copy: GradingCopy) -> tuple[str, ...]:
    return tuple(entry.path for entry in copy.manifest.files if entry.path.endswith(".py"))


def _is_test(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.startswith("test_") or name.endswith("_test.py")


def _is_importable(path: str) -> bool:
    """Whether importing a file is part of building: no test, no script, an importable name."""
    parts = PurePosixPath(path).with_suffix("").parts
    is_test = _is_test(path) or "tests" in parts[:-1] or parts[-1] in ("conftest", "setup")
    return not is_test and parts[-1] != "__main__" and all(part.isidentifier() for part in parts)


def _roots(copy: GradingCopy) -> tuple[str, ...]:
    """Return the folders, relative to the project, that modules are imported from."""
    paths = copy.manifest.by_path
    has_layout = "src" in paths and "src/__init__.py" not in paths
    return ("src", ".") if has_layout else (".",)


def _folders(copy: GradingCopy) -> list[str]:
    return [str(copy.project / root) for root in _roots(copy)]


def _modules(sources: Sequence[str], roots: Sequence[str]) -> list[str]:
    """Return the names of the importable sources, each below the first root that holds it."""
    inner = tuple(f"{root}/" for root in roots if root != ".")
    names = []
    for source in sources:
        path = next((source.removeprefix(at) for at in inner if source.startswith(at)), source)
        if _is_importable(path):
            names.append(_module(path))
    return names


def _module(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _with_requirements(name: str) -> Iterator[Distribution]:
    """Yield an installed distribution and everything it needs here."""
    from packaging.requirements import Requirement

    waiting, seen = [name], set()
    while waiting:
        wanted = waiting.pop().lower().replace("_", "-")
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found = distribution(wanted)
        except PackageNotFoundError as error:
            raise SetupError(
                "toolchain python", f"{wanted} is not installed", f"pip install {wanted}"
            ) from error
        yield found
        for line in found.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)


def _copy_distribution(found: Distribution, site: Path) -> None:
    """Copy a distribution's modules with their compiled forms; scripts are made anew."""
    for file in found.files or ():
        if file.is_absolute() or ".." in file.parts:
            continue
        source = Path(str(file.locate()))
        if source.is_file():
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            # The time goes along, or the compiled form would count as stale.
            shutil.copy2(source, target)


def _make_environment(folder: Path) -> None:
    bins = folder / "bin"
    bins.mkdir()
    for name in ("python", "python3", f"python{_minor()}"):
        (bins / name).symlink_to(base_python())
    write_tree(
        folder,
        {
            "pyvenv.cfg": f"home = {base_python().parent}\n"
            "include-system-site-packages = false\n"
            f"version = {platform.python_version()}\n".encode(),
            "bin/pytest": f"#!{bins / 'python3'}\n"
            "import sys\n\nfrom pytest import console_main\n\n"
            "sys.exit(console_main())\n".encode(),
        },
    )
    (bins / "pytest").chmod(0o755)
    shutil.copy2(_ruff(), bins / "ruff")


def _ruff() -> Path:
    """Return the ruff program of the installed distribution."""
    candidates: Iterable[Path] = (
        Path(str(file.locate())) for file in distribution("ruff").files or () if file.stem == "ruff"
    )
    for path in candidates:
        if path.is_file() and path.parent.name in ("bin", "Scripts"):
            return path.resolve()
    raise SetupError(
        "toolchain python",
        "the package ruff holds no program",
        "pip install --force-reinstall ruff",
    )
