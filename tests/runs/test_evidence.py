from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.runs.evidence import keep_left, keep_submission, listing


def test_a_listing_names_the_first_paths_outer_ones_first(tmp_path: Path) -> None:
    """It shows what made a submission too large, without reading all of it."""
    for name in "abc":
        (tmp_path / "deep/er").mkdir(parents=True, exist_ok=True)
        (tmp_path / "deep/er" / name).write_text("")
        (tmp_path / f"\x1b{name}").write_text("")

    lines = listing(tmp_path, most=5).decode().splitlines()

    assert len(lines) == 6
    assert set(lines[:4]) == {"deep", r"\x1ba", r"\x1bb", r"\x1bc"}
    assert lines[-1] == "… and more"


@pytest.mark.parametrize("depth", [65, 1500])
def test_a_listing_ends_however_deep_the_folders_are(tmp_path: Path, depth: int) -> None:
    """A recursive walk would end with the interpreter's own limit, and the trial with it."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)

    lines = listing(tmp_path).splitlines()
    # Pytest's own removal is recursive too.
    remove_tree(tmp_path / "d")
    assert len(lines) == 64


def test_a_listing_passes_over_links_and_what_cannot_be_read(tmp_path: Path) -> None:
    """A link could lead to all of the host."""
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "loop").symlink_to("loop")

    assert sorted(listing(tmp_path).decode().split()) == ["link", "loop"]


def test_a_submission_that_is_no_folder_is_the_submissions_fault(tmp_path: Path) -> None:
    """Without a boundary a client can put a link in its place."""
    (tmp_path / "project").symlink_to("/etc")

    with pytest.raises(SubmissionError, match="project"):
        keep_submission(tmp_path / "project", tmp_path)
    assert not (tmp_path / "submission").exists()


def test_what_a_treatment_left_is_kept_under_its_name(tmp_path: Path) -> None:
    """A folder of logs is one log, in the order of its files' names."""
    run, kept = tmp_path / "run", tmp_path / "kept"
    (run / "home/logs/deep").mkdir(parents=True)
    kept.mkdir()
    for name, content in (("b.log", "two\n"), ("a.log", "one\n"), ("deep/c.log", "three\n")):
        (run / "home/logs" / name).write_text(content)
    (run / "trace").write_text("line\n")

    lost = keep_left(run, {"all.log": "home/logs", "trace.jsonl": "trace", "no": "none"}, kept)

    assert lost == ()
    assert {path.name: path.read_text() for path in kept.iterdir()} == {
        "all.log": "one\ntwo\n",
        "trace.jsonl": "line\n",
    }


def test_what_a_session_planted_in_place_of_a_log_is_not_kept_but_told(tmp_path: Path) -> None:
    """A link would hand out a file of the operator's, and a pipe would block for ever."""
    run, kept, secret = tmp_path / "run", tmp_path / "kept", tmp_path / "secret"
    for folder in (run / "logs", kept):
        folder.mkdir(parents=True)
    secret.write_text("secret")
    (run / "link").symlink_to(secret)
    os.mkfifo(run / "logs" / "pipe")

    lost = keep_left(run, {"one": "link", "two": "logs"}, kept)

    assert lost == (
        "one was not kept: link: is no regular file",
        "two was not kept: logs/pipe: is no regular file",
    )
    assert list(kept.iterdir()) == []
