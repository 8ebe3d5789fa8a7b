"""The long table: one row for each thing that was judged in a trial or in a control."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, get_args, get_type_hints

from pytest_evalarc.counting.validity import verdict_of
from pytest_evalarc.model.audit import Audit, Evaluation
from pytest_evalarc.model.grading import CheckRow, StepRow
from pytest_evalarc.model.trial import PlanDoc, TrialResult


class LongRow(NamedTuple):
    """One row; each column has one type, and None where a thing is not known or has none."""

    batch: str
    task: str
    content_hash: str
    kind: str
    """`trial` or `control`."""
    client: str | None
    """None for a control, as are the next four and the trial's number."""
    client_version: str | None
    model: str | None
    served: str | None
    """Models that answered, as `a + b`."""
    configuration: str | None
    trial: int | None
    control: str | None
    """`reference`, `reference-repeat`, `starter` or a mutant; None for a trial."""
    isolation: str
    outcome: str | None
    """Where the trial ended; of a mutant its class."""
    cause: str | None
    part: str
    """`success`, `step`, `check` or `expectation`."""
    name: str
    dimension: str | None
    """Of a check."""
    seed: int | None
    """Of a pack's case."""
    passed: bool | None
    """None where nobody can tell, or where the trial does not count."""
    agent_s: float | None
    """Seconds of the client's session; the same in every row of a trial, as are the next two."""
    tokens: int | None
    cost_usd: float | None


def _column_types() -> dict[str, str]:
    words = {str: "string", int: "int64", float: "float64", bool: "bool"}
    found = {}
    for name, hint in get_type_hints(LongRow).items():
        (plain,) = [kind for kind in (get_args(hint) or (hint,)) if kind is not type(None)]
        found[name] = words[plain]
    return found


COLUMNS = _column_types()
"""The type of each column, as Parquet and pandas name them; every one but a few may be null."""


def trial_rows(plan: PlanDoc, results: Iterable[tuple[str, TrialResult]]) -> Iterator[LongRow]:
    """Yield the rows of each trial: its success, then steps, checks and expectations."""
    for _, result in results:
        head = _of_trial(plan, result)
        success = {"pass": True, "fail": False}.get(result.success or "")
        yield head._replace(passed=success)
        for step in result.gradings[-1].steps if result.gradings else ():
            yield from _step(head, step)
        for row in result.gradings[-1].rows if result.gradings else ():
            yield from _check(head, row)
        for decision in result.expectations.decisions if result.expectations else ():
            if decision.verdict is not None:
                passed = {"pass": True, "fail": False}.get(decision.verdict)
                yield head._replace(part="expectation", name=decision.name, passed=passed)


def audit_rows(audit: Audit) -> Iterator[LongRow]:
    """Yield the rows of each control that was graded: its steps, then its checks."""
    controls: list[tuple[str, Evaluation | None, str | None]] = [
        ("reference", audit.reference, None),
        ("reference-repeat", audit.reference_repeat, None),
        ("starter", audit.starter.evaluation, None),
        *((mutant.name, mutant.evaluation, mutant.class_) for mutant in audit.mutants),
    ]
    for name, evaluation, outcome in controls:
        if evaluation is None:
            continue
        head = _of_control(audit, name, evaluation, outcome)
        for step in evaluation.steps:
            yield from _step(head, step)
        for row in evaluation.cases:
            yield from _check(head, row)


def _of_trial(plan: PlanDoc, result: TrialResult) -> LongRow:
    usage = result.usage
    return LongRow(
        batch=plan.batch,
        task=result.task.name,
        content_hash=result.task.content_hash,
        kind="trial",
        client=result.client.name,
        client_version=result.client.version,
        model=result.model.name,
        served=" + ".join(result.model.served) or None,
        configuration=result.mode,
        trial=result.trial,
        control=None,
        isolation=result.isolation.mode,
        outcome=result.outcome.value,
        cause=result.cause.kind if result.cause else None,
        part="success",
        name="success",
        dimension=None,
        seed=None,
        passed=None,
        agent_s=result.elapsed_secs,
        tokens=usage.total if usage else None,
        cost_usd=usage.cost_usd if usage else None,
    )


def _of_control(audit: Audit, name: str, evaluation: Evaluation, outcome: str | None) -> LongRow:
    return LongRow(
        batch=audit.batch,
        task=audit.task.name,
        content_hash=audit.task.content_hash,
        kind="control",
        client=None,
        client_version=None,
        model=None,
        served=None,
        configuration=None,
        trial=None,
        control=name,
        isolation=evaluation.isolation.level,
        outcome=outcome,
        cause=evaluation.cause.kind if evaluation.cause else None,
        part="check",
        name="",
        dimension=None,
        seed=None,
        passed=None,
        agent_s=None,
        tokens=None,
        cost_usd=None,
    )


def _step(head: LongRow, step: StepRow) -> Iterator[LongRow]:
    if step.status != "skipped":
        passed = {"pass": True, "fail": False}.get(step.status)
        yield head._replace(part="step", name=step.name, passed=passed)


def _check(head: LongRow, row: CheckRow) -> Iterator[LongRow]:
    """Yield a row for each dimension; what the submission kept from being run has not passed."""
    for dimension in row.verdicts:
        known = row.status != "environment_error"
        passed = verdict_of(row, dimension) is True if known else None
        yield head._replace(
            part="check", name=row.check, dimension=dimension, seed=row.seed, passed=passed
        )
