"""Rows of outcomes by hand: gradings, and the three packs' tables of declared faults."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pytest

from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.grading import CheckRow, Grading, StepRow
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.task import TaskRef

SEEDS = (17, 41, 97)
TASK = TaskRef(name="sample", kind="capability", content_hash="c" * 64, version="0.1.0")


def make_row(check, verdicts, *, seed=None, status=None, cause=None, answered=True):
    """A row that failed by behaviour wherever a verdict is False, unless told otherwise."""
    passed = all(verdicts.values())
    return CheckRow(
        check=check,
        seed=seed,
        verdicts=verdicts,
        status=status or ("passed" if passed else "failed"),
        cause=Cause(kind=cause) if cause else None,
        answered=answered,
    )


def make_grading(rows=(), *, steps=(), status="graded", cause=None, grader="b", edits=()):
    return Grading(
        submission_sha256="a" * 64,
        grader_sha256=grader * 64,
        checks_sha256="d" * 64,
        status=status,
        cause=Cause(kind=cause, detail=f"because of {cause}") if cause else None,
        steps=tuple(StepRow(name=name, status=word) for name, word in steps),
        rows=tuple(rows),
        edits_outside_editable=tuple(edits),
        isolation=IsolationRecord(level="enforced", sandbox="bwrap"),
    )


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A declared fault of a pack: where it fails, and what is known to follow."""

    name: str
    target: str
    margin: int
    margin_any: int
    score: float
    fails: Mapping[str, Collection[str]]
    """Dimensions by case."""

    @property
    def detectors(self):
        return tuple(case for case, dimensions in self.fails.items() if self.target in dimensions)


@dataclass(frozen=True, kw_only=True)
class Pack:
    """A pack as a table."""

    checks: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, float]
    faults: Sequence[Fault]
    sole: tuple[str, ...]

    def plan(self, *, mode="full", only=None):
        return AuditPlan(
            schema_version=SCHEMA_VERSION,
            batch="b1",
            task=TASK,
            mode=mode,
            checks={check: dims for check, dims in self.checks.items() if _kept(check, only)},
            weights=dict(self.weights),
            mutants=tuple(
                PlannedMutant(name=fault.name, target_dimension=fault.target)
                for fault in self.faults
            ),
            sandbox="bwrap",
        )

    def grading(self, fails, *, seeds=SEEDS, only=None):
        return make_grading(
            make_row(check, {d: d not in fails.get(check, ()) for d in dimensions}, seed=seed)
            for seed in seeds
            for check, dimensions in self.checks.items()
            if _kept(check, only)
        )

    def controls(self, *, seeds=SEEDS, only=None):
        """Controls as measured; the starter fails everything."""
        return {
            "reference": self.grading({}, seeds=seeds, only=only),
            "starter": self.grading(self.checks, seeds=seeds, only=only),
            **{
                fault.name: self.grading(fault.fails, seeds=seeds, only=only)
                for fault in self.faults
            },
        }


def _kept(check, only):
    return only is None or check in only


KV_CASES = {
    "read-write-delete": "basic",
    "json-types-and-overwrite": "basic",
    "seeded-state-machine": "basic",
    "reject-and-continue": "validation",
    "empty-and-unicode-keys": "validation",
    "commit-batch": "transactions",
    "rollback-batch": "transactions",
    "cas-match-and-mismatch": "compare_swap",
    "cas-type-sensitivity": "compare_swap",
    "restart-preserves-acknowledged-write": "persistence",
    "restart-preserves-transaction": "persistence",
    "restart-preserves-cas": "persistence",
    "sigkill-after-acknowledgement": "crash_recovery",
    "sigkill-after-atomic-batch": "crash_recovery",
    "sigkill-after-delete": "crash_recovery",
}


def _kv_fault(name, target, score, *cases):
    margin = sum(KV_CASES[case] == target for case in cases)
    return name, target, margin, len(cases), score, {case: (KV_CASES[case],) for case in cases}


RESTARTS = tuple(case for case in KV_CASES if case.startswith("restart"))
SIGKILLS = tuple(case for case in KV_CASES if case.startswith("sigkill"))

DURABLE_KV = Pack(
    checks={case: (dimension,) for case, dimension in KV_CASES.items()},
    weights={
        "basic": 0.25,
        "validation": 0.15,
        "transactions": 0.20,
        "compare_swap": 0.15,
        "persistence": 0.15,
        "crash_recovery": 0.10,
    },
    sole=("reject-and-continue", "rollback-batch", "cas-type-sensitivity"),
    faults=[
        Fault(name=n, target=t, margin=m, margin_any=a, score=s, fails=f)
        for n, t, m, a, s, f in (
            _kv_fault("ack-without-work", "basic", 0.0, *KV_CASES),
            _kv_fault("memory-only", "persistence", 0.78333333, *RESTARTS, *SIGKILLS[:2]),
            _kv_fault("partial-batch", "transactions", 0.9, "rollback-batch"),
            _kv_fault(
                "cas-always-wins",
                "compare_swap",
                0.85,
                "cas-match-and-mismatch",
                "cas-type-sensitivity",
            ),
            _kv_fault("boolean-equals-one", "compare_swap", 0.925, "cas-type-sensitivity"),
            _kv_fault(
                "delete-noop",
                "basic",
                0.65,
                "read-write-delete",
                "seeded-state-machine",
                "commit-batch",
                "restart-preserves-acknowledged-write",
                "sigkill-after-delete",
            ),
            _kv_fault("accept-nonstring-keys", "validation", 0.925, "reject-and-continue"),
            _kv_fault("commit-on-exit", "crash_recovery", 0.9, *SIGKILLS),
        )
    ],
)

OPEN, RESOLVED, BEFORE, AFTER = (
    "route-open-ticket",
    "close-resolved-ticket",
    "retry-before-commit",
    "retry-after-commit",
)
SUPPORT_WEIGHTS = {
    "routing": 0.30,
    "notes": 0.25,
    "closure": 0.20,
    "scope": 0.15,
    "protocol": 0.10,
}


def _everywhere(cases, *dimensions):
    return dict.fromkeys(cases, dimensions)


SUPPORT_CASES = (OPEN, RESOLVED, BEFORE, AFTER)
SUPPORT_ROUTING = Pack(
    checks=_everywhere(SUPPORT_CASES, *SUPPORT_WEIGHTS),
    weights=SUPPORT_WEIGHTS,
    sole=(BEFORE, AFTER),
    faults=[
        Fault(
            name="claim-without-actions",
            target="routing",
            margin=4,
            margin_any=4,
            score=0.35,
            fails={
                **_everywhere((OPEN, BEFORE), "routing", "notes"),
                **_everywhere((RESOLVED, AFTER), "routing", "notes", "closure"),
            },
        ),
        Fault(
            name="wrong-ticket",
            target="scope",
            margin=4,
            margin_any=4,
            score=0.2,
            fails={
                **_everywhere((OPEN, BEFORE), "routing", "notes", "scope"),
                **_everywhere((RESOLVED, AFTER), "routing", "notes", "scope", "closure"),
            },
        ),
        Fault(
            name="wrong-queue",
            target="routing",
            margin=4,
            margin_any=4,
            score=0.7,
            fails=_everywhere(SUPPORT_CASES, "routing"),
        ),
        Fault(
            name="duplicate-note",
            target="notes",
            margin=4,
            margin_any=4,
            score=0.75,
            fails=_everywhere(SUPPORT_CASES, "notes"),
        ),
        Fault(
            name="close-unresolved",
            target="closure",
            margin=2,
            margin_any=2,
            score=0.9,
            fails=_everywhere((OPEN, BEFORE), "closure"),
        ),
        Fault(
            name="skip-retry",
            target="notes",
            margin=1,
            margin_any=2,
            score=0.8125,
            fails={BEFORE: ("routing", "notes"), AFTER: ("closure",)},
        ),
        Fault(
            name="new-key-on-retry",
            target="notes",
            margin=1,
            margin_any=1,
            score=0.9375,
            fails={AFTER: ("notes",)},
        ),
    ],
)

WORLD, MM, CM, INCOMPLETE = (
    "world-meters",
    "millimeters-sensor-frame",
    "centimeters-offset-clock",
    "incomplete-recording",
)
ROBOT_CASES = (WORLD, MM, CM, INCOMPLETE)
ROBOT_WEIGHTS = {
    "provenance": 0.10,
    "coordinates": 0.25,
    "clock": 0.15,
    "metrics": 0.25,
    "completeness": 0.15,
    "protocol": 0.10,
}
ROBOT_EVIDENCE_REVIEW = Pack(
    checks=_everywhere(ROBOT_CASES, *ROBOT_WEIGHTS),
    weights=ROBOT_WEIGHTS,
    sole=(INCOMPLETE,),
    faults=[
        Fault(name=n, target=t, margin=len(c), margin_any=len(c), score=s, fails=_everywhere(c, *d))
        for n, t, s, c, d in (
            ("assume-meters", "coordinates", 0.75, (MM, CM), ("coordinates", "metrics")),
            ("ignore-frame-origin", "coordinates", 0.75, (MM, CM), ("coordinates", "metrics")),
            ("ignore-clock-units", "clock", 0.8, (MM, CM), ("clock", "metrics")),
            ("assume-complete", "completeness", 0.9625, (INCOMPLETE,), ("completeness",)),
            ("last-frame-is-peak", "metrics", 0.75, ROBOT_CASES, ("metrics",)),
            ("invent-source", "provenance", 0.9, ROBOT_CASES, ("provenance",)),
        )
    ],
)


@pytest.fixture(scope="session")
def task_ref():
    return TASK


@pytest.fixture(scope="session")
def row():
    return make_row


@pytest.fixture(scope="session")
def grading():
    return make_grading


@pytest.fixture(scope="session")
def durable_kv():
    return DURABLE_KV


@pytest.fixture(scope="session")
def support_routing():
    return SUPPORT_ROUTING


@pytest.fixture(scope="session")
def robot_evidence_review():
    return ROBOT_EVIDENCE_REVIEW


@pytest.fixture(
    params=[DURABLE_KV, SUPPORT_ROUTING, ROBOT_EVIDENCE_REVIEW],
    ids=["durable-kv", "support-routing", "robot-evidence-review"],
)
def pack(request):
    return request.param
