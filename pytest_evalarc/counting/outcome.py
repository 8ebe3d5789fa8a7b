"""Where a planned trial ends, and the reference's flat view of its code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from pytest_evalarc.counting.validity import infrastructure_fault
from pytest_evalarc.model.base import Cause
from pytest_evalarc.model.grading import CheckStatus, Grading, StepRow
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.trial import Decision, Verdict

_NAMES_TOLD = 5


class CauseKind(StrEnum):
    """The words that a trial's outcome is counted by."""

    PREPARATION = "preparation"
    PRELAUNCH = "prelaunch"
    NOT_REACHED = "not_reached"
    INTERRUPTED = "interrupted"
    WORKER_CRASH = "worker_crash"
    PYTEST_TIMEOUT = "pytest_timeout"
    BUDGET = "budget"
    ESCAPE = "escape"
    ARM_MISMATCH = "arm_mismatch"
    TIMEOUT = "timeout"
    CLIENT_ERROR = "client_error"
    API_UNAVAILABLE = "api_unavailable"
    API_REFUSED = "api_refused"
    GRADING = "grading"
    CODE = "code"
    EXPECTATION = "expectation"


class Ending(NamedTuple):
    """An outcome and why; a success alone has no cause."""

    outcome: Outcome
    cause: Cause | None


def decide_outcome(
    execution: Execution,
    *,
    fault: Cause | None = None,
    setup: Cause | None = None,
    cancellation: Cause | None = None,
    findings: Sequence[Cause] = (),
    grading: Grading | None = None,
    decisions: Sequence[Decision] = (),
) -> Ending:
    """Return the one place where a planned trial ends; the first rule that applies decides.

    Args:
        execution: How the client session ended.
        fault: What kept the session from its end, as its client tells.
        setup: Why preparation or a pre-launch check failed (`preparation`, `prelaunch`).
        cancellation: Why no countable end was reached (`interrupted`, `worker_crash`, …).
        findings: What voids the isolation (`escape`, `arm_mismatch`); the first one is told.
        grading: The last grading; None when there is none.
        decisions: Expectations; empty without treatment. A verdict of None is not judged.

    Returns:
        Outcome and cause. A session that never started, with no word on why, was not reached;
        a completed one without a grading is excluded, as it can be graded again.
    """
    if setup:
        return Ending(Outcome.SETUP_FAILURE, setup)
    if cancellation or execution is Execution.NOT_STARTED:
        unreached = _cause(CauseKind.NOT_REACHED, "the session never started")
        return Ending(Outcome.CANCELLED, cancellation or unreached)
    if findings:
        return Ending(Outcome.EXCLUDED_ISOLATION, findings[0])
    # Before the grading is looked at: a broken grading must not move an unfinished
    # session out of the count.
    if execution is not Execution.COMPLETED:
        return Ending(Outcome.FAILED, _unfinished(execution, fault))
    return _by_code(grading) or _by_expectations(decisions)


def success_of(outcome: Outcome) -> Verdict | None:
    """Return a trial's `success`; None for a trial that does not count."""
    verdicts: dict[Outcome, Verdict] = {
        Outcome.SUCCEEDED: "pass",
        Outcome.FAILED: "fail",
        Outcome.INCONCLUSIVE: "inconclusive",
    }
    return verdicts.get(outcome)


def code_view(grading: Grading, *, fmt_step: str) -> dict[str, JsonValue]:
    """Return the reference's flat `code` keys, re-derived from a grading.

    Args:
        grading: The last grading of a trial.
        fmt_step: The toolchain's name of the formatter step; its key is always there.

    Returns:
        `pass`, `fail` or None by step; `hidden` with the same by check, over all its seeds;
        `edits_outside_editable`. None is: skipped, absent, or not ours to blame it for.
    """
    steps: dict[str, JsonValue] = {step.name: _step_word(step) for step in grading.steps}
    formatted = steps.pop(fmt_step, None)
    statuses: dict[str, list[CheckStatus]] = {}
    for row in grading.rows:
        statuses.setdefault(row.check, []).append(row.status)
    hidden: dict[str, JsonValue] = {check: _check_word(seen) for check, seen in statuses.items()}
    return {
        **steps,
        "hidden": hidden,
        fmt_step: formatted,
        "edits_outside_editable": list(grading.edits_outside_editable),
    }


def _unfinished(execution: Execution, fault: Cause | None) -> Cause:
    """Return why a session did not complete: a fault is more than the word for its ending.

    A deadline that an agent used up is the agent's; one that passed while the model's API was
    out of reach is not, and neither is told as the other.
    """
    ended = CauseKind(execution.value)
    if fault is None:
        return _cause(ended, f"the session ended in {ended.value}")
    if ended is CauseKind.TIMEOUT and fault.kind == CauseKind.CLIENT_ERROR:
        return _cause(ended, fault.detail)
    return fault


def _by_code(grading: Grading | None) -> Ending | None:
    fault = infrastructure_fault(grading) if grading else "no grading was kept"
    if grading is None or fault:
        return Ending(Outcome.EXCLUDED_GRADING, _cause(CauseKind.GRADING, fault or ""))
    if not grading.code_passed:
        return Ending(Outcome.FAILED, _cause(CauseKind.CODE, _failures(grading)))
    return None


def _by_expectations(decisions: Sequence[Decision]) -> Ending:
    for verdict, outcome in (("fail", Outcome.FAILED), ("inconclusive", Outcome.INCONCLUSIVE)):
        names = [decision.name for decision in decisions if decision.verdict == verdict]
        if names:
            return Ending(outcome, _cause(CauseKind.EXPECTATION, _listed(names)))
    return Ending(Outcome.SUCCEEDED, None)


def _failures(grading: Grading) -> str:
    if grading.cause:
        return grading.cause.detail or grading.cause.kind
    steps = [step.name for step in grading.steps if step.status == "fail"]
    checks = [row.check for row in grading.rows if not row.passed]
    return _listed([*steps, *checks])


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = len(distinct) - _NAMES_TOLD
    return ", ".join(distinct[:_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")


def _step_word(step: StepRow) -> str | None:
    return step.status if step.status in ("pass", "fail") else None


def _check_word(statuses: Iterable[CheckStatus]) -> str | None:
    seen = set(statuses)
    if seen & {"failed", "agent_error"}:
        return "fail"
    return "pass" if seen == {"passed"} else None


def _cause(kind: CauseKind, detail: str) -> Cause:
    return Cause(kind=kind.value, detail=detail)
