from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.candidate import EvaluationDoc
from tests.documents import changed, evaluation


def write(folder: Path, *entries: tuple[float, EvaluationDoc]) -> Path:
    path = folder / "checkpoints.json"
    value: Any = [
        {"elapsed_seconds": seconds, "evaluation": document.to_json()}
        for seconds, document in entries
    ]
    path.write_bytes(dumps(value))
    return path


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Return the checkpoints of a score of 0.4 at 120 s and of 1 at 300 s."""
    return write(tmp_path, (120, evaluation("says.words", "says.style")), (300, evaluation()))


def test_the_document_is_printed(
    checkpoints: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """72 and 300 of 600."""
    assert main(["trajectory", str(checkpoints), "--budget-seconds", "600"]) == 0

    document = json.loads(capsysbinary.readouterr().out)
    assert document["normalized_score_area"] == 0.62
    assert document["clock_source"] == "caller-reported"


def test_document_and_picture_are_written_where_they_are_asked_for(
    checkpoints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then nothing is printed, and writing them again changes no byte."""
    output, svg = checkpoints.with_name("area.json"), checkpoints.with_name("area.svg")
    call = ["trajectory", str(checkpoints), "--budget-seconds=600"]
    call += ["--output", str(output), "--svg", str(svg)]

    assert main(call) == 0
    first = output.read_bytes(), svg.read_bytes()
    assert main(call) == 0

    assert (output.read_bytes(), svg.read_bytes()) == first
    assert json.loads(first[0])["first_resolved_seconds"] == 300
    assert ET.fromstring(first[1]).tag == "{http://www.w3.org/2000/svg}svg"
    assert capsys.readouterr().out == ""
    assert main(["verify", str(output)]) == 0


def test_no_checkpoints_have_no_area(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """An agent may leave nothing within its budget."""
    assert main(["trajectory", str(write(tmp_path)), "--budget-seconds", "600"]) == 0

    assert json.loads(capsysbinary.readouterr().out)["normalized_score_area"] == 0.0


def test_checkpoints_that_were_made_otherwise_are_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The field is named, with both values."""
    other = changed(evaluation(), "grader_sha256", "e" * 64)
    path = write(tmp_path, (1, evaluation()), (2, other))

    assert main(["trajectory", str(path), "--budget-seconds", "600"]) == 2

    assert capsys.readouterr().err == (
        f'pytest-evalarc: {path}: grader_sha256: is "{"b" * 64}" in checkpoint 1 and '
        f'"{"e" * 64}" in checkpoint 2; compare only what was evaluated in the same way\n'
    )


@pytest.mark.parametrize("budget", ["0", "-5", "nan", "inf"])
def test_a_budget_that_is_none_is_told(
    checkpoints: Path, capsys: pytest.CaptureFixture[str], budget: str
) -> None:
    """One sentence, and nothing is written."""
    svg = checkpoints.with_name("area.svg")

    assert main(["trajectory", str(checkpoints), f"--budget-seconds={budget}", f"--svg={svg}"]) == 4

    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "is no budget of time; give a number above 0" in said.err
    assert not svg.exists()


def test_outputs_that_would_overwrite_each_other_are_refused(
    checkpoints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last one written would stand for both."""
    before = checkpoints.read_bytes()
    same = str(checkpoints.with_name("one"))
    call = ["trajectory", str(checkpoints), "--budget-seconds=600"]

    assert main([*call, "--output", same, "--svg", same]) == 4
    assert main([*call, "--svg", str(checkpoints)]) == 4

    assert checkpoints.read_bytes() == before
    assert capsys.readouterr().err.count("is another file of this call; name a new one") == 2


@pytest.mark.parametrize("words", [[], ["--budget-seconds=many"]])
def test_a_call_without_a_budget_is_wrong(
    checkpoints: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """No default would be right for anybody."""
    with pytest.raises(SystemExit) as caught:
        main(["trajectory", str(checkpoints), *words])

    assert caught.value.code == 4
    assert "--budget-seconds" in capsys.readouterr().err
