"""The long form: it counts what it tried, ends in time, and tells of what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fuzz import campaign

HEAD = "from hypothesis import given, strategies as st\n\n@given(st.integers())\ndef test_it(n):\n"


@pytest.fixture
def fuzz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of tests in place of the real one, whose long form tries 30 examples."""
    folder = tmp_path / "it"
    folder.mkdir()
    (folder / "conftest.py").write_text(
        Path(campaign.__file__).with_name("conftest.py").read_text()
    )
    profile = (
        'from hypothesis import settings\nsettings.register_profile("fuzz", max_examples=30)\n'
    )
    (tmp_path / "conftest.py").write_text(profile)
    monkeypatch.setattr(campaign, "FOLDER", folder)
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    return folder


@pytest.mark.slow
def test_a_round_counts_its_examples(fuzz: Path) -> None:
    """Whoever claims that nothing was found has to say among how many."""
    (fuzz / "test_it.py").write_text(f"{HEAD}    pass\n")
    told = campaign.Campaign()

    for _ in range(2):
        campaign.play_round(told, 600, [])

    assert (told.rounds, told.examples, told.findings) == (2, 60, [])
    assert told.by_test == {"it/test_it.py::test_it": 60}


@pytest.mark.slow
def test_a_round_beyond_its_time_is_cut_off_and_no_finding(fuzz: Path) -> None:
    """The end of the time comes in the middle of a round, nearly always."""
    (fuzz / "test_it.py").write_text("import time\n\ndef test_it():\n    time.sleep(600)\n")
    told = campaign.Campaign()

    campaign.play_round(told, 0, [])

    assert (told.rounds, told.examples, told.findings) == (0, 0, [])


@pytest.mark.slow
def test_a_finding_ends_the_campaign_and_is_told(fuzz: Path) -> None:
    """What was tried before a fix says nothing of what is there after it."""
    (fuzz / "test_it.py").write_text(f"{HEAD}    assert n < 0\n")

    status = campaign.main(["--minutes", "60", "--output", str(fuzz / "fuzz.json")])

    told = json.loads((fuzz / "fuzz.json").read_bytes())
    (found,) = told["findings"]
    assert (status, told["rounds"]) == (campaign.FAILED, 0)
    assert "assert 0 < 0" in found and found.startswith("seed ")
    assert told["examples"] == sum(told["by_test"].values()) > 0


@pytest.mark.slow
def test_a_finding_before_the_time_was_over_is_told(fuzz: Path) -> None:
    """An interrupted pytest says of its status only that it was interrupted."""
    cut = "    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(600)\n"
    last = f"import os, signal, time\n\ndef test_last():\n{cut}"
    (fuzz / "test_it.py").write_text(f"{HEAD}    assert n < 0\n\n{last}")
    told = campaign.Campaign()

    # The order is that of the file, as in this project and unlike elsewhere.
    campaign.play_round(told, 600, ["-p", "no:randomly"])

    (found,) = told.findings
    assert "pytest ended with 2" in found and "assert 0 < 0" in found
