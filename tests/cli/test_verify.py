from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.reporting.batch import write_document
from tests.documents import audit, evaluation, result_of, write_trials


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two true documents and a false one, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "audit.json", audit())
    write_model(tmp_path / "evaluation.json", evaluation("adds.sums"))
    lie = {**json.loads((tmp_path / "audit.json").read_bytes()), "mutation_score": 0.5}
    (tmp_path / "lie.json").write_bytes(dumps(lie))
    return tmp_path


def test_documents_that_agree_are_status_0(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is named, so nobody takes one that was not looked at for one that was."""
    assert main(["verify", "audit.json", "evaluation.json"]) == 0

    said = capsys.readouterr()
    assert said.out == "audit.json: agrees with its rows\nevaluation.json: agrees with its rows\n"
    assert said.err == ""


def test_a_document_that_disagrees_is_status_1_and_the_others_are_still_looked_at(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, field, and both values."""
    assert main(["verify", "lie.json", "audit.json"]) == 1

    assert capsys.readouterr().out == (
        "lie.json: mutation_score: says 0.5, its rows give 1.0\naudit.json: agrees with its rows\n"
    )


def test_a_document_that_cannot_be_read_is_status_4_whatever_the_others_are(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is known of it, which is worse than a lie that is."""
    (files / "empty").mkdir()

    assert main(["verify", "none.json", "lie.json", "empty"]) == 4

    said = capsys.readouterr()
    assert said.out.startswith("lie.json: mutation_score")
    assert [line.partition(";")[0] for line in said.err.splitlines()] == [
        "pytest-evalarc: none.json: cannot be read: No such file or directory",
        "pytest-evalarc: empty: holds no document with derived numbers",
    ]


def test_a_folder_stands_for_every_document_below_it(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody types the names of ten thousand results; what agrees among them is counted."""
    trials = write_trials(files)
    write_document(trials)
    (trials.parent / "latest").unlink(missing_ok=True)
    (trials.parent / "latest").symlink_to(trials.name)
    (trials / "notes.json").write_text("{", "utf-8")
    torn = result_of(trials, Outcome.SUCCEEDED)
    count = len(list(trials.glob("trial-*/result.json")))
    whole = torn.read_bytes()

    assert main(["verify", str(trials.parent), "audit.json"]) == 0
    agree = f"{trials.parent}: {count + 1} of {count + 1} documents agree with their rows\n"
    assert capsys.readouterr().out == f"{agree}audit.json: agrees with its rows\n"

    torn.write_bytes(whole[:100])
    assert main(["verify", str(trials.parent), "audit.json"]) == 4
    said = capsys.readouterr()
    # The benchmark rests on the torn result, so neither is known to agree.
    agree = f"{trials.parent}: {count - 1} of {count + 1} documents agree with their rows\n"
    assert said.out == f"{agree}audit.json: agrees with its rows\n"
    assert [str(torn) in line for line in said.err.splitlines()] == [True, True]


def test_a_benchmark_over_an_edited_result_is_status_1(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lie lies one file below, and is found all the same."""
    folder = write_trials(files)
    _, benchmark = write_document(folder)
    assert main(["verify", str(benchmark)]) == 0
    result = result_of(folder, Outcome.FAILED)
    document = json.loads(result.read_bytes())
    result.write_bytes(dumps({**document, "success": "pass"}))

    assert main(["verify", str(benchmark), str(result)]) == 1

    said = capsys.readouterr()
    assert 'success: says "pass", but its rows give "fail"; it was edited' in said.err
    assert said.out.endswith('success: says "pass", its rows give "fail"\n')


def test_a_document_that_is_wrong_everywhere_does_not_fill_the_screen(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was edited is among the first fields, or it is another document altogether."""
    document = json.loads((files / "audit.json").read_bytes())
    evaluations = [mutant["evaluation"] for mutant in document["mutants"]]
    for evaluated in (document["reference"], *evaluations):
        for row in evaluated["cases"]:
            row["verdicts"] = dict.fromkeys(row["verdicts"], False)
            row["status"] = "failed"
    (files / "audit.json").write_bytes(dumps(document))

    assert main(["verify", "audit.json"]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 21
    assert lines[-1].startswith("audit.json: and ") and lines[-1].endswith(" more fields")
