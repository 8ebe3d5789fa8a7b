from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.treatments.left import kind_of, names_in, read_left


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    """What is larger may be anything, and is not taken in."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/file").write_bytes(b"12345")

    assert read_left(tmp_path, "in/file", limit=5) == b"12345"
    with pytest.raises(SubmissionError, match="in/file: has more than 4 bytes"):
        read_left(tmp_path, "in/file", limit=4)


@pytest.mark.parametrize("path", ["gone", "gone/file", "in/gone"])
def test_what_is_not_there_is_none(tmp_path: Path, path: str) -> None:
    """An absence is a fact of its own, and no error."""
    (tmp_path / "in").mkdir()

    assert read_left(tmp_path, path, limit=5) is None
    assert kind_of(tmp_path, path) is None


def plant_link(root: Path) -> None:
    (root / "in").mkdir()
    (root / "in/file").symlink_to(root / "secret")


def plant_linked_folder(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "elsewhere/file").write_text("secret")
    (root / "in").symlink_to("elsewhere")


def plant_pipe(root: Path) -> None:
    (root / "in").mkdir()
    os.mkfifo(root / "in/file")


def plant_folder(root: Path) -> None:
    (root / "in/file").mkdir(parents=True)


def plant_socket(root: Path) -> None:
    (root / "in").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        # A socket's whole path is bounded, and a temporary folder's is long.
        os.chdir(root / "in")
        try:
            listener.bind("file")
        finally:
            os.chdir(before)


def plant_file_for_folder(root: Path) -> None:
    (root / "in").write_text("")


@pytest.mark.parametrize(
    "plant",
    [
        plant_link,
        plant_linked_folder,
        plant_pipe,
        plant_folder,
        plant_socket,
        plant_file_for_folder,
    ],
)
def test_nothing_but_a_regular_file_is_ever_opened(tmp_path: Path, plant: object) -> None:
    """A pipe would block for ever, and a link would hand out a file of the harness's own."""
    (tmp_path / "secret").write_text("secret")
    plant(tmp_path)  # type: ignore[operator]

    with pytest.raises(SubmissionError) as caught:
        read_left(tmp_path, "in/file", limit=100)

    assert caught.value.where == "in/file"


def test_names_behind_a_link_are_none(tmp_path: Path) -> None:
    """The folder could be anyone's."""
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    assert names_in(tmp_path, "real") == ("sub",)
    assert names_in(tmp_path, "link") == ()
    assert names_in(tmp_path, "gone") == ()
