"""Rules of the house that no other tool holds: each one names what breaks when it is broken."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

import pytest_evalarc
from tests.needs import needs

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pytest_evalarc"

STARTS_PROCESSES = (
    "subprocess",
    "multiprocessing",
    "pty",
    "concurrent.futures.ProcessPoolExecutor",
    "concurrent.futures.process",
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "asyncio.subprocess",
    "os.exec*",
    "os.fork*",
    "os.popen",
    "os.posix_spawn*",
    "os.spawn*",
    "os.startfile",
    "os.system",
)
"""Dotted names; `*` stands for any ending."""

RUNS_INSIDE_THE_SANDBOX = ("grading/**/sandboxed/*", "grading/sandboxed/*", "cli/scaffolds/*")
"""Check runners, and checks of tasks to begin with: they are copied into the sandbox and started
there, never imported by us."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def is_below(path: Path, *patterns: str) -> bool:
    return any(fnmatch(path.relative_to(PACKAGE).as_posix(), pattern) for pattern in patterns)


def names_used(source: str, *, typing_only: bool = True) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of all that a module imports, and of what it uses of that."""
    tree = ast.parse(source)
    left_out = set() if typing_only else _under_type_checking(tree)
    nodes = [node for node in ast.walk(tree) if node not in left_out]
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for local, dotted in _imported(node):
                known[local] = dotted
                yield node.lineno, dotted
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in known:
                yield node.lineno, f"{known[first]}.{rest}"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield (local name, dotted name) for each name that an import binds."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            # `import a.b` binds `a`, and `a.b.c` is then reached through it.
            yield alias.asname or alias.name, alias.name
            if not alias.asname:
                yield alias.name.partition(".")[0], alias.name.partition(".")[0]
    else:
        # A relative import names one of ours; which one does not matter to any rule here.
        source = f"pytest_evalarc.{node.module or ''}".rstrip(".") if node.level else node.module
        for alias in node.names:
            yield alias.asname or alias.name, f"{source}.{alias.name}"


def _under_type_checking(tree: ast.Module) -> set[ast.AST]:
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }


def matching(used: Iterable[tuple[int, str]], patterns: Iterable[str]) -> list[tuple[int, str]]:
    """Return the uses of anything that a pattern names, or that lies below it."""
    wanted = [glob for pattern in patterns for glob in (pattern, f"{pattern}.*")]
    return [(line, name) for line, name in used if any(fnmatch(name, glob) for glob in wanted)]


def uses(patterns: Iterable[str], *, but: tuple[str, ...]) -> list[str]:
    """Return `file:line name` for each use in the package, outside of some of its files."""
    return [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in modules()
        if not is_below(path, *but)
        for line, name in matching(names_in(path), patterns)
    ]


@cache
def names_in(path: Path) -> tuple[tuple[int, str], ...]:
    """Return what `names_used` yields of a module; several rules ask."""
    return tuple(names_used(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "import subprocess as sp",
        "from subprocess import run",
        "def later():\n    from subprocess import Popen",
        "import os\nos.fork()",
        "import os as o\no.execvpe('a', [], {})",
        "from os import posix_spawn as start",
        "import os.path\nos.system('a')",
        "import asyncio\nasyncio.create_subprocess_exec('a')",
        "from concurrent import futures\nfutures.ProcessPoolExecutor()",
        "import multiprocessing.pool",
        "if TYPE_CHECKING:\n    import subprocess",
    ],
)
def test_every_way_to_start_a_process_is_seen(source: str) -> None:
    """A scan that misses a spelling would let the rule below rot in silence."""
    assert matching(names_used(source), STARTS_PROCESSES)


@pytest.mark.parametrize(
    "source",
    ["import os\nos.kill(1, 9)", "import ossaudiodev", "subprocess_s = 1", "a.subprocess.run()"],
)
def test_what_starts_no_process_is_left_alone(source: str) -> None:
    """A rule that cries wolf is soon switched off."""
    assert not matching(names_used(source), STARTS_PROCESSES)


def test_processes_start_in_isolation_alone() -> None:
    """Deadlines, limits and sweeping hold only for what the one supervisor started."""
    but = ("isolation/*", "clients/embedded/player.py", *RUNS_INSIDE_THE_SANDBOX)

    assert uses(STARTS_PROCESSES, but=but) == []


def test_pytest_is_imported_in_the_plugin_alone() -> None:
    """All else must work from the command line, where no pytest session runs."""
    assert uses(["pytest", "_pytest"], but=("plugin/*", *RUNS_INSIDE_THE_SANDBOX)) == []


def test_hookspecs_import_the_standard_library_alone() -> None:
    """A third party's conftest imports them, and must not pay for our schemas."""
    source = (PACKAGE / "hookspecs.py").read_text("utf-8")

    imported = {name.partition(".")[0] for _, name in names_used(source, typing_only=False)}

    assert imported - sys.stdlib_module_names == set()


def test_typing_only_imports_can_be_told_from_real_ones() -> None:
    """The rule on hookspecs allows the former, so mixing them up would hollow it out."""
    source = (
        "import pluggy\n"
        "if TYPE_CHECKING:\n    import pydantic\nelse:\n    import jinja2\n"
        "def later():\n    from . import model\n"
    )

    found = {name for _, name in names_used(source, typing_only=False)}

    assert found == {"pluggy", "jinja2", "pytest_evalarc.model"}


def test_imports_point_down() -> None:
    """The floors are only a plan until something refuses an import that points up."""
    program = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run(
        [program, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_floor_stands_in_the_import_contract() -> None:
    """A folder that the contract does not name may import anything, and nobody is told."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    named = {name.strip() for layer in layers for name in layer.split("|")}

    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    found |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "hookspecs"}

    assert found == named


def test_plugin_entry_pulls_in_no_floor_and_no_schema() -> None:
    """Every pytest run of a machine pays for this import, also where nothing is evaluated."""
    code = "import json, sys, pytest_evalarc.plugin.entry; print(json.dumps(list(sys.modules)))"

    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )

    loaded = set(json.loads(done.stdout))
    ours = {name for name in loaded if name.startswith("pytest_evalarc.")}
    light = ("pytest_evalarc.plugin", "pytest_evalarc.plugin.*", "pytest_evalarc.hookspecs")
    heavy = {"pydantic", "jinja2", "psutil", "filelock", "xdist", "pytest_timeout"}
    assert {name for name in ours if not any(fnmatch(name, glob) for glob in light)} == set()
    assert loaded & heavy == set()


def test_every_module_says_what_it_holds() -> None:
    """A reader chooses a file by its first line."""
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]

    assert silent == []


def test_every_floor_says_what_lives_there_and_what_never_does() -> None:
    """In three lines: whoever adds something finds its place without reading the floor."""
    floors = sorted(path for path in PACKAGE.glob("*/__init__.py"))

    told = {
        path.parent.name: (ast.get_docstring(ast.parse(path.read_text())) or "") for path in floors
    }

    assert len(told) == 14
    for floor, docstring in told.items():
        what, _, here, never = docstring.splitlines()
        assert what.endswith("."), floor
        assert here.startswith(("Here live ", "Here lives ")), floor
        assert never.startswith("Here never: "), floor


def test_every_data_file_ships() -> None:
    """A file beside the code works in a checkout and is missing from a wheel unless declared."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    declared = settings["tool"]["setuptools"]["package-data"]
    shipped = {
        path
        for package, patterns in declared.items()
        for folder in _packages(package)
        for pattern in patterns
        for path in folder.glob(pattern)
    }

    data = {path for path in PACKAGE.rglob("*") if _is_data(path)}

    assert PACKAGE / "py.typed" in data
    assert sorted(data - shipped) == []


def _packages(name: str) -> list[Path]:
    if name != "*":
        return [ROOT.joinpath(*name.split("."))]
    return [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())]


def _is_data(path: Path) -> bool:
    return path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts


def test_the_version_is_told_once() -> None:
    """Results name the version of the grader, so the package and its metadata must agree."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    assert settings["project"]["dynamic"] == ["version"]
    told = settings["tool"]["setuptools"]["dynamic"]["version"]
    assert told == {"attr": "pytest_evalarc.__version__"}
    assert importlib.metadata.version("pytest-evalarc") == pytest_evalarc.__version__


def tracked_texts() -> Iterator[tuple[Path, str]]:
    """Yield path and text of every file that is, or would next be, under version control."""
    # A checkout may belong to another user than the one who runs its tests, as in containers.
    git = ["git", "-c", f"safe.directory={ROOT}"]
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in listed.split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            yield path, path.read_text("utf-8", errors="replace")


STANDARD_FOLDERS = re.compile(
    "bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var"
    "|Applications|Library|System|Users|Volumes|private"
)


def machine_paths(checkout: Path, environment: Path) -> list[str]:
    """Return paths that only the machine at hand has: the checkout's and the interpreter's."""
    own = [str(checkout)]
    top = checkout.parts[1]
    if not STANDARD_FOLDERS.fullmatch(top):
        own.append(f"/{top}")
    if environment != Path(sys.base_prefix) and not environment.is_relative_to(checkout):
        own.append(str(environment))
    return own


def mentions(text: str, paths: Iterable[str]) -> list[str]:
    """Return the lines of a text that name one of the absolute paths, or anything below it."""
    either = "|".join(re.escape(path) for path in paths)
    pattern = re.compile(rf"(?<![\w.>)}}/-])(?:{either})(?![\w.-])")
    return [line for line in text.splitlines() if pattern.search(line)]


def test_a_path_of_a_machine_is_told_from_a_path_of_a_trial() -> None:
    """The rule below must fire on the former and let the latter be documented."""
    paths = machine_paths(Path("/build/evalarc"), Path("/tmp/env"))

    assert paths == ["/build/evalarc", "/build", "/tmp/env"]
    assert mentions("cd /build/other\n'/tmp/env/bin/python'\n=/build", paths) == [
        "cd /build/other",
        "'/tmp/env/bin/python'",
        "=/build",
    ]
    assert mentions("<run>/build\na/build\n/builder\n/tmp/envelope\n/tmp", paths) == []
    assert machine_paths(Path("/home/a/b"), Path("/home/a/b/.venv")) == ["/home/a/b"]


@needs("git")
def test_no_file_names_a_path_of_this_machine() -> None:
    """What works on one machine alone must not be published as if it worked everywhere."""
    paths = machine_paths(ROOT, Path(sys.prefix))

    found = {
        str(path.relative_to(ROOT)): lines
        for path, text in tracked_texts()
        if (lines := mentions(text, paths))
    }

    assert found == {}


def set_up_lines(text: str) -> list[str]:
    """Return the lines that set up an environment and then do something in it."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line.startswith("python3 -m venv .venv && ")]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """What a reader pastes is what is known to work, because CI pastes it too."""
    main_job, tests = set_up_lines((ROOT / "README.md").read_text("utf-8"))
    script = (ROOT / ".ci" / "run").read_text("utf-8")

    assert set_up_lines(script) == [tests]
    assert main_job.partition(" && .venv/bin/pytest ")[2] in script


@pytest.mark.parametrize("failing", ["python3", "pip", "pytest-evalarc", "nox", "pytest", None])
def test_ci_fails_when_any_of_its_commands_fails(tmp_path: Path, failing: str | None) -> None:
    """Bash goes on after an early failure in an `&&` list, and a green CI would be a lie."""
    checkout = _checkout_with_stubs(tmp_path, failing=failing)

    done = subprocess.run(
        [checkout / ".ci" / "run"],
        cwd="/",
        env={"PATH": f"{checkout}/stubs:{os.defpath}"},
        capture_output=True,
        text=True,
        check=False,
    )

    calls = done.stdout.split("\n")
    assert (done.returncode == 0) == (failing is None), done.stderr
    if failing is None:
        assert calls[:3] == ["python3", "pip", "pytest-evalarc"]
        assert calls[3:6] == ["python3", "pip", "nox"]
        assert calls[-2:] == ["pytest", ""]
        assert '{"newest": true}' in calls


def _checkout_with_stubs(folder: Path, *, failing: str | None) -> Path:
    """Lay out a checkout whose programs only say their name, one of them with a failure."""
    script = folder / ".ci" / "run"
    script.parent.mkdir()
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    installed = (".venv/bin/pip", ".venv/bin/pytest-evalarc", ".venv/bin/nox", ".venv/bin/pytest")
    for program in ("stubs/python3", *installed):
        path = folder / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {path.name}\nexit {int(path.name == failing)}\n")
        path.chmod(0o755)
    script.chmod((ROOT / ".ci" / "run").stat().st_mode)
    for batch in ("20250101T000000Z-zz", "20260101T000000Z-aa"):
        results = folder / "results" / "settings-durability" / "oracle" / batch
        results.mkdir(parents=True)
        newest = json.dumps({"newest": batch.startswith("2026")})
        (results / "benchmark.json").write_text(f"{newest}\n")
    return folder


def test_ci_can_be_started() -> None:
    """A script without its run bit is skipped by what should start it."""
    assert (ROOT / ".ci" / "run").stat().st_mode & stat.S_IXUSR


def test_each_changelog_fragment_says_its_kind() -> None:
    """The release collects fragments by the word before `.md`; an unknown one would be lost."""
    kinds = {"feature", "bugfix", "deprecation", "removal", "doc"}
    fragments = [path for path in (ROOT / "changelog").iterdir() if path.name != "README.md"]

    strays = [path.name for path in fragments if not _is_fragment(path, kinds)]

    assert strays == []


def _is_fragment(path: Path, kinds: set[str]) -> bool:
    words = path.name.split(".")
    return len(words) == 3 and words[1] in kinds and path.read_text("utf-8").strip().endswith(".")


def test_links_between_pages_lead_somewhere() -> None:
    """A page that moved leaves its readers behind without a word."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "changelog").glob("*.md")]

    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]

    assert broken == []


PROGRAMS = """
    from tests.needs import needs

    @needs("sh")
    def test_there():
        assert True

    @needs("no-such-program-anywhere")
    def test_not_there():
        assert True
"""


@pytest.mark.parametrize(
    ("ci", "outcomes"),
    [("true", {"passed": 1, "errors": 1}), ("", {"passed": 1, "skipped": 1})],
)
def test_a_missing_program_is_a_failure_in_ci_and_a_skip_elsewhere(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, outcomes: dict[str, int]
) -> None:
    """A test that never ran in CI protects nothing, and a developer needs not have everything."""
    monkeypatch.setenv("CI", ci)
    pytester.makepyfile(PROGRAMS)

    result = pytester.runpytest_inprocess("-p", "tests.needs", "-rs")

    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(["*no-such-program-anywhere is not on PATH*"])
