from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.model.planned import Outcome
from tests.documents import result_of, write_trials
from tests.reporting.test_transcripts import STREAM


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a succeeded trial; the project is the current folder."""
    found = result_of(write_trials(tmp_path), Outcome.SUCCEEDED).parent
    (found / "transcript.jsonl").write_text(STREAM)
    project = tmp_path / "project"
    (project / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "100")
    return found


def test_a_session_is_printed_without_colours_where_no_terminal_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt comes from the task, as long as that is the one of the batch."""
    assert main(["transcript", str(folder)]) == 0

    told = capsys.readouterr().out
    assert told.startswith(f"tiny with oracle: {folder.name}\n  offered: skills tidy\n")
    assert "user\n  Make total() add its arguments.\n\nagent\n  > read a.py\n    x = 1\n" in told
    assert "\x1b" not in told


def test_a_terminal_gets_colours_unless_it_wants_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`NO_COLOR` is how a user says it to every program at once."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True, raising=False)
    main(["transcript", str(folder)])
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["transcript", str(folder)])

    assert coloured.startswith("\x1b[1mtiny with oracle")
    assert "\x1b" not in capsys.readouterr().out


def test_the_prompt_of_another_task_is_not_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent was never asked what stands there now."""
    task = Path("evals/tasks/tiny/task.toml")
    task.write_text(task.read_text().replace("its arguments", "other things"))
    assert main(["transcript", str(folder)]) == 0
    assert "other things" not in capsys.readouterr().out

    assert main(["transcript", str(folder), "--tasks", "nowhere"]) == 0
    assert "user\n" not in capsys.readouterr().out


def test_a_trajectory_is_printed_or_written(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The same bytes either way, and nothing beside them."""
    assert main(["transcript", str(folder), "--atif"]) == 0
    printed = capsysbinary.readouterr().out
    assert main(["transcript", str(folder), "--atif", "out.json"]) == 0

    assert capsysbinary.readouterr().out == b""
    assert Path("out.json").read_bytes() == printed
    document = json.loads(printed)
    assert document["schema_version"] == "ATIF-v1.7"
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent"]


def test_a_trajectory_needs_the_result(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who worked, and whether it succeeded, stands there alone."""
    (folder / "result.json").write_text("{")

    assert main(["transcript", str(folder)]) == 0
    assert "warning: " in capsys.readouterr().out
    assert main(["transcript", str(folder), "--atif", "out.json"]) == 1

    assert "cannot be written as a trajectory" in capsys.readouterr().err
    assert not Path("out.json").exists()


def test_what_cannot_be_shown_is_told_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A traceback would be of no use to anybody."""
    (folder / "transcript.jsonl").unlink()
    for wrong in (folder, folder.parent, Path("gone\x1b")):
        assert main(["transcript", str(wrong)]) == 1

        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert "\x1b" not in said.err
