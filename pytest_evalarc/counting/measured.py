"""From the results of a batch, or an audit, to how often each thing in it passed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from pydantic import JsonValue

from pytest_evalarc.counting.benchmark import count_each
from pytest_evalarc.counting.validity import verdict_of
from pytest_evalarc.files.text import without_surrogates
from pytest_evalarc.model.audit import Audit, Evaluation, MutantAudit
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.grading import CheckRow, Grading
from pytest_evalarc.model.measured import Measured, MeasuredConditions, MeasuredRow, Part
from pytest_evalarc.model.planned import Outcome, Shard
from pytest_evalarc.model.trial import PlanDoc, TrialResult

_DECIMALS = 8
ELIGIBLE = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.INCONCLUSIVE)
"""Where a trial that counts can end."""


class Judged(NamedTuple):
    """One thing of one trial, and whether it passed; None where nobody can tell."""

    part: Part
    name: str
    passed: bool | None


def measured_trials(
    plan: PlanDoc,
    results: Iterable[tuple[str, TrialResult]],
    *,
    kept_back: Collection[str] = (),
    shard: Shard | None = None,
) -> Measured:
    """Return how often each check, step and expectation of a batch passed.

    Args:
        plan: Every trial that was planned.
        results: As for `count_each`; one after another, and none of them is held.
        kept_back: As for `count_each`.
        shard: As for `count_each`.

    Returns:
        Rows over eligible trials, by configuration in the plan's order. A check that a graded
        submission kept from being run has not passed.

    Raises:
        DocumentError: A result is not of this plan.
    """
    tallies = _Tallies()
    benchmark = count_each(plan, tallies.watched(results), kept_back=kept_back, shard=shard)
    pack = plan.task.pack
    return Measured(
        schema_version=SCHEMA_VERSION,
        kind="trials",
        task=plan.task.name,
        client=plan.client,
        batch=plan.batch,
        selection=benchmark.selection,
        conditions=MeasuredConditions(
            task=plan.task.content_hash,
            seeds=pack.seeds if pack else (),
            client_version=" + ".join(sorted(tallies.versions)) or None,
            model=plan.model,
            settings=plan.settings,
            served=tuple(sorted(tallies.served)),
            treatment=plan.treatment,
            isolation=benchmark.isolation,
        ),
        rows=tuple(tallies.rows(plan.configurations)),
    )


def measured_audit(audit: Audit) -> Measured:
    """Return which controls of an audit were judged as they must be.

    The reference must pass everything, each time that it is graded; the starter must fail
    something; a mutant must be detected.
    """
    pack = audit.task.pack
    evaluations = (audit.reference, audit.reference_repeat, audit.starter.evaluation)
    mutants = tuple(mutant.evaluation for mutant in audit.mutants)
    levels = {found.isolation.level for found in (*evaluations, *mutants) if found is not None}
    return Measured(
        schema_version=SCHEMA_VERSION,
        kind="audit",
        task=audit.task.name,
        client=None,
        batch=audit.batch,
        selection=audit.selection,
        conditions=MeasuredConditions(
            task=audit.task.content_hash,
            seeds=pack.seeds if pack else (),
            isolation=" + ".join(sorted(levels)) or None,
            mode=audit.mode,
        ),
        rows=tuple(_control_rows(audit)),
    )


def accepted(measured: Measured) -> Measured:
    """Return a measurement as it is kept: with what makes an edit by hand stand out."""
    rows = tuple(row.model_copy(update={"pass_rate": pass_rate(row)}) for row in measured.rows)
    kept = measured.model_copy(update={"rows": rows})
    return kept.model_copy(update={"content_sha256": _digest(kept.to_json())})


def content_sha256(document: Measured) -> str:
    """Return the digest of an accepted document that was read, as it stands in its file.

    A key that a later version has is not in it, and so does not change it.
    """
    return _digest(document.model_dump(mode="json", by_alias=True, exclude_unset=True))


def pass_rate(row: MeasuredRow) -> float | None:
    """Return the rate of a row, rounded to 8 decimals; None where nothing was judged."""
    return round(row.passed / row.judged, _DECIMALS) if row.judged else None


def _digest(document: JsonValue) -> str:
    assert isinstance(document, dict), "a model is an object"
    content = {key: value for key, value in document.items() if key != "content_sha256"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    # What is written has no lone surrogate either.
    return hashlib.sha256(without_surrogates(text).encode()).hexdigest()


def judged_in(result: TrialResult) -> Iterator[Judged]:
    """Yield the verdict of each step, check and expectation of a trial, in their order.

    A check of a pack has one for each dimension, which passes when it passed with every seed.
    """
    if result.gradings:
        grading = result.gradings[-1]
        for step in grading.steps:
            verdict = {"pass": True, "fail": False}.get(step.status)
            if step.status != "skipped":
                yield Judged("step", step.name, verdict)
        yield from _checks(grading)
    for decision in result.expectations.decisions if result.expectations else ():
        if decision.verdict is not None:
            verdict = {"pass": True, "fail": False}.get(decision.verdict)
            yield Judged("expectation", decision.name, verdict)


def _checks(grading: Grading) -> Iterator[Judged]:
    cases: dict[str, list[CheckRow]] = {}
    for row in grading.rows:
        cases.setdefault(row.check, []).append(row)
    for check, rows in cases.items():
        dimensions = tuple(dict.fromkeys(name for row in rows for name in row.verdicts))
        for dimension in dimensions or (check,):
            name = check if len(dimensions) < 2 else f"{check}.{dimension}"
            yield Judged("check", name, _passed(rows, dimension))


def _passed(rows: Iterable[CheckRow], dimension: str) -> bool | None:
    """Return whether a dimension passed with every seed; None where our side broke one."""
    seen = list(rows)
    if any(row.status == "environment_error" for row in seen):
        return None
    return all(verdict_of(row, dimension) is True for row in seen)


class _Tallies:
    """Counts while results go by."""

    def __init__(self) -> None:
        self.versions: set[str] = set()
        self.served: set[str] = set()
        self._counts: dict[str, dict[tuple[Part, str], list[int]]] = {}
        self._graded: dict[str, int] = {}
        self._seen: dict[str, dict[tuple[Part, str], int]] = {}

    def watched(
        self, results: Iterable[tuple[str, TrialResult]]
    ) -> Iterator[tuple[str, TrialResult]]:
        """Yield the results as they come, each counted before it is handed on."""
        for folder, result in results:
            if result.outcome in ELIGIBLE:
                self._add(result)
            yield folder, result

    def rows(self, configurations: Iterable[str]) -> Iterator[MeasuredRow]:
        """Yield a row for each thing that was seen, in the order in which it was."""
        for configuration in configurations:
            for key, (passed, judged) in self._counts.get(configuration, {}).items():
                # A graded submission without that check kept it from being run.
                missing = 0
                if key[0] == "check":
                    missing = self._graded.get(configuration, 0) - self._seen[configuration][key]
                yield MeasuredRow(
                    configuration=configuration,
                    part=key[0],
                    name=key[1],
                    passed=passed,
                    judged=judged + missing,
                )

    def _add(self, result: TrialResult) -> None:
        if result.client.version:
            self.versions.add(result.client.version)
        self.served.update(result.model.served)
        mode = result.mode
        counts = self._counts.setdefault(mode, {})
        seen = self._seen.setdefault(mode, {})
        if result.gradings and result.gradings[-1].status == "graded":
            self._graded[mode] = self._graded.get(mode, 0) + 1
        success = Judged("success", "success", result.outcome is Outcome.SUCCEEDED)
        for part, name, passed in (success, *judged_in(result)):
            tally = counts.setdefault((part, name), [0, 0])
            seen[part, name] = seen.get((part, name), 0) + 1
            if passed is not None:
                tally[0] += passed
                tally[1] += 1


def _control_rows(audit: Audit) -> Iterator[MeasuredRow]:
    graded = [found for found in (audit.reference, audit.reference_repeat) if found is not None]
    yield _control("reference", [_resolved(found) for found in graded])
    yield _control("starter", [audit.starter.failed_something])
    for mutant in audit.mutants:
        row = _control(mutant.name, [_detected(mutant)])
        yield row.model_copy(
            update={"margin": mutant.detection_margin, "fault_sha256": mutant.candidate_sha256}
        )


def _control(name: str, verdicts: Iterable[bool | None]) -> MeasuredRow:
    known = [verdict for verdict in verdicts if verdict is not None]
    return MeasuredRow(
        configuration=None, part="control", name=name, passed=sum(known), judged=len(known)
    )


def _resolved(evaluation: Evaluation) -> bool | None:
    return evaluation.resolved if evaluation.valid else None


def _detected(mutant: MutantAudit) -> bool | None:
    return None if mutant.class_ in ("invalid", "not_run") else mutant.killed
