"""Folders copied exactly, and only to where they were meant to go."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from pytest_evalarc.errors import InfrastructureError, SubmissionError
from pytest_evalarc.files import tree
from pytest_evalarc.files.manifest import read_manifest
from pytest_evalarc.files.tree import copy_tree, create_trees, remove_tree, write_tree
from tests.files.hostile import make_deep, make_sparse


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    (root / "src" / "empty").mkdir(parents=True)
    (root / "src" / "app.py").write_bytes(b"app")
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "run.sh").chmod(0o750)
    (root / "closed").mkdir()
    (root / "closed" / "file").write_bytes(b"x")
    (root / "closed").chmod(0o555)
    return root


def test_a_copy_has_the_same_manifest(source: Path, tmp_path: Path) -> None:
    """Modes and empty folders are part of what an agent left, read-only folders included."""
    manifest = read_manifest(source)

    copy_tree(source, manifest, tmp_path / "copy" / "project")

    assert read_manifest(tmp_path / "copy" / "project") == manifest


def test_setuid_bits_are_not_copied(source: Path, tmp_path: Path) -> None:
    """A submission must not hand us a file that runs as someone else."""
    (source / "run.sh").chmod(0o4755)

    copy_tree(source, read_manifest(source), tmp_path / "copy")

    assert stat.S_IMODE((tmp_path / "copy" / "run.sh").stat().st_mode) == 0o755


def test_links_and_special_files_are_left_out(source: Path, tmp_path: Path) -> None:
    """A copied link would lead whoever comes later, a copied FIFO would block them."""
    (source / "passwd").symlink_to("/etc/passwd")
    (source / "up").symlink_to("..")
    os.mkfifo(source / "fifo")

    copy_tree(source, read_manifest(source), tmp_path / "copy")

    assert sorted(os.listdir(tmp_path / "copy")) == ["closed", "run.sh", "src"]


def test_holes_stay_holes(tmp_path: Path) -> None:
    """A file of mostly nothing must not become real when it is kept."""
    (tmp_path / "source").mkdir()
    make_sparse(tmp_path / "source" / "sparse", size=64 << 20, data_at=32 << 20)
    original = (tmp_path / "source" / "sparse").stat()

    copy_tree(tmp_path / "source", read_manifest(tmp_path / "source"), tmp_path / "copy")

    copied = tmp_path / "copy" / "sparse"
    assert copied.stat().st_size == 64 << 20
    assert copied.stat().st_blocks <= original.st_blocks
    with copied.open("rb") as file:
        file.seek((32 << 20) - 1)
        assert file.read(3) == b"\0x\0"


def test_only_what_is_selected_is_copied(source: Path, tmp_path: Path) -> None:
    """Grading takes editable paths alone, also when their folder itself is not one."""
    copy_tree(
        source,
        read_manifest(source),
        tmp_path / "copy",
        select=lambda path: path == "src/app.py",
    )

    assert [entry.path for entry in read_manifest(tmp_path / "copy").entries] == [
        "src",
        "src/app.py",
    ]


def test_a_file_that_is_there_is_replaced_only_on_demand(source: Path, tmp_path: Path) -> None:
    """Two trees that meet by accident are a mistake; a solution over a starter is not."""
    write_tree(tmp_path / "copy", {"src/app.py": b"starter", "src/keep.py": b"keep"})
    manifest = read_manifest(source)

    with pytest.raises(InfrastructureError, match="something is there already"):
        copy_tree(source, manifest, tmp_path / "copy")
    assert (tmp_path / "copy" / "src" / "app.py").read_bytes() == b"starter"

    remove_tree(tmp_path / "copy" / "run.sh")
    copy_tree(source, manifest, tmp_path / "copy", replace=True)
    assert (tmp_path / "copy" / "src" / "app.py").read_bytes() == b"app"
    assert (tmp_path / "copy" / "src" / "keep.py").read_bytes() == b"keep"


@pytest.mark.parametrize("place", ["src", "src/app.py", "."])
def test_no_link_at_the_destination_is_followed(source: Path, tmp_path: Path, place: str) -> None:
    """A link planted there, an ancestor too, would let a copy overwrite files of the host."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "app.py").write_bytes(b"precious")
    planted = tmp_path / "copy" / place
    if place == ".":
        (tmp_path / "copy").symlink_to(outside)
    else:
        planted.parent.mkdir(parents=True)
        planted.symlink_to(outside / "app.py" if place.endswith(".py") else outside)

    with pytest.raises(InfrastructureError):
        copy_tree(source, read_manifest(source), tmp_path / "copy", replace=True)

    assert sorted(os.listdir(outside)) == ["app.py"]
    assert (outside / "app.py").read_bytes() == b"precious"


@pytest.mark.parametrize("change", ["grown", "gone", "link"])
def test_a_source_that_changed_since_it_was_listed_fails_the_submission(
    source: Path, tmp_path: Path, change: str
) -> None:
    """What is kept must be what was hashed, and nothing from behind a link."""
    manifest = read_manifest(source)
    path = source / "src" / "app.py"
    if change == "grown":
        path.write_bytes(b"app and more")
    else:
        path.unlink()
        if change == "link":
            path.symlink_to("/etc/passwd")

    with pytest.raises(SubmissionError, match=r"src/app\.py"):
        copy_tree(source, manifest, tmp_path / "copy")

    assert not (tmp_path / "copy" / "src" / "app.py").exists()


def test_a_full_disk_is_ours_and_leaves_no_partial_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file would be graded as the submission's own, and the trial blamed on the agent."""
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if bytes(data) == b"app":
            real(descriptor, b"a")
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", full)

    with pytest.raises(InfrastructureError, match=r"app\.py: .*No space left.*free some space"):
        copy_tree(source, read_manifest(source), tmp_path / "copy")

    assert not (tmp_path / "copy" / "src" / "app.py").exists()


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../../x", "a//b", "", ".", "a/.", "\0", "a\0/b", "\ud800"]
)
def test_no_written_path_leads_outside(tmp_path: Path, path: str) -> None:
    """Names that come from a pack or a recording are checked like everyone else's."""
    with pytest.raises(InfrastructureError, match="is not a path inside the destination"):
        write_tree(tmp_path / "dest", {path: b""})

    assert os.listdir(tmp_path) == ["dest"]
    assert os.listdir(tmp_path / "dest") == []


def test_written_files_are_there_with_their_folders(tmp_path: Path) -> None:
    """A tree given as data is the same on every machine, whatever its umask."""
    write_tree(tmp_path / "dest", {"a/b/c.txt": b"1", "d": b"2" * (3 << 20)})

    files = read_manifest(tmp_path / "dest").files
    assert [(entry.path, entry.mode, entry.size) for entry in files] == [
        ("a/b/c.txt", 0o644, 1),
        ("d", 0o644, 3 << 20),
    ]


def test_everything_can_be_removed(tmp_path: Path) -> None:
    """What an agent left has to go, also where `rm` by path or by recursion would stop."""
    root = tmp_path / "run"
    (root / "closed" / "inner").mkdir(parents=True)
    (root / "closed" / "file").write_bytes(b"x")
    (root / "closed" / "inner").chmod(0)
    (root / "closed").chmod(0o500)
    (root / "many").mkdir()
    for number in range(50):
        (root / "many" / f"d{number}" / "e").mkdir(parents=True)
    os.mkfifo(root / "fifo")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"x")
    (root / "link").symlink_to(precious)
    make_deep(root, levels=1200)
    root.chmod(0o500)

    remove_tree(root)

    assert os.listdir(tmp_path) == ["precious"]
    assert os.listdir(precious) == ["file"]


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    """A run folder replaced by a link must not take a user's files with it."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "precious")

    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "never-there")

    assert os.listdir(tmp_path) == ["precious"]


# Several new folders, all or none.


def everything(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def test_new_folders_are_made_with_those_above_them(tmp_path: Path) -> None:
    """Whoever wants a folder wants it wherever it is to be."""
    create_trees({tmp_path / "a/b/c": {"d/e.txt": b"1", "f": b"2"}, tmp_path / "g": {"h": b"3"}})

    assert (tmp_path / "a/b/c/d/e.txt").read_bytes() == b"1"
    assert everything(tmp_path) == [
        *("a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e.txt", "a/b/c/f"),
        *("g", "g/h"),
    ]


@pytest.mark.parametrize("kind", ["file", "folder", "empty folder", "link"])
def test_what_is_there_keeps_every_new_folder_from_being_made(tmp_path: Path, kind: str) -> None:
    """Half of what was asked for would have to be found and removed by hand."""
    there = tmp_path / "there"
    if kind == "file":
        there.write_bytes(b"mine")
    elif kind == "link":
        there.symlink_to("nowhere")
    else:
        there.mkdir()
    if kind == "folder":
        (there / "file").write_bytes(b"mine")
    before = everything(tmp_path)

    with pytest.raises(InfrastructureError, match=r"there: cannot be written: File exists"):
        create_trees({tmp_path / "new/one": {"f": b""}, there: {"f": b""}})

    assert everything(tmp_path) == before
    assert not (there / "f").exists()


@pytest.mark.parametrize(
    ("path", "file"), [("file/new", "f"), ("new", "../out"), ("new", "f/../../out")]
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, path: str, file: str) -> None:
    """A folder that is there but not whole looks like one that is."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(InfrastructureError):
        create_trees({tmp_path / "above/first": {"f": b""}, tmp_path / path: {"a": b"", file: b""}})

    assert everything(tmp_path) == ["file"]


def test_a_large_file_is_copied_whole_whether_blocks_can_be_shared_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs of hundreds of MiB are staged for each batch: sharing saves time and disk."""
    content = os.urandom(1 << 20) + b"end"
    (tmp_path / "from").mkdir()
    (tmp_path / "from/program").write_bytes(content)
    manifest = read_manifest(tmp_path / "from")
    copy_tree(tmp_path / "from", manifest, tmp_path / "asked")
    monkeypatch.setattr(tree, "_share_content", lambda *_: False)
    copy_tree(tmp_path / "from", manifest, tmp_path / "read")

    assert (tmp_path / "asked/program").read_bytes() == content
    assert (tmp_path / "read/program").read_bytes() == content


def test_a_file_that_grew_is_no_copy_of_what_was_listed_when_blocks_are_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared copy has the size of the file, whatever the manifest says."""
    (tmp_path / "from").mkdir()
    program = tmp_path / "from/program"
    program.write_bytes(bytes(1 << 20))
    manifest = read_manifest(tmp_path / "from")

    def share(source: int, target: int) -> bool:
        os.write(target, bytes((1 << 20) + 1))
        return True

    monkeypatch.setattr(tree, "_share_content", share)
    with pytest.raises(SubmissionError, match="program"):
        copy_tree(tmp_path / "from", manifest, tmp_path / "to")

    assert not (tmp_path / "to/program").exists()
