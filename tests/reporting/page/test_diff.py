from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.manifest import read_manifest
from pytest_evalarc.grading.submission import Submission, keep
from pytest_evalarc.reporting.page import diff
from pytest_evalarc.reporting.page.diff import FileChange, changes


class Work:
    """A starter, and a project that an agent works in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.starter, self.project = root / "starter", root / "project"
        for folder in (self.starter, self.project):
            folder.mkdir()
            (folder / "a.py").write_text("one\ntwo\n")

    def changes(self) -> dict[str, FileChange]:
        kept = self.root / "kept"
        kept.mkdir()
        keep(Submission(root=self.project, manifest=read_manifest(self.project)), kept)
        return {change.path: change for change in changes(self.starter, kept)}


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_a_changed_file_is_shown_line_by_line(work: Work) -> None:
    """A reader wants what the agent did, and not the whole project."""
    (work.project / "a.py").write_text("one\n2\n")

    found = work.changes()

    assert found == {
        "a.py": FileChange(
            path="a.py", word="changed", lines=("@@ -1,2 +1,2 @@", " one", "-two", "+2")
        )
    }


def test_new_and_removed_files_are_told_as_such(work: Work) -> None:
    """A file that is gone has no line to show it by."""
    (work.project / "a.py").unlink()
    (work.project / "b").write_text("new")

    found = work.changes()

    assert found["a.py"].word == "removed"
    assert found["a.py"].lines == ("@@ -1,2 +0,0 @@", "-one", "-two")
    assert found["b"].word == "added"
    assert found["b"].lines[-1] == "+new (no newline)"


def test_what_nobody_can_read_line_by_line_is_named(work: Work) -> None:
    """It still differs, and a diff that leaves it out would hide that."""
    (work.project / "binary").write_bytes(b"\x00\x01")
    (work.project / "latin").write_bytes(b"caf\xe9")
    (work.project / "large").write_text("x" * (diff.MOST_FILE_BYTES + 1))
    (work.project / "long").write_text("\n" * (diff.MOST_LINES + 1))
    (work.project / "link").symlink_to("/etc/passwd")
    os.mkfifo(work.project / "pipe")

    found = work.changes()

    assert {path: change.note for path, change in found.items()} == {
        "binary": "it is no text",
        "latin": "it is no text",
        "large": "262,145 bytes: too large to be compared here",
        "link": "",
        "long": "4,002 lines: too many to be compared here",
        "pipe": "a FIFO, socket or device",
    }
    assert found["link"].lines[-1] == "+link to /etc/passwd"


def test_a_file_that_became_executable_is_told(work: Work) -> None:
    """Its content is the same, and that alone may decide a check."""
    (work.project / "a.py").chmod(0o755)

    assert work.changes()["a.py"].note == "it is executable now"


def test_caches_and_the_skills_of_a_treatment_are_left_out(work: Work) -> None:
    """No agent wrote them."""
    for name in ("__pycache__/a.pyc", ".claude/skills/s/SKILL.md"):
        path = work.project / name
        path.parent.mkdir(parents=True)
        path.write_text("x")

    assert work.changes() == {}


def test_a_stored_file_that_is_another_by_now_is_not_shown(work: Work) -> None:
    """A link in its place must lead nowhere."""
    (work.project / "b").write_text("new\n")
    kept = work.root / "kept"
    assert work.changes()["b"].lines
    (kept / "submission/b").unlink()
    (kept / "submission/b").symlink_to(work.starter / "a.py")

    (found,) = changes(work.starter, kept)

    assert found.note == "what is stored is not what was left"


def test_lines_cannot_steer_a_reader(work: Work) -> None:
    """A diff is foreign text like any other."""
    (work.project / "b").write_text("\x1b[31m\u202e\n")

    assert work.changes()["b"].lines[-1] == "+\\x1b[31m\\u202e"


def test_many_files_are_named_and_the_first_compared(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendored folder must not fill the page."""
    monkeypatch.setattr(diff, "MOST_FILES", 2)
    for name in "bcd":
        (work.project / name).write_text("x\n")

    found = work.changes()

    assert [bool(change.lines) for change in found.values()] == [True, True, False]
    assert "the first 2 files" in found["d"].note


def test_without_a_manifest_there_is_nothing_to_compare(work: Work) -> None:
    """A trial that never started left nothing."""
    with pytest.raises(DocumentError, match=r"submission\.json"):
        changes(work.starter, work.root / "kept")


def test_files_that_lie_in_no_folder_are_a_starter_too(work: Work) -> None:
    """A pack hands its starter out as content, and a trial writes that for the agent."""
    (work.project / "a.py").write_text("one\n2\n")
    (work.project / "b.py").write_text("same\n")
    kept = work.root / "kept"
    kept.mkdir()
    keep(Submission(root=work.project, manifest=read_manifest(work.project)), kept)
    starter = {"a.py": b"one\ntwo\n", "b.py": b"same\n", "c.bin": b"\xff"}

    found = changes(starter, kept)

    assert [(each.path, each.word, each.lines, each.note) for each in found] == [
        ("a.py", "changed", ("@@ -1,2 +1,2 @@", " one", "-two", "+2"), ""),
        ("c.bin", "removed", (), "it is no text"),
    ]
