from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pytest_evalarc.isolation.own_folders import (
    make_own_folder,
    remove_abandoned,
    remove_own_folder,
)

NOBODY = 2**22 + 1
"""No process has this id."""


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_harness_left_is_removed_and_nothing_else(temporary: Path) -> None:
    """It could not do so itself; what belongs to one that lives, or to anybody else, stays."""
    for name in (f"a-{NOBODY}-x", f"b-{NOBODY}-x", f"a-{os.getppid()}-x", "a-mine", "other"):
        (temporary / f"pytest-evalarc-{name}").mkdir()
    own = make_own_folder("a")

    remove_abandoned("a")

    kept = {
        path.name.removeprefix("pytest-evalarc-") for path in temporary.iterdir() if path != own
    }
    assert kept == {f"b-{NOBODY}-x", f"a-{os.getppid()}-x", "a-mine", "other"}
    assert own.is_dir()


def test_a_folder_of_ours_is_removed_with_what_is_in_it(temporary: Path) -> None:
    """At the end of a process nobody is left who could be told of an error."""
    own = make_own_folder("a")
    (own / "inner").mkdir()

    remove_own_folder(own)
    remove_own_folder(own)

    assert list(temporary.iterdir()) == []
