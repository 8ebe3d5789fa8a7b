"""Files that are whole or not there."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.files.atomic import sweep, write_atomic, write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """A reader holds the old content to its end, and the next one sees only the new."""
    path = tmp_path / "result.json"
    path.write_bytes(b"old")

    with path.open("rb") as reader:
        write_atomic(path, b"new and longer")
        assert reader.read() == b"old"

    assert path.read_bytes() == b"new and longer"
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Half a result would be read as a damaged one, and a stray file fills the disk further."""
    path = tmp_path / "result.json"
    path.write_bytes(b"old")

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path if call == "replace" else os, call, full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomic(path, b"new")

    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_link_at_the_path_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A link planted where a result is to go must not redirect it over another file."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = tmp_path / "result.json"
    path.symlink_to(victim)

    write_atomic(path, b"{}")

    assert victim.read_bytes() == b"precious"
    assert not path.is_symlink()
    assert path.read_bytes() == b"{}"


def test_the_permissions_are_those_of_an_ordinary_file(tmp_path: Path) -> None:
    """Results are read by other users' tools, so the private mode of temporary files must go."""
    write_atomic(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")

    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_model_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Writer and reader are one pair, foreign text included."""
    cause = Cause(kind="timeout", detail="agent said \u201cé\u201d\n")

    write_model(tmp_path / "cause.json", cause)

    assert read_model(tmp_path / "cause.json", Cause) == cause


# What a process died over.


def begin(folder: Path) -> Path:
    """Return a file as a process leaves it that was killed before it could rename it."""
    path = folder / ".0123456789abcdef.tmp"
    path.write_bytes(b"half of a resu")
    return path


def test_what_a_process_died_over_is_swept_away(tmp_path: Path) -> None:
    """Nobody will ever finish it, and results are kept for years."""
    begin(tmp_path)
    (tmp_path / "result.json").write_bytes(b"{}")
    (tmp_path / ".mine.tmp").write_bytes(b"")

    sweep(tmp_path)

    assert sorted(os.listdir(tmp_path)) == [".mine.tmp", "result.json"]


def test_what_is_being_written_is_not_swept_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several sessions share a folder of results, and the first to end sweeps it."""
    really = os.fsync

    def sweeping(descriptor: int) -> None:
        sweep(tmp_path)
        really(descriptor)

    monkeypatch.setattr(os, "fsync", sweeping)

    write_atomic(tmp_path / "result.json", b"{}")

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"result.json": b"{}"}


def test_a_file_that_was_swept_away_before_it_was_held_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making it and holding it, it looks like one that somebody died over."""
    really, swept = fcntl.flock, []

    def late(file: Any, how: int) -> None:
        if how == fcntl.LOCK_EX and not swept:
            swept.append(file)
            sweep(tmp_path)
        really(file, how)

    monkeypatch.setattr(fcntl, "flock", late)

    write_atomic(tmp_path / "result.json", b"{}")

    assert len(swept) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"result.json": b"{}"}


def test_nothing_is_swept_through_a_link(tmp_path: Path) -> None:
    """Whoever can plant a link of such a name must not have another file opened or removed."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    link = tmp_path / "folder" / ".0123456789abcdef.tmp"
    link.parent.mkdir()
    link.symlink_to(victim)

    sweep(link.parent)

    assert link.is_symlink()
    assert victim.read_bytes() == b"precious"


def test_a_folder_that_is_not_there_has_nothing_to_sweep(tmp_path: Path) -> None:
    """A session that was interrupted before its first plan has no results."""
    sweep(tmp_path / "gone")

    assert os.listdir(tmp_path) == []
