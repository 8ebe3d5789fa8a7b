"""The items of what is only graded: a candidate's checks, and kept submissions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.counting.validity import infrastructure_fault
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin.bodies import Excluded, Failed, Missed
from pytest_evalarc.plugin.candidate import Candidate
from pytest_evalarc.plugin.evaluations import unmet
from pytest_evalarc.plugin.nodes import EvalItem, Group, Leaf, TaskFile, trial_name
from pytest_evalarc.plugin.regrading import KeptTrial, Regrading
from pytest_evalarc.plugin.timeouts import TimedOut, allow
from pytest_evalarc.runs.regrade import KeptBatch

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession


def reworked(file: TaskFile, task: Task, work: Candidate | Regrading) -> Iterator[Group]:
    """Yield what stands beside the validation when nothing is run and something is graded."""
    if isinstance(work, Candidate):
        group = Group.new(file, "submission", 1, partial(_checks, task=task))
        allow(group, task.deadlines.grading)
        yield group
        return
    for kept in work.of(task):
        yield Group.new(file, kept.plan.client, 1, partial(_configurations, task=task, kept=kept))


def names_below(work: Candidate | Regrading, task: Task, names: list[str]) -> tuple[str, ...]:
    """Return what a node of a task is called below, given the names down to it."""
    if isinstance(work, Candidate):
        leaves = (*(check.id for check in task.checks), "success")
        return {0: ("validate", "submission"), 1: leaves}.get(len(names), ())
    plans = {kept.plan.client: kept.plan for kept in work.of(task)}
    if not names:
        return ("validate", *plans)
    trials = plans[names[0]].trials if names[0] in plans else ()
    match names[1:]:
        case []:
            return tuple(dict.fromkeys(entry.configuration for entry in trials))
        case [configuration]:
            chosen = (entry for entry in trials if entry.configuration == configuration)
            return tuple(trial_name(entry) for entry in chosen)
        case [_, _] if trials:
            return ("regrade",)
    return ()


# A candidate.


@pytest.mark.evalarc_check
def check(evalarc_task: Task, evalarc_session: EvalSession, request: pytest.FixtureRequest) -> None:
    """The candidate passes a hidden check."""
    name = request.node.leaf.subject
    grading = _judged(evalarc_session, evalarc_task)
    rows = [row for row in grading.rows if row.check == name]
    missed = [row for row in rows if not row.passed]
    if missed or not rows:
        detail = missed[0].detail or missed[0].status if missed else "it was not run"
        raise Missed(f"the candidate misses {name}: {detail}")


def success(evalarc_task: Task, evalarc_session: EvalSession) -> None:
    """The candidate is resolved: it passes every step and every check."""
    _judged(evalarc_session, evalarc_task)
    evaluation = _candidate(evalarc_session).evaluation(evalarc_task)
    if not evaluation.resolved:
        raise Missed(f"the candidate is not resolved: {'; '.join(unmet(evaluation))}")


def _checks(group: Group, task: Task) -> Iterator[EvalItem]:
    for each in task.checks:
        line = task.lines.get(f"checks.{each.id}", 1)
        yield EvalItem.new(group, Leaf(each.id, check, "candidate", line, each.id))
    yield EvalItem.new(group, Leaf("success", success, "candidate", 1))


def _candidate(evals: EvalSession) -> Candidate:
    if not isinstance(evals.work, Candidate):
        raise AssertionError("these items are collected for a candidate alone")
    return evals.work


def _judged(evals: EvalSession, task: Task) -> Grading:
    """Return the grading; fail the run when the harness broke, as nothing is known then."""
    try:
        with evals.timeouts.told():
            grading = _candidate(evals).grading(task)
    except TimedOut as error:
        pytest.fail(str(error), pytrace=False)
    fault = infrastructure_fault(grading)
    if fault is not None:
        raise Failed(f"the candidate could not be graded: {fault}")
    return grading


# Kept submissions.


@pytest.mark.evalarc_trial
def regrade(
    evalarc_task: Task, evalarc_session: EvalSession, request: pytest.FixtureRequest
) -> None:
    """What a trial left is graded again; what that changes is told at the end."""
    work = evalarc_session.work
    if not isinstance(work, Regrading):
        raise AssertionError("these items are collected for a re-grading alone")
    try:
        with evalarc_session.timeouts.told():
            again = work.again(request.node.parent.kept, evalarc_task)
    except TimedOut as error:
        pytest.fail(str(error), pytrace=False)
    fault = infrastructure_fault(again.grading)
    if fault is not None:
        raise Excluded(f"it could not be graded: {fault}")


class KeptGroup(Group):
    """A trial that ended some time ago."""

    kept: KeptTrial


def _configurations(client: Group, task: Task, kept: KeptBatch) -> Iterator[Group]:
    for configuration in kept.plan.configurations:
        yield Group.new(client, configuration, 1, partial(_trials, task=task, kept=kept))


def _trials(configuration: Group, task: Task, kept: KeptBatch) -> Iterator[Group]:
    for entry in kept.plan.trials:
        if entry.configuration == configuration.name:
            trial = KeptGroup.new(configuration, trial_name(entry), 1, _regrade)
            trial.kept = KeptTrial(kept, entry)
            allow(trial, task.deadlines.grading)
            yield trial


def _regrade(trial: Group) -> Iterator[EvalItem]:
    yield EvalItem.new(trial, Leaf("regrade", regrade, "regrade", 1))
