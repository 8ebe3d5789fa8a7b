"""Tests of what all trials of a plan must have met alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.counting.met import met
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.trial import TrialResult
from tests.batches import write_batch
from tests.documents import result_of, write_trials


@pytest.fixture
def result(tmp_path: Path) -> TrialResult:
    """Return a trial that ran to its end and was graded."""
    folder = write_batch(tmp_path, {"without-skills": [None], "with-skills": [None]})
    return read_model(folder / "trial-1-with-skills" / "result.json", TrialResult)


def test_a_graded_trial_tells_tools_boundary_and_grader(result: TrialResult) -> None:
    """A value is comparable by its field, which is what a refusal names."""
    found = dict(met(result))

    assert found["client.version"] == result.client.version
    assert found["os"] == result.os
    assert found["isolation.record"] == result.isolation.record
    assert found["gradings.grader_sha256"] == "b" * 64
    assert found["gradings.runtime"] == result.gradings[0].runtime


def test_what_a_trial_does_not_know_contradicts_nothing(tmp_path: Path) -> None:
    """One that never started met no sandbox, and says what was planned of it."""
    path = result_of(write_trials(tmp_path), Outcome.SETUP_FAILURE)

    found = dict(met(read_model(path, TrialResult)))

    assert found.keys() <= {"os", "client.sha256", "toolchain"}


def test_a_session_that_was_cut_off_tells_no_version(result: TrialResult) -> None:
    """The client had no time to say it, and what its program says may be spelled otherwise."""
    cut_off = result.model_copy(update={"execution": Execution.TIMEOUT})

    assert "client.version" not in dict(met(cut_off))


def test_a_grading_that_broke_tells_no_grader(result: TrialResult) -> None:
    """Its digests may be of nothing."""
    grading = result.gradings[0].model_copy(update={"status": "infrastructure_error"})
    broken = result.model_copy(update={"gradings": (grading,)})

    assert not any(field.startswith("gradings") for field in dict(met(broken)))
