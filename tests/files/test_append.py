from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.files.append import append_text


def test_a_text_is_added_to_what_others_wrote(tmp_path: Path) -> None:
    """The file belongs to no one alone."""
    path = tmp_path / "summary.md"

    append_text(path, "first\n")
    with path.open("a", encoding="utf-8") as other:
        other.write("theirs\n")
    append_text(path, "naïve\r\n")

    assert path.read_bytes() == "first\ntheirs\nnaïve\r\n".encode()


def test_a_folder_that_is_not_there_is_an_error_and_made_by_nobody(tmp_path: Path) -> None:
    """The file is named by the environment, which may be wrong."""
    with pytest.raises(FileNotFoundError):
        append_text(tmp_path / "no" / "summary.md", "text")

    assert not (tmp_path / "no").exists()
