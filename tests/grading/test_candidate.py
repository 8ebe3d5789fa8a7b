"""What may be a candidate of a pack, and how it is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.grading.candidate import (
    MOST_BYTES,
    MOST_FILES,
    as_candidate,
    filled_command,
    named_command,
)
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.isolation.command import Names
from pytest_evalarc.model.pack import Language

PYTHON = Language(toolchain="python", command=("{python}", "-I", "{workspace}/main.py", "{state}"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a candidate that keeps every rule."""
    (tmp_path / "main.py").write_text("print(1)\n")
    return tmp_path


def refusal(folder: Path) -> str:
    with pytest.raises(SubmissionError) as caught:
        as_candidate(read_submission(folder), PYTHON)
    return str(caught.value)


def test_a_candidate_is_started_as_its_language_says(folder: Path) -> None:
    """Most candidates are one program under its usual name."""
    assert as_candidate(read_submission(folder), PYTHON).command == PYTHON.command


@pytest.mark.parametrize("skipped", [".git/x", ".venv/bin/python", "lib/__pycache__/m.pyc"])
def test_what_tools_leave_behind_is_no_part_of_a_candidate(folder: Path, skipped: str) -> None:
    """A link in a virtual environment is nobody's fault, and neither is its size."""
    before = as_candidate(read_submission(folder), PYTHON).submission.manifest
    path = folder / skipped
    path.parent.mkdir(parents=True)
    path.symlink_to("/etc/passwd")

    after = as_candidate(read_submission(folder), PYTHON).submission.manifest

    assert [entry.path for entry in after.files] == ["main.py"]
    assert after.files == before.files


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """Usually it is the wrong folder."""
    assert refusal(tmp_path) == f"{tmp_path}: holds no file; name the folder of the candidate"


def test_too_many_files_are_refused(folder: Path) -> None:
    """One more than the methodology's bound, and the bound itself is fine."""
    for number in range(MOST_FILES - 1):
        (folder / f"{number}.txt").touch()
    assert as_candidate(read_submission(folder), PYTHON)

    (folder / "last.txt").touch()

    assert f"holds {MOST_FILES + 1} files, and a candidate may have {MOST_FILES}" in refusal(folder)


def test_too_many_bytes_are_refused(folder: Path) -> None:
    """A sparse file counts by its apparent size, for a copy may not stay sparse."""
    with (folder / "data").open("wb") as file:
        file.truncate(MOST_BYTES - 9)
    assert as_candidate(read_submission(folder), PYTHON)

    (folder / "one-more").write_text("!")

    assert f"holds {MOST_BYTES + 1} bytes" in refusal(folder)


def test_links_are_refused(folder: Path) -> None:
    """A link would be followed where the candidate runs, and mean something else there."""
    (folder / "lib").symlink_to("/usr/lib")

    assert refusal(folder) == "lib: is a symbolic link, and a candidate is files and folders alone"


def test_a_missing_entry_point_is_told(folder: Path) -> None:
    """It would fail every case in the same obscure way."""
    (folder / "main.py").rename(folder / "program.py")

    assert "has no main.py, which its command starts" in refusal(folder)


def test_a_candidate_can_name_its_own_command(folder: Path) -> None:
    """Its entry point may lie elsewhere, or take options."""
    (folder / "app").mkdir()
    (folder / "main.py").rename(folder / "app/serve.py")
    (folder / "evalarc.toml").write_text('command = ["{python}", "{workspace}/app/serve.py"]\n')

    command = as_candidate(read_submission(folder), PYTHON).command

    assert command == ("{python}", "{workspace}/app/serve.py")
    assert named_command(read_submission(folder), PYTHON) == command


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("command = [", "is no TOML"),
        ("command = []", "command: has 0 words, and may have 1 to 64"),
        ('command = "python main.py"', "command: is no list of texts"),
        ('command = ["a", 1]', "command: is no list of texts"),
        ('command = ["a", ""]', "command: has a word that is empty"),
        ('command = ["a\\u0000"]', "command: has a word that is empty or holds a null byte"),
        (f"command = {['a'] * 65}", "command: has 65 words"),
        (f"command = ['{'a' * 8193}']", "command: is longer than 8192 characters"),
        ("", "command: is missing"),
        ('comand = ["a"]', "has the key 'comand'; nearest: command"),
        ('command = ["{workspace}/gone"]', "has no gone, which its command starts"),
    ],
)
def test_a_wrong_manifest_is_told(folder: Path, text: str, told: str) -> None:
    """It decides what is started, so nothing in it is guessed or ignored."""
    (folder / "evalarc.toml").write_text(text)

    assert told in refusal(folder)
    assert named_command(read_submission(folder), PYTHON) == PYTHON.command


def test_an_own_program_must_be_executable(folder: Path) -> None:
    """One that is not would look as if the sandbox did not start, which nobody is blamed for."""
    (folder / "evalarc.toml").write_text('command = ["{workspace}/main.py"]\n')

    assert refusal(folder) == (
        "main.py: is no executable file; make it one, or start it by {python}"
    )
    (folder / "main.py").chmod(0o755)
    assert as_candidate(read_submission(folder), PYTHON).command == ("{workspace}/main.py",)


def names(path: tuple[str, ...] | None) -> Names:
    return Names(
        word="python",
        program="/usr/bin/python3",
        workspace=Path("/w"),
        state=Path("/s"),
        path=path,
    )


def test_a_command_is_filled_in() -> None:
    """Only the names that are known are; a brace of the candidate's own stays."""
    template = ("{python}", "{workspace}/main.py", "{state}/a", "{other}", "{}")

    command = filled_command(template, names(()))

    assert command == ("/usr/bin/python3", "/w/main.py", "/s/a", "{other}", "{}")


@pytest.mark.parametrize("program", ["sh", "/bin/sh", "{workspace}/run", "{python}"])
def test_a_program_that_is_there_is_started(program: str) -> None:
    """A candidate may be started by the system's own programs."""
    assert len(filled_command((program, "-c"), names(("/bin",)))) == 2


@pytest.mark.parametrize(
    ("program", "path"),
    [("ruby", ("/nowhere",)), ("/nowhere/sh", ("/bin",)), ("sh", None), ("/bin/sh", None)],
)
def test_a_program_that_is_nowhere_is_the_candidate_s_fault(
    program: str, path: tuple[str, ...] | None
) -> None:
    """The sandbox would fail to start it and look broken itself; of an image nothing is known."""
    with pytest.raises(SubmissionError, match=f"names the program {program}, which is not there"):
        filled_command((program,), names(path))
