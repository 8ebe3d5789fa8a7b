from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation import host
from pytest_evalarc.isolation.host import find_bwrap


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    find_bwrap.cache_clear()
    yield
    find_bwrap.cache_clear()


def candidate(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def choose(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> Path | None:
    monkeypatch.setattr(host, "_bwrap_candidates", lambda: list(paths))
    program = find_bwrap()
    return program.path if program else None


@pytest.mark.slow
def test_a_system_bubblewrap_that_is_new_enough_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system may allow user namespaces to that very path and to no other."""
    system = candidate(tmp_path, "system", "echo bubblewrap 0.8")
    wheel = candidate(tmp_path, "wheel", "echo bubblewrap 0.11.0")

    assert choose(monkeypatch, system, wheel) == system


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "echo bubblewrap 0.7.9",
        "echo bubblewrap 0.4",
        "echo something else entirely",
        "echo bubblewrap ..",
        "exit 1",
        "kill -9 $$",
    ],
)
def test_one_that_is_too_old_or_broken_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """An old one cannot stop nested user namespaces, and what tells no version is none."""
    system = candidate(tmp_path, "system", script)
    wheel = candidate(tmp_path, "wheel", "echo bubblewrap 0.11.0")

    assert choose(monkeypatch, system, wheel) == wheel


@pytest.mark.slow
def test_there_may_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an optional program, and a missing one is told, not tripped over."""
    not_executable = tmp_path / "data"
    not_executable.write_text("")

    assert choose(monkeypatch, tmp_path / "missing", not_executable) is None


def test_a_machine_that_starts_no_process_now_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken for a missing program, a moment's lack would fail every trial of the session."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho bubblewrap 0.12.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with monkeypatch.context() as full:
        error = BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        full.setattr(host.subprocess, "run", Mock(side_effect=error))
        with pytest.raises(InfrastructureError, match="temporarily unavailable"):
            find_bwrap()

    found = find_bwrap()

    assert found is not None
    assert (found.path, found.version) == (program, "0.12.0")


def test_results_name_the_bytes_of_the_program(tmp_path: Path) -> None:
    """A version says what a program claims to be, a digest what it is."""
    path = tmp_path / "program"
    path.write_bytes(b"bytes")

    program = host.Program(path=path, version="1")

    assert program.sha256 == hashlib.sha256(b"bytes").hexdigest()


def test_the_base_interpreter_lies_below_its_home() -> None:
    """A sandbox shows the home, so the interpreter must be in it."""
    assert host.base_python().is_relative_to(host.python_home())
