"""The agents' command lines and the sandbox runtime: where each is, and whether it is usable.

They are looked for in the folder that `pytest-evalarc tools install` fills, then on PATH. What is
found is always the program itself: the scripts that npm puts in front of it need a Node on PATH,
and read what a trial may not.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pytest_evalarc.errors import DocumentError, SetupError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.isolation.ask import ask
from pytest_evalarc.isolation.host import Program

FOLDER_VARIABLE = "PYTEST_EVALARC_TOOLS"
"""Names the folder to install into and to find tools in, in place of the default."""

INSTALL = "pytest-evalarc tools install"

MINIMUM = {"claude": "2.1.197", "codex": "0.171.0", "srt": "0.0.78"}
"""The first version of each that is known to do what is asked of it; formats change between."""

PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "srt": "@anthropic-ai/sandbox-runtime",
}
"""The npm package of each."""

_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One program that is installed."""

    name: str
    """`claude`, `codex` or `srt`."""
    path: Path
    """The program itself, links resolved; of srt, the script that Node runs."""
    version: str
    """Three numbers, as `2.1.332`."""
    root: Path
    """What has to be copied for it to run elsewhere: its folder, or the program alone."""

    @property
    def sha256(self) -> str:
        """Digest of the program file, which is read once in a process."""
        return Program(path=self.path, version=self.version).sha256

    @property
    def is_too_old(self) -> bool:
        """Whether it is below the first version that is known to work."""
        return _numbers(self.version) < _numbers(MINIMUM[self.name])


def tools_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that tools are installed into and found in; it need not be there.

    It belongs to a virtual environment where this Python is one, so that what evaluates and what
    is evaluated are set up and removed together.
    """
    if named := environ.get(FOLDER_VARIABLE):
        return Path(os.path.abspath(named))  # noqa: PTH100 - links stay as named.
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix, "share", "pytest-evalarc", "tools")
    data = environ.get("XDG_DATA_HOME") or Path("~", ".local", "share").expanduser()
    return Path(data, "pytest-evalarc", "tools")


def find(name: str, environ: Mapping[str, str] = os.environ) -> Tool | None:
    """Return a tool as it is installed, whatever its version; None when it is not.

    Args:
        name: `claude`, `codex` or `srt`.
        environ: Leads to the folder of tools and to PATH.
    """
    found = in_folder(name, tools_folder(environ))
    return found if found is not None else _on_path(name, environ.get("PATH", os.defpath))


def missing(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return that a tool is not there, or too old, with what to do; None when it is usable."""
    tool = find(name, environ)
    if tool is None:
        where = tools_folder(environ)
        return f"{name} is neither in {where} nor a program on PATH; run `{INSTALL}`"
    if tool.is_too_old:
        needed = MINIMUM[name]
        problem = f"{name} {tool.version} in {tool.path.parent} is older than {needed}"
        return f"{problem}; run `{INSTALL}`, or update it"
    return None


def require(name: str, environ: Mapping[str, str] = os.environ) -> Tool:
    """Return a tool that is usable.

    Raises:
        SetupError: It is not there, or too old.
    """
    tool, problem = find(name, environ), missing(name, environ)
    if tool is None or problem is not None:
        raise SetupError(f"program {name}", *str(problem).split("; ", 1))
    return tool


def in_folder(name: str, folder: Path) -> Tool | None:
    """Return a tool of a folder that npm has installed packages into."""
    return _in_modules(name, folder / "node_modules")


def at(name: str, program: Path) -> Tool | None:
    """Return the tool that a program of the host is, or that its npm package holds.

    Args:
        name: `claude`, `codex` or `srt`.
        program: An executable file, or a link to one.

    Returns:
        The tool, whatever its version; None for a script that belongs to no such package, and
        for a program that does not tell a version.
    """
    program = Path(os.path.realpath(program))
    if (packaged := _beside(name, program)) is not None:
        return packaged
    if name == "srt" or not _is_native(program):
        return None
    status = program.stat()
    version = _told_version(program, status.st_ino, status.st_mtime_ns)
    return None if version is None else Tool(name=name, path=program, version=version, root=program)


def _in_modules(name: str, modules: Path) -> Tool | None:
    for program in _PLACES[name](modules):
        if program.is_file():
            package = _package_of(program, modules)
            if (version := _version_in(package)) is not None:
                path, root = program.resolve(), package.resolve()
                return Tool(name=name, path=path, version=version, root=root)
    return None


def _claude_places(modules: Path) -> Iterator[Path]:
    scope = modules / "@anthropic-ai"
    # A package of the other C library is installed on a machine that has that one.
    yield from (scope / f"claude-code-{it}" / "claude" for it in (_PLATFORM, f"{_PLATFORM}-musl"))


def _codex_places(modules: Path) -> Iterator[Path]:
    vendor = modules / "@openai" / f"codex-{_PLATFORM}" / "vendor"
    yield from sorted(vendor.glob("*/bin/codex"))


def _srt_places(modules: Path) -> Iterator[Path]:
    yield modules / PACKAGES["srt"] / "dist" / "cli.js"


_PLACES: Mapping[str, Callable[[Path], Iterator[Path]]] = {
    "claude": _claude_places,
    "codex": _codex_places,
    "srt": _srt_places,
}


def _platform() -> str:
    """Return this platform as npm's packages are called after it."""
    machine = platform.machine().lower()
    names = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}
    return f"{sys.platform}-{names.get(machine, machine)}"


_PLATFORM = _platform()


def _package_of(program: Path, modules: Path) -> Path:
    """Return the folder `@scope/name` that a program lies in."""
    scope, name, *_ = program.relative_to(modules).parts
    return modules / scope / name


def _version_in(package: Path) -> str | None:
    """Return the version that a package says it has, without the platform behind it."""
    where = str(package / "package.json")
    try:
        document = loads((package / "package.json").read_bytes(), where=where)
    except (OSError, DocumentError):
        return None
    said = document.get("version") if isinstance(document, dict) else None
    found = _VERSION.match(said) if isinstance(said, str) else None
    return found[0] if found else None


def _on_path(name: str, path: str) -> Tool | None:
    found = shutil.which(name, path=path)
    return None if found is None else at(name, Path(found))


def _beside(name: str, program: Path) -> Tool | None:
    """Return the tool of the npm packages that a program on PATH belongs to."""
    if "node_modules" not in program.parts:
        return None
    for folder in program.parents:
        if folder.name == "node_modules":
            found = _in_modules(name, folder)
        else:
            # A package that is installed for the whole machine may hold packages of its own.
            found = in_folder(name, folder)
        if found is not None or "node_modules" not in folder.parts[:-1]:
            return found
    return None


def _is_native(program: Path) -> bool:
    """Whether a program runs by itself, not by an interpreter that it names."""
    with program.open("rb") as file:
        return file.read(2) != b"#!"


@lru_cache
def _told_version(program: Path, _inode: int, _mtime_ns: int) -> str | None:
    """Return the version that a program tells; asked once, unless it has been replaced."""
    told = _VERSION.search(ask(str(program), "--version") or "")
    return told[0] if told else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
