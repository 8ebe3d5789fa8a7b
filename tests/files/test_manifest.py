"""What is in a folder, without trusting anything in it."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files import folder as folder_module
from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.manifest import (
    EntryType,
    TreeLimits,
    TreeTooLarge,
    is_cache,
    open_regular,
    read_manifest,
)
from pytest_evalarc.files.tree import remove_tree
from tests.files.hostile import make_deep, make_sparse


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_bytes(b"print('hi')\n")
    (root / "src.txt").write_bytes(b"")
    (root / "run").write_bytes(b"#!/bin/sh\n")
    (root / "run").chmod(0o755)
    return root


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """Deeper than pytest's own clean-up can go."""
    root = tmp_path / "deep"
    root.mkdir()
    make_deep(root, levels=4000)
    yield root
    remove_tree(root)


def test_every_path_is_listed_by_its_bytes_with_kind_size_and_digest(tree: Path) -> None:
    """Order and digests decide whether two submissions are the same one."""
    manifest = read_manifest(tree)

    assert [(entry.path, entry.type, entry.size) for entry in manifest.entries] == [
        ("run", EntryType.FILE, 10),
        ("src", EntryType.DIR, 0),
        ("src.txt", EntryType.FILE, 0),
        ("src/app.py", EntryType.FILE, 12),
    ]
    assert manifest.by_path["run"].mode == 0o755
    assert manifest.by_path["src/app.py"].sha256 == hashlib.sha256(b"print('hi')\n").hexdigest()
    assert manifest.total_bytes == 22
    assert [entry.path for entry in manifest.files] == ["run", "src.txt", "src/app.py"]


def test_the_digest_sees_content_names_kinds_and_exec_bits_alone(tree: Path) -> None:
    """A fresh checkout differs in times and in write permissions, and is the same submission."""
    before = read_manifest(tree).sha256
    os.utime(tree / "src.txt", (0, 0))
    (tree / "src.txt").chmod(0o600)
    assert read_manifest(tree).sha256 == before

    digests = {before}
    (tree / "run").chmod(0o644)
    digests.add(read_manifest(tree).sha256)
    (tree / "src.txt").write_bytes(b"x")
    digests.add(read_manifest(tree).sha256)
    (tree / "src.txt").rename(tree / "src.md")
    digests.add(read_manifest(tree).sha256)
    (tree / "src.md").unlink()
    (tree / "src.md").symlink_to("x")
    digests.add(read_manifest(tree).sha256)
    (tree / "src.md").unlink()
    (tree / "src.md").symlink_to("y")
    digests.add(read_manifest(tree).sha256)
    assert len(digests) == 6


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../case-002/answers", "..", "loop", "/dev/zero"]
)
def test_a_link_is_recorded_by_its_text_and_never_followed(tree: Path, target: str) -> None:
    """Whoever follows one reads a host file, another case's answers, or for ever."""
    (tree / "loop").symlink_to(target)

    entry = read_manifest(tree).by_path["loop"]

    assert (entry.type, entry.target, entry.sha256) == (EntryType.SYMLINK, target, None)
    assert entry.size == len(target)


def test_special_files_are_recorded_and_never_opened(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a FIFO waits for a writer that never comes."""
    os.mkfifo(tree / "fifo")
    (tree / "to-fifo").symlink_to("fifo")
    # The path of a socket is short by law, and that of a test's folder is not.
    monkeypatch.chdir(tree)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("daemon.ipc")

        found = read_manifest(tree).by_path

    assert found["fifo"].type is EntryType.SPECIAL
    assert found["daemon.ipc"].type is EntryType.SPECIAL
    assert found["to-fifo"].type is EntryType.SYMLINK


def test_names_that_are_not_utf8_survive(tree: Path) -> None:
    """One odd file name must neither abort a grading nor be taken for another."""
    (tree / os.fsdecode(b"odd-\xff")).write_bytes(b"1")

    manifest = read_manifest(tree)

    assert "odd-\udcff" in manifest.by_path
    assert len(manifest.sha256) == 64


def test_a_sparse_terabyte_is_refused_before_it_is_read(tree: Path) -> None:
    """Its holes cost the submission nothing and would cost us hours."""
    make_sparse(tree / "big", size=1 << 40)

    with pytest.raises(TreeTooLarge) as caught:
        read_manifest(tree)

    assert f"big has {1 << 40} bytes" in caught.value.problem
    assert f"the limit is {256 << 20}" in caught.value.problem


def test_too_many_files_are_refused_before_any_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count alone can fill a disk, so nothing may be hashed on the way to the limit."""
    for number in range(20_001):
        os.close(os.open(tmp_path / str(number), os.O_CREAT | os.O_WRONLY))
    monkeypatch.setattr(Folder, "open", None)

    with pytest.raises(TreeTooLarge, match="more than 20000 paths"):
        read_manifest(tmp_path)


def test_four_thousand_levels_are_refused_at_the_limit(deep: Path) -> None:
    """No path is long enough to name the deepest one, and no stack deep enough to walk it."""
    with pytest.raises(TreeTooLarge, match="is 65 levels deep; the limit is 64"):
        read_manifest(deep)


def test_a_tree_of_exactly_the_limits_is_read(tree: Path) -> None:
    """A limit is what may be there, so the last allowed file still counts."""
    limits = TreeLimits(bytes=22, files=4, depth=2)

    assert len(read_manifest(tree, limits=limits).entries) == 4


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        (TreeLimits(bytes=21), "the limit is 21"),
        (TreeLimits(files=3), "more than 3 paths"),
        (TreeLimits(depth=1), "src/app.py is 2 levels deep"),
    ],
)
def test_one_more_than_a_limit_is_told_as_the_submissions_fault(
    tree: Path, limits: TreeLimits, found: str
) -> None:
    """It is a failed trial, not a broken harness, and the reader sees which limit it was."""
    with pytest.raises(SubmissionError, match=found):
        read_manifest(tree, limits=limits)


def test_what_is_skipped_is_never_entered(tree: Path) -> None:
    """A cache may be huge, so its content must not count towards any limit."""
    (tree / "target" / "debug").mkdir(parents=True)
    make_sparse(tree / "target" / "debug" / "big", size=1 << 40)

    manifest = read_manifest(tree, skip=is_cache)

    assert not any(path.startswith("target") for path in manifest.by_path)


@pytest.mark.parametrize(
    "path",
    [
        "a/__pycache__/b.py",
        "b.pyc",
        "x/.pytest_cache",
        ".ruff_cache/0",
        ".mypy_cache",
        "target/debug",
        "web/node_modules/left-pad",
        ".git/HEAD",
    ],
)
def test_what_tools_leave_behind_is_a_cache(path: str) -> None:
    """A task that was merely run must keep its content hash."""
    assert is_cache(path)


@pytest.mark.parametrize("path", ["src/targets/a", "my.pycx", ".gitignore", "git", "a/b.py"])
def test_what_only_looks_like_a_cache_counts(path: str) -> None:
    """Half a name is another name, and its content can change a result."""
    assert not is_cache(path)


def test_a_root_that_is_a_link_or_missing_is_refused(tmp_path: Path, tree: Path) -> None:
    """A submission folder swapped for a link would hand in someone else's work."""
    (tmp_path / "link").symlink_to(tree)

    for path in (tmp_path / "link", tmp_path / "gone", tree / "run"):
        with pytest.raises(SubmissionError, match="cannot be read"):
            read_manifest(path)


@pytest.mark.parametrize("swap", ["link", "fifo", "larger", "folder-link"])
def test_a_file_swapped_after_it_was_listed_is_not_read(tree: Path, swap: str) -> None:
    """Between listing and reading, a live process could lead us to a file of the host."""
    entry = read_manifest(tree).by_path["src/app.py"]
    path = tree / "src" / "app.py"
    if swap == "larger":
        path.write_bytes(b"other content")
    elif swap == "folder-link":
        outside = tree.parent / "outside"
        (tree / "src").rename(outside)
        (tree / "src").symlink_to(outside)
    else:
        path.unlink()
        if swap == "fifo":
            os.mkfifo(path)
        else:
            path.symlink_to(tree / "run")

    with Folder.at(tree) as root, pytest.raises((SubmissionError, OSError)):
        open_regular(root, entry)


def test_a_file_that_grows_while_it_is_hashed_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that still appends would otherwise be graded by a digest of no state at all."""
    real = Folder.open

    def open_and_append(self: Folder, name: str, flags: int, mode: int = 0o600) -> int:
        descriptor = real(self, name, flags, mode)
        if name == "app.py":
            (tree / "src" / "app.py").write_bytes(b"print('hi')\nmore")
        return descriptor

    monkeypatch.setattr(Folder, "open", open_and_append)

    with pytest.raises(SubmissionError, match=r"src/app.py: changed while it was read"):
        read_manifest(tree)


def test_a_platform_without_descriptors_lists_the_same(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validation runs on Windows too, where a folder can only be named by its path."""
    (tree / "link").symlink_to("src")
    expected = read_manifest(tree)

    monkeypatch.setattr(folder_module, "_BY_DESCRIPTOR", False)

    assert read_manifest(tree) == expected
