from __future__ import annotations

from pathlib import Path

from pytest_evalarc.model.transcript import Transcript
from pytest_evalarc.treatments.protocol import Evidence, Staged


def staged(planned: dict[str, str]) -> Staged:
    return Staged(planned=planned, project=Path("/p"), skill_folder=".agents/skills")


def test_the_digest_follows_names_and_contents_and_not_their_order() -> None:
    """Two batches are compared only when they offered the same."""
    digest = staged({"a": "1", "b": "2"}).digest

    assert staged({"b": "2", "a": "1"}).digest == digest
    assert staged({"a": "2", "b": "1"}).digest != digest
    assert staged({"a": "1"}).digest != digest
    assert len(digest) == 64


def test_every_change_of_the_skill_folder_is_listed_with_its_kind() -> None:
    """A reader of the result must see what the session did to its own treatment."""
    evidence = Evidence(
        transcript=Transcript(events=0, interpreted=True),
        skill_folder=".agents/skills",
        planned={"kept": "1", "gone": "2", "other": "3", "ruined": "4"},
        found={"kept": "1", "other": "9", "new": "5", "ruined": ""},
    )

    assert evidence.config_changes == (
        ".agents/skills/gone: removed",
        ".agents/skills/new: added",
        ".agents/skills/other: altered",
        ".agents/skills/ruined: altered",
    )
