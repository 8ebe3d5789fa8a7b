from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.clients.embedded.replay import recording
from pytest_evalarc.errors import SetupError


def record(folder: Path, transcript: bytes = b"recorded") -> Path:
    (folder / "submission").mkdir(parents=True)
    (folder / "transcript.jsonl").write_bytes(transcript)
    return folder


def test_a_folder_with_one_session_serves_every_trial(tmp_path: Path) -> None:
    """A hand-made recording has no batch around it."""
    record(tmp_path)

    found = recording(tmp_path, "with-skills", 3)

    assert found.transcript == b"recorded"
    assert found.tree == tmp_path / "submission"


def test_a_kept_batch_serves_each_trial_its_own_session(tmp_path: Path) -> None:
    """Replaying a batch must give its own results again, trial by trial."""
    record(tmp_path / "trial-1-with-skills", b"one")
    record(tmp_path / "trial-1-without-skills", b"two")
    record(tmp_path / "trial-12-with-skills", b"three")

    assert recording(tmp_path, "with-skills", 1).transcript == b"one"
    assert recording(tmp_path, "without-skills", 1).transcript == b"two"
    assert recording(tmp_path, "with-skills", 12).tree.parent.name == "trial-12-with-skills"


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("transcript.jsonl", "holds no transcript.jsonl for trial 2 of baseline"),
        ("submission", "holds no submission for trial 2 of baseline"),
        ("", "holds no transcript.jsonl for trial 2 of baseline"),
    ],
)
def test_an_incomplete_recording_is_named_in_one_sentence(
    tmp_path: Path, missing: str, problem: str
) -> None:
    """The user chose the folder, and can only mend what is named."""
    if missing:
        home = record(tmp_path / "trial-2-baseline")
        (home / missing).rename(tmp_path / "elsewhere")

    with pytest.raises(SetupError) as caught:
        recording(tmp_path, "baseline", 2)

    assert problem in caught.value.problem
    assert str(tmp_path) in caught.value.where
    assert "transcript.jsonl and submission/" in caught.value.hint
    assert "\n" not in str(caught.value)
