from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.comparison import Comparison
from tests.documents import changed, evaluation


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with evaluations, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "half.json", evaluation("says.words", "says.style"))
    write_model(tmp_path / "whole.json", evaluation())
    write_model(tmp_path / "older.json", changed(evaluation(), "runtime.toolchain", "CPython 3.10"))
    broken = evaluation(status="infrastructure_error", cause=Cause(kind="grader_broke"))
    write_model(tmp_path / "broken.json", broken)
    (tmp_path / "torn.json").write_bytes(b"{")
    edited = changed(evaluation(), "score", 0.5)
    write_model(tmp_path / "edited.json", edited)
    return tmp_path


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("names", "status", "delta"),
    [
        (("half.json", "whole.json"), 0, 0.6),
        (("whole.json", "half.json"), 1, -0.6),
        (("whole.json", "whole.json"), 0, 0.0),
    ],
)
def test_a_regression_is_status_1(
    capsysbinary: pytest.CaptureFixture[bytes], names: tuple[str, str], status: int, delta: float
) -> None:
    """A script must be able to stop for it."""
    assert main(["compare", *names]) == status

    said = capsysbinary.readouterr()
    document = json.loads(said.out)
    assert document["score_delta"] == delta
    assert document["has_regressions"] is (status == 1)
    assert said.err == b""


def test_the_document_is_written_where_it_is_asked_for(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then nothing is printed."""
    assert main(["compare", "whole.json", "half.json", "--output", "found.json"]) == 1

    assert len(read_model(files / "found.json", Comparison).regressions) == 4
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (
            ["whole.json", "older.json"],
            2,
            'runtime.toolchain: is "CPython 3.11.7" in the baseline and "CPython 3.10" in the',
        ),
        (["broken.json", "whole.json"], 2, "valid: is false in the baseline"),
        (["whole.json", "torn.json"], 4, "torn.json: line 1"),
        (["whole.json", "none.json"], 4, "none.json: cannot be read"),
        (["whole.json", "edited.json"], 4, "edited.json: score: says 0.5, but its rows give 1.0"),
        (["whole.json", "half.json", "--output", "half.json"], 4, "--output half.json: is another"),
        (["whole.json", "half.json", "--output", "no/x.json"], 4, "no/x.json: cannot be written"),
    ],
)
def test_what_cannot_be_compared_is_told_with_a_status_of_its_own(
    files: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    sentence: str,
) -> None:
    """Neither a regression nor none: a script must not take it for either."""
    half = (files / "half.json").read_bytes()

    assert main(["compare", *arguments]) == status

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"pytest-evalarc: {sentence}")
    assert said.err.count("\n") == 1
    assert (files / "half.json").read_bytes() == half


@pytest.mark.parametrize("arguments", [[], ["one.json"], ["a", "b", "c"], ["a", "b", "--other"]])
def test_a_wrong_call_has_another_status_than_every_answer(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """2 would say that the evaluations cannot be compared."""
    with pytest.raises(SystemExit) as caught:
        main(["compare", *arguments])

    assert caught.value.code == 4
    assert "usage: pytest-evalarc" in capsys.readouterr().err
