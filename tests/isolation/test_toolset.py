from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation import toolset
from pytest_evalarc.isolation.toolset import (
    FOLDER_VARIABLE,
    MINIMUM,
    PACKAGES,
    Tool,
    find,
    in_folder,
    missing,
    require,
    tools_folder,
)
from tests.needs import needs_claude, needs_codex, needs_srt

PLATFORM = toolset._PLATFORM
PROGRAMS = {
    "claude": f"@anthropic-ai/claude-code-{PLATFORM}/claude",
    "codex": f"@openai/codex-{PLATFORM}/vendor/x86_64-unknown-linux-musl/bin/codex",
    "srt": "@anthropic-ai/sandbox-runtime/dist/cli.js",
}


def package(modules: Path, name: str, version: str, *, program: str | None = None) -> Path:
    """Lay a package as npm does; return its program."""
    path = modules / (program or PROGRAMS[name])
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    scope, folder, *_ = path.relative_to(modules).parts
    (modules / scope / folder / "package.json").write_text(json.dumps({"version": version}))
    return path


def environ(tmp_path: Path, *, path: Path | None = None) -> dict[str, str]:
    return {FOLDER_VARIABLE: str(tmp_path / "tools"), "PATH": str(path or tmp_path / "nowhere")}


@pytest.mark.parametrize("name", list(PACKAGES))
def test_the_program_itself_is_found(tmp_path: Path, name: str) -> None:
    """What npm puts in front of it needs a Node on PATH, which no trial has."""
    program = package(tmp_path / "tools" / "node_modules", name, MINIMUM[name])

    tool = find(name, environ(tmp_path))

    assert tool is not None
    assert (tool.name, tool.path, tool.version) == (name, program, MINIMUM[name])
    assert program.is_relative_to(tool.root)
    assert (tool.root / "package.json").is_file()
    assert missing(name, environ(tmp_path)) is None
    assert require(name, environ(tmp_path)) == tool


def test_a_version_is_told_without_the_platform_behind_it(tmp_path: Path) -> None:
    """Codex's packages carry it in their version, and 0.171.0 is what it is known by."""
    package(tmp_path / "tools" / "node_modules", "codex", f"0.171.0-{PLATFORM}")

    tool = find("codex", environ(tmp_path))

    assert tool is not None
    assert tool.version == "0.171.0"


def test_the_program_of_the_other_c_library_will_do(tmp_path: Path) -> None:
    """Npm installs the one that runs here."""
    program = f"@anthropic-ai/claude-code-{PLATFORM}-musl/claude"
    placed = package(tmp_path / "tools" / "node_modules", "claude", "2.1.332", program=program)

    tool = find("claude", environ(tmp_path))

    assert tool is not None
    assert tool.path == placed


def test_a_package_of_another_platform_is_none(tmp_path: Path) -> None:
    """Its program would not start."""
    package(
        tmp_path / "m", "claude", "2.1.332", program="@anthropic-ai/claude-code-win32-x64/claude"
    )

    assert in_folder("claude", tmp_path) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 7}', '{"version": "new"}'])
def test_a_package_without_a_version_is_none(tmp_path: Path, content: str) -> None:
    """An installation that was cut short must not be taken for a whole one."""
    program = package(tmp_path / "node_modules", "srt", "0.0.83")
    (program.parent.parent / "package.json").write_text(content)

    assert in_folder("srt", tmp_path) is None


@pytest.mark.parametrize("name", list(PACKAGES))
def test_a_package_on_path_is_found_through_its_script(tmp_path: Path, name: str) -> None:
    """Where npm has installed for the whole machine, PATH leads to a script in a package."""
    modules = tmp_path / "lib" / "node_modules"
    program = package(modules, name, MINIMUM[name])
    script = modules / PACKAGES[name] / "bin" / "shim.js"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).symlink_to(script)

    tool = find(name, environ(tmp_path, path=tmp_path / "bin"))

    assert tool is not None
    assert tool.path == program


def test_packages_of_a_package_are_found(tmp_path: Path) -> None:
    """Npm lays what only one package needs into that very package."""
    outer = tmp_path / "lib" / "node_modules" / PACKAGES["claude"]
    program = package(outer / "node_modules", "claude", "2.1.332")
    shim = outer / "bin" / "claude.exe"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to(shim)

    tool = find("claude", environ(tmp_path, path=tmp_path / "bin"))

    assert tool is not None
    assert tool.path == program


def on_path(folder: Path, name: str) -> Path:
    """Put a program on PATH that tells a version of its own."""
    folder.mkdir(exist_ok=True)
    found = shutil.which("bash")
    assert found is not None
    shutil.copyfile(found, folder / name)
    (folder / name).chmod(0o755)
    return folder / name


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no program to stand in")
def test_a_program_on_path_is_asked_for_its_version(tmp_path: Path) -> None:
    """Who installed an agent without npm has no package to look it up in."""
    program = on_path(tmp_path / "bin", "claude")

    tool = find("claude", environ(tmp_path, path=program.parent))

    assert tool is not None
    assert (tool.path, tool.root) == (program, program)
    assert int(tool.version.partition(".")[0]) >= 3


def test_a_script_on_path_is_no_program(tmp_path: Path) -> None:
    """A trial could not run it: what it leads to lies who knows where."""
    (tmp_path / "claude").write_text("#!/bin/sh\necho 2.1.332\n")
    (tmp_path / "claude").chmod(0o755)

    assert find("claude", environ(tmp_path, path=tmp_path)) is None


@pytest.mark.slow
def test_a_program_that_tells_no_version_is_none(tmp_path: Path) -> None:
    """Its formats are not known."""
    found = shutil.which("false")
    assert found is not None
    shutil.copyfile(found, tmp_path / "codex")
    (tmp_path / "codex").chmod(0o755)

    assert find("codex", environ(tmp_path, path=tmp_path)) is None


@pytest.mark.parametrize(
    ("name", "version"), [("claude", "2.1.196"), ("claude", "1.9.999"), ("codex", "0.99.0")]
)
def test_a_version_that_is_too_old_is_refused(tmp_path: Path, name: str, version: str) -> None:
    """Compared by number: to a reader of characters 0.99 is newer than 0.171."""
    program = package(tmp_path / "tools" / "node_modules", name, version)

    told = missing(name, environ(tmp_path))

    assert told == (
        f"{name} {version} in {program.parent} is older than {MINIMUM[name]}; "
        "run `pytest-evalarc tools install`, or update it"
    )
    with pytest.raises(SetupError, match=f"program {name}: {name} {version} in"):
        require(name, environ(tmp_path))


def test_what_is_nowhere_is_told_with_what_to_do(tmp_path: Path) -> None:
    """It is all that a user reads before any trial starts."""
    assert missing("codex", environ(tmp_path)) == (
        f"codex is neither in {tmp_path / 'tools'} nor a program on PATH; "
        "run `pytest-evalarc tools install`"
    )


def test_tools_belong_to_the_environment_that_this_python_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So that both are set up and removed together; elsewhere they are the user's."""
    monkeypatch.setattr(sys, "prefix", "/opt/env")
    assert tools_folder({}) == Path("/opt/env/share/pytest-evalarc/tools")

    monkeypatch.setattr(sys, "base_prefix", "/opt/env")
    assert tools_folder({"XDG_DATA_HOME": "/data"}) == Path("/data/pytest-evalarc/tools")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tools_folder({}) == tmp_path / ".local/share/pytest-evalarc/tools"


def test_a_variable_names_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For installing and for finding alike."""
    monkeypatch.chdir(tmp_path)

    assert tools_folder({FOLDER_VARIABLE: "tools"}) == tmp_path / "tools"
    assert tools_folder({FOLDER_VARIABLE: ""}) != tmp_path


def test_a_digest_is_that_of_the_program(tmp_path: Path) -> None:
    """Results name the very bytes that ran."""
    package(tmp_path / "node_modules", "srt", "0.0.83").write_bytes(b"")

    tool = in_folder("srt", tmp_path)

    assert tool is not None
    assert tool.sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("claude", marks=needs_claude),
        pytest.param("codex", marks=needs_codex),
        pytest.param("srt", marks=needs_srt),
    ],
)
def test_what_is_installed_is_what_it_says(name: str) -> None:
    """The version in a package and the one that its program tells are the same."""
    tool: Tool = require(name)
    assert os.access(tool.path, os.R_OK)

    if name != "srt":
        status = tool.path.stat()
        told = toolset._told_version(tool.path, status.st_ino, status.st_mtime_ns)
        assert told == tool.version
