from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from tests.reporting.page.batches import Batch, Page


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """Return a batch whose project is the current folder."""
    found = Batch(tmp_path, with_={"succeeded": 2}, without={"failed": 2})
    (tmp_path / "project/pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path / "project")
    return found


def test_a_page_is_written_and_named(batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever gives only the results finds the page where they are."""
    assert main(["report", "../results"]) == 0

    assert capsys.readouterr().out == "evalarc.html\n"
    found = Page(Path("evalarc.html").read_text("utf-8"))
    assert found.all("h1")[0].text == "tiny"
    data = found.trials["trial:tiny/oracle/trial-1-with-skills"]
    changed = next(b for b in data["blocks"] if b["heading"] == "What the agent changed")
    assert changed["files"][0]["path"] == "app/__init__.py"


def test_the_page_lies_where_it_is_asked_for(batch: Batch) -> None:
    """Its folder is made: a page is often the first thing in it."""
    assert main(["report", "../results", "--batch", "b1", "-o", "new/pages/night.html"]) == 0

    found = Page(Path("new/pages/night.html").read_text("utf-8"))
    links = found.trials["trial:tiny/oracle/trial-1-with-skills"]["blocks"][-1]["links"]
    assert all((Path("new/pages") / address).exists() for _, address in links)


def test_what_is_left_out_is_told_on_the_terminal_too(
    batch: Batch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page that is made by a script may be looked at much later."""
    (batch.folder / "trial-1-with-skills/result.json").write_text("{")

    assert main(["report", "../results"]) == 0

    assert "left out: ../results/tiny/oracle/b1/trial-1-with-skills/result.json" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["../nowhere"], "../nowhere: holds no results"),
        (["../results", "--batch", "b9"], "../results: holds no batch 'b9'"),
        (["../results", "-o", "../results"], "-o ../results: is another file of this call"),
        (["../results", "-o", "pytest.ini/a.html"], "pytest.ini: cannot be made"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    batch: Batch, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, and the status says so."""
    assert main(["report", *arguments]) == 1

    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not Path("evalarc.html").exists()
