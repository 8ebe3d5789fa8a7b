"""What each item runs: plain functions with ordinary fixture arguments."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT, STARTER
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.task import Task

if TYPE_CHECKING:
    from pytest_evalarc.model.grading import CheckRow, Grading
    from pytest_evalarc.model.trial import TrialResult
    from pytest_evalarc.plugin.session import EvalSession, TrialHandle


class Told(Exception):  # noqa: N818 - the base of what is told as a sentence.
    """Something that an item tells in one sentence, without a traceback."""


class Failed(Told):
    """The run fails: a control, a task or the harness is not as it must be."""


class Missed(Told):
    """The agent missed it: the measurement, not a defect of the run."""


class Inconclusive(Told):
    """The evidence cannot decide."""


class Excluded(Told):
    """The trial does not count."""


class Errored(Told):
    """The trial never got to where it counts."""


@pytest.mark.evalarc_validate
def refuse(request: pytest.FixtureRequest) -> None:
    """Tell every problem of an invalid task."""
    raise Failed(request.node.leaf.subject)


@pytest.mark.evalarc_validate
def validate(evalarc_task: Task, evalarc_session: EvalSession) -> None:
    """A task that could be read is valid; what is doubtful in it is a warning."""
    for doubt in evalarc_session.doubts(evalarc_task):
        warnings.warn(pytest.PytestWarning(doubt), stacklevel=1)


@pytest.mark.evalarc_audit
def reference(
    evalarc_task: Task, evalarc_session: EvalSession, request: pytest.FixtureRequest
) -> None:
    """The reference passes the check, and does so again."""
    check = request.node.leaf.subject
    for control in request.node.leaf.controls:
        grading = evalarc_session.runs.control(evalarc_task, control)
        _require_clean(grading)
        row = _row(grading, check)
        if row is None or not row.passed:
            again = " when it was graded again" if control == REFERENCE_REPEAT else ""
            detail = row.detail if row is not None else "it was not run"
            raise Failed(f"the reference fails {check}{again}: {detail}")
    _require_steps(evalarc_session.runs.control(evalarc_task, REFERENCE))


@pytest.mark.evalarc_audit
def starter(evalarc_task: Task, evalarc_session: EvalSession) -> None:
    """The bare starter fails something: otherwise the task asks for nothing."""
    grading = evalarc_session.runs.control(evalarc_task, STARTER)
    _require_clean(grading)
    if grading.code_passed:
        raise Failed("the bare starter passes everything, so the checks ask for nothing")


@pytest.mark.evalarc_audit
def mutant(
    evalarc_task: Task, evalarc_session: EvalSession, request: pytest.FixtureRequest
) -> None:
    """The declared fault is caught, by behaviour and in its dimension."""
    found = evalarc_session.runs.judge_mutant(evalarc_task, request.node.leaf.subject)
    if found.class_ != "detected":
        target = found.target_dimension
        deciding = [check.id for check in evalarc_task.checks if target in check.dimensions]
        raise Failed(
            f"mutant {found.name} is {found.class_}: {found.reason}; "
            f"{target} is judged by {', '.join(deciding)}"
        )


@pytest.mark.evalarc_trial
def run(evalarc_trial: TrialHandle) -> None:
    """Run the trial; what it amounts to is said by the items beside it."""
    result = evalarc_trial.result
    _require_started(result)
    _require_counted(result)
    if result.execution is not Execution.COMPLETED:
        raise Missed(_told(result))


@pytest.mark.evalarc_trial
@pytest.mark.evalarc_check
def check(evalarc_trial: TrialHandle, request: pytest.FixtureRequest) -> None:
    """The submission passes a hidden check."""
    name = request.node.leaf.subject
    result = _countable(evalarc_trial)
    row = _row(result.gradings[-1], name) if result.gradings else None
    if row is None:
        raise Missed(f"{name} was not run: {_told(result)}")
    if not row.passed:
        raise Missed(f"the submission misses {name}: {row.detail or row.status}")


@pytest.mark.evalarc_trial
@pytest.mark.evalarc_expectation
def expectation(evalarc_trial: TrialHandle, request: pytest.FixtureRequest) -> None:
    """What the task's author expects of the treatment holds."""
    name = request.node.leaf.subject
    result = _countable(evalarc_trial)
    decisions = result.expectations.decisions if result.expectations else ()
    decision = next((found for found in decisions if found.name == name), None)
    if decision is None or decision.verdict is None:
        reason = "; ".join(decision.rests_on) if decision else "nothing was decided"
        pytest.skip(f"{name} is not judged: {reason}")
    if decision.verdict == "pass":
        return
    told = f"{name}: {'; '.join(decision.rests_on)}"
    raise (Missed if decision.verdict == "fail" else Inconclusive)(told)


@pytest.mark.evalarc_trial
def success(evalarc_trial: TrialHandle) -> None:
    """The trial succeeds as a whole."""
    result = _countable(evalarc_trial)
    if result.outcome is Outcome.FAILED:
        raise Missed(_told(result))
    if result.outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive(_told(result))


def _countable(trial: TrialHandle) -> TrialResult:
    """Return the result of a trial that counts; skip or exclude what does not."""
    result = trial.result
    if result.outcome in (Outcome.SETUP_FAILURE, Outcome.CANCELLED):
        pytest.skip(f"the trial did not start: {_told(result)}")
    _require_counted(result)
    return result


def _require_started(result: TrialResult) -> None:
    if result.outcome in (Outcome.SETUP_FAILURE, Outcome.CANCELLED):
        raise Errored(f"{result.outcome.replace('_', ' ')}: {_told(result)}")


def _require_counted(result: TrialResult) -> None:
    if result.outcome in (Outcome.EXCLUDED_GRADING, Outcome.EXCLUDED_ISOLATION):
        raise Excluded(_told(result))


def _told(result: TrialResult) -> str:
    if result.cause is None:
        return result.outcome.value
    return (
        f"{result.cause.kind}: {result.cause.detail}" if result.cause.detail else result.cause.kind
    )


def _row(grading: Grading, check: str) -> CheckRow | None:
    """Return the row of a check; of several seeds, the first that did not pass."""
    rows = [row for row in grading.rows if row.check == check]
    return next((row for row in rows if not row.passed), rows[0] if rows else None)


def _require_clean(grading: Grading) -> None:
    """Fail an audit item whose grading broke on our side."""
    if grading.status == "infrastructure_error":
        detail = grading.cause.detail if grading.cause else ""
        raise Failed(f"it could not be graded: {detail}")
    if grading.cause is not None:
        raise Failed(f"it could not be graded: {grading.cause.detail}")


def _require_steps(grading: Grading) -> None:
    for step in grading.steps:
        if step.status not in ("pass", "skipped"):
            raise Failed(f"the reference fails the step {step.name}: {step.detail}")
