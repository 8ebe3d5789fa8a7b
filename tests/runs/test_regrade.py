from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.errors import DocumentError, SubmissionError, UsageError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.regrade import write_regrade
from pytest_evalarc.runs.prepare import Trial
from pytest_evalarc.runs.regrade import (
    KeptBatch,
    kept_batches,
    next_number,
    objection,
    regrade_path,
    require_present,
    run_regrade,
)
from tests.evals import Evals
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]


@pytest.fixture
def evals(make: Make) -> Evals:
    return make()


@pytest.fixture
def trial(evals: Evals) -> Trial:
    return evals.trial()


@pytest.fixture
def result(evals: Evals, trial: Trial) -> TrialResult:
    return evals.run(trial)


def again(evals: Evals, trial: Trial, result: TrialResult, number: int = 1) -> Regrade:
    found = run_regrade(result, trial.folder, evals.task, evals.batch, number=number)
    write_model(regrade_path(trial.folder, number), found)
    return found


def test_the_same_submission_gets_the_same_verdicts(
    evals: Evals, trial: Trial, result: TrialResult
) -> None:
    """What is kept is what was graded, and one grader grades both times."""
    found = again(evals, trial, result)

    assert found.code == result.code
    assert found.grading.submission_sha256 == result.gradings[0].submission_sha256
    assert (found.outcome, found.success) == (result.outcome, result.success)


def test_a_regrading_of_another_trial_is_refused(
    evals: Evals, trial: Trial, result: TrialResult
) -> None:
    """A file that was moved would be credited to whoever it lies beside."""
    again(evals, trial, result)
    path = regrade_path(trial.folder, 1)
    document = json.loads(path.read_bytes())
    path.write_bytes(dumps({**document, "trial": 2}))

    with pytest.raises(DocumentError, match="is not of this trial"):
        write_regrade(evals.folder, 1)


def test_a_submission_out_of_which_a_secret_was_struck_is_not_graded_again(
    trial: Trial, result: TrialResult
) -> None:
    """It was graded as it was left; what is kept is another."""
    struck = result.model_copy(update={"redacted_files": ("submission/app/__init__.py",)})

    assert objection(result, trial.folder) is None
    assert (
        objection(result.model_copy(update={"redacted_files": ("stderr.log",)}), trial.folder)
        is None
    )
    assert objection(struck, trial.folder) == (
        "a secret was struck out of submission/app/__init__.py, so it is not as it was left"
    )


def test_a_submission_that_another_trial_left_is_refused(
    evals: Evals, trial: Trial, result: TrialResult
) -> None:
    """Files and manifest agree, and yet it is not what this trial's result tells of."""
    grading = result.gradings[0].model_copy(update={"submission_sha256": "0" * 64})
    other = result.model_copy(update={"gradings": (grading,)})

    with pytest.raises(SubmissionError, match="its submission is not the one that was graded"):
        run_regrade(other, trial.folder, evals.task, evals.batch, number=1)


def test_numbers_count_up_over_all_batches_of_a_session(tmp_path: Path, evals: Evals) -> None:
    """None is taken twice, whatever else lies there."""
    first, second = (KeptBatch(tmp_path / name, evals.plan) for name in ("a", "b"))
    assert next_number([]) == next_number([first, second]) == 1
    for path in (
        *("a/benchmark-regrade-2.json", "a/trial-1-x/regrade-3.json", "b/trial-1-x/regrade-4.json"),
        *("b/benchmark-regrade-07.json", "b/regrade-x.json", "b/trial-1-x/.regrade-9.json.lock"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()

    assert next_number([first, second]) == 5


def test_a_copy_of_a_batch_can_be_graded_again_anywhere(
    evals: Evals, trial: Trial, result: TrialResult, tmp_path: Path
) -> None:
    """Results are archived and sent around."""
    evals.folder.rename(tmp_path / "copy")

    (kept,) = kept_batches(tmp_path / "copy", None)

    assert kept == (tmp_path / "copy", evals.plan)
    assert again_in(evals, kept, trial, result).success == "pass"


def again_in(evals: Evals, kept: KeptBatch, trial: Trial, result: TrialResult) -> Regrade:
    folder = kept.folder / trial.entry.folder
    return run_regrade(result, folder, evals.task, evals.batch, number=1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sha256": "0" * 64}, "task.content_hash"),
        ({"version": "9"}, "task.version"),
        ({"deadlines": {"grading": 1.0}}, "deadlines_secs.grading"),
        ({}, "sandbox"),
        ({}, "image"),
    ],
)
def test_a_batch_of_another_task_or_boundary_is_refused(
    evals: Evals, change: dict[str, object], field: str
) -> None:
    """Both gradings stand in one table, so both must mean the same."""
    deadlines = change.pop("deadlines", {})
    assert isinstance(deadlines, dict)
    changed = {"deadlines": replace(evals.task.deadlines, **deadlines)}
    task = replace(evals.task, **{**change, **changed})
    kept = KeptBatch(evals.folder, evals.plan)
    require_present(kept, evals.task, sandbox="bwrap")

    sandbox = "local" if field == "sandbox" else "bwrap"
    image = "another" if field == "image" else None
    with pytest.raises(UsageError, match=f"planned with another {field}"):
        require_present(kept, task, sandbox=sandbox, image=image)
