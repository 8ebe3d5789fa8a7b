"""What verdicts rest on is known by its bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.grading import judges as module
from pytest_evalarc.grading.judges import Judges, identity, python_judges, system_programs
from pytest_evalarc.isolation.host import base_python


@pytest.fixture
def known(tmp_path: Path) -> Judges:
    """Return a staged folder and program, and a program and a library of the host's."""
    for path in ("batch/site/pytest.py", "batch/ruff", "usr/python", "usr/lib/json.py"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{path}\n")
    return Judges(
        staged=(tmp_path / "batch/site", tmp_path / "batch/ruff"),
        host=(tmp_path / "usr/python", tmp_path / "usr/lib"),
    )


def now(judges: Judges) -> str:
    """Return an identity as the next process finds it."""
    identity.cache_clear()
    return identity(judges)


def _append(path: str) -> Callable[[Path], None]:
    def append(root: Path) -> None:
        with (root / path).open("a") as file:
            file.write("#")

    return append


def _same_size(root: Path) -> None:
    (root / "usr/lib/json.py").write_text("usr/lib/JSON.py\n")
    os.utime(root / "usr/lib/json.py", ns=(1, 1))


def _added(root: Path) -> None:
    (root / "usr/lib/sitecustomize.py").touch()


@pytest.mark.parametrize(
    "change",
    [
        *map(_append, ("batch/site/pytest.py", "batch/ruff", "usr/python", "usr/lib/json.py")),
        _same_size,
        _added,
    ],
    ids=["staged folder", "staged program", "program", "library", "library, same size", "added"],
)
def test_a_byte_more_is_another_identity(
    known: Judges, change: Callable[[Path], None], tmp_path: Path
) -> None:
    """An update of the interpreter or of pytest may judge otherwise."""
    before = now(known)

    change(tmp_path)

    assert now(known) != before


def test_a_staged_toolchain_is_the_same_in_every_batch(known: Judges, tmp_path: Path) -> None:
    """Each batch stages its own, with times of its own, and grades alike."""
    before = now(known)
    (tmp_path / "batch").rename(tmp_path / "other")
    os.utime(tmp_path / "other/ruff", (1, 1))

    moved = replace(known, staged=(tmp_path / "other/site", tmp_path / "other/ruff"))

    assert now(moved) == before


def test_compiled_forms_do_not_count(known: Judges, tmp_path: Path) -> None:
    """They are written whenever a module is imported, by whichever process is first."""
    before = now(known)
    for folder in ("batch/site", "usr/lib"):
        (tmp_path / folder / "__pycache__").mkdir()
        (tmp_path / folder / "__pycache__/m.pyc").write_bytes(b"1")

    assert now(known) == before


def test_a_large_program_is_known_by_size_and_time(
    known: Judges, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a gigabyte of compiler is read in more time than a check takes."""
    monkeypatch.setattr(module, "READ_BYTES", 3)
    os.utime(tmp_path / "usr/python", ns=(5, 5))
    before = now(known)

    os.utime(tmp_path / "usr/python", ns=(6, 6))

    assert now(known) != before


def test_what_is_not_there_has_no_identity(known: Judges, tmp_path: Path) -> None:
    """A grading that rests on what nobody knows is made anew."""
    (tmp_path / "usr/python").unlink()

    with pytest.raises(FileNotFoundError):
        now(known)


def test_python_rests_on_its_interpreter_and_standard_library() -> None:
    """A check imports both, and a new `json` may read otherwise."""
    found = python_judges()

    assert found[0] == base_python()
    assert any((path / "json" / "__init__.py").is_file() for path in found[1:])


def test_programs_of_the_system_are_found_where_they_really_lie(tmp_path: Path) -> None:
    """`cc` is a link to whichever compiler is installed, and the link stays when that changes."""
    program = tmp_path / "gcc-13"
    program.write_text("")
    program.chmod(0o755)
    (tmp_path / "cc").symlink_to(program)

    assert system_programs("cc", "ld", path=(str(tmp_path),)) == (Path(os.path.realpath(program)),)
