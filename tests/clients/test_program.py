from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pytest_evalarc.clients.program import copy_program, find_program, program_digest
from pytest_evalarc.errors import SetupError


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_is_found_on_path_and_keeps_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter of a virtual environment, say, is what the name of the link makes it."""
    real = program(tmp_path / "v2" / "agent-2")
    (tmp_path / "v2" / "agent").symlink_to(real)
    (tmp_path / "current").symlink_to(tmp_path / "v2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'current'}:/bin")

    assert find_program("agent") == tmp_path / "v2" / "agent"
    assert find_program(str(tmp_path / "current" / "agent")) == tmp_path / "v2" / "agent"


def test_a_relative_entry_of_path_gives_an_absolute_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session has another working folder."""
    program(tmp_path / "bin" / "agent")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "bin")

    assert find_program("agent") == tmp_path / "bin" / "agent"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no-such-agent", "program no-such-agent: is not on PATH; install it"),
        ("/no/such/agent", "/no/such/agent: is not there, or cannot be executed"),
        ("tools/agent", "is a relative path; write a name on PATH or an absolute path"),
        ("./agent", "is a relative path"),
        (os.devnull, "cannot be executed"),
    ],
)
def test_a_program_that_cannot_be_started_is_told(name: str, sentence: str) -> None:
    """The user installs it, or mends the table."""
    with pytest.raises(SetupError, match=sentence):
        find_program(name)


def test_a_digest_is_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    """Agents update themselves, also while a session of tests goes on."""
    path = program(tmp_path / "agent", "one")
    before = program_digest(path)
    path.write_text("three")

    assert before == hashlib.sha256(b"one").hexdigest()
    assert program_digest(path) == hashlib.sha256(b"three").hexdigest()


def test_a_program_is_copied_alone_and_can_be_run(tmp_path: Path) -> None:
    """A trial could read whatever came along."""
    program = tmp_path / "bin" / "agent"
    program.parent.mkdir()
    program.write_bytes(b"\x7fELF")
    program.chmod(0o500)
    (program.parent / "other").write_bytes(b"secret")

    copy_program(program, tmp_path / "staged/bin")

    (copy,) = (tmp_path / "staged/bin").iterdir()
    assert (copy.name, copy.read_bytes()) == ("agent", b"\x7fELF")
    assert copy.stat().st_mode & 0o777 == 0o755
