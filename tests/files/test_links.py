"""Tests of folders that are filled without a copy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.links import link_tree, new_folder


def tree(root: Path) -> Path:
    """Return a folder with files, one of them in a read-only folder, and with marks."""
    source = root / "source"
    (source / "kept" / ".hidden").mkdir(parents=True)
    (source / "kept" / ".hidden" / "run").write_bytes(b"#!/bin/sh\n")
    (source / "kept" / ".hidden" / "run").chmod(0o755)
    (source / "result.json").write_bytes(b"{}\n")
    (source / ".result.json.lock").write_bytes(b"")
    (source / "left.txt").write_bytes(b"no\n")
    (source / "empty").mkdir()
    (source / "kept" / ".hidden").chmod(0o555)
    return source


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file()
    }


def test_every_file_gets_a_second_name(tmp_path: Path) -> None:
    """Evidence may be large, and is never changed in place; marks of who was at work stay."""
    source = tree(tmp_path)

    link_tree(source, tmp_path / "dest", leave_out=("left.txt",))

    assert files(tmp_path / "dest") == {
        "kept/.hidden/run": (b"#!/bin/sh\n", 0o755),
        "result.json": (b"{}\n", 0o644),
    }
    assert (tmp_path / "dest/result.json").samefile(source / "result.json")
    assert (tmp_path / "dest/empty").is_dir()
    assert (tmp_path / "dest/kept/.hidden").stat().st_mode & 0o777 == 0o555


def test_a_file_that_cannot_have_a_second_name_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another disk, and many a file system of a cluster, has no links."""
    source = tree(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    link_tree(source, tmp_path / "dest", leave_out=("left.txt",))

    assert files(tmp_path / "dest") == {
        "kept/.hidden/run": (b"#!/bin/sh\n", 0o755),
        "result.json": (b"{}\n", 0o644),
    }
    assert not (tmp_path / "dest/result.json").samefile(source / "result.json")


def test_a_link_among_results_is_refused(tmp_path: Path) -> None:
    """Results that were fetched from elsewhere must not lead to files of this machine."""
    source = tree(tmp_path)
    (source / "kept" / "secret").symlink_to("/etc/passwd")

    with pytest.raises(InfrastructureError, match=r"kept/secret: is neither a file nor a folder"):
        link_tree(source, tmp_path / "dest")


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    """Until the end nobody can take a part of it for all."""
    dest = tmp_path / "above" / "dest"

    with new_folder(dest) as draft:
        (draft / "file").write_bytes(b"1")
        assert not dest.exists()

    assert files(dest) == {"file": (b"1", 0o644)}
    assert os.listdir(dest.parent) == ["dest"]


def test_a_folder_that_could_not_be_filled_leaves_nothing(tmp_path: Path) -> None:
    """The next attempt starts from nothing, too."""
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "dest") as draft:
        (draft / "file").write_bytes(b"1")
        raise ZeroDivisionError

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_what_is_there_already_is_not_replaced(tmp_path: Path, is_late: bool) -> None:
    """Not even an empty folder, and not even one that came meanwhile."""
    dest = tmp_path / "dest"

    def fill() -> None:
        with new_folder(dest):
            dest.mkdir()

    if not is_late:
        dest.mkdir()
    with pytest.raises(InfrastructureError, match="something is there already"):
        fill()

    assert os.listdir(tmp_path) == ["dest"]
