"""Documents of results in memory: evaluations, an audit, and trials of every outcome.

```python
half = evaluation("says.words", "says.style")  # It scores 0.4.
```
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.counting.score import evaluation_document
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.model.audit import Audit, AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.candidate import EvaluationDoc, Made
from pytest_evalarc.model.grading import CheckRow, Grading, Runtime, StepRow
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.task import Limits, PackRef, TaskRef
from pytest_evalarc.model.trial import Decision, Expectations, SkillFacts
from pytest_evalarc.runs.draft import Draft
from tests.evals import Evals

SEEDS = (17, 41)
CHECKS = {"adds": ("sums",), "says": ("words", "style")}
WEIGHTS = {"sums": 0.4, "words": 0.5, "style": 0.1}
TASK = TaskRef(
    name="sample",
    kind="capability",
    content_hash="c" * 64,
    pack=PackRef(name="sample-pack", seeds=SEEDS, version="0.1.0", domain="tests"),
)
MADE = Made(created_at=datetime(2026, 5, 1, 12, tzinfo=UTC), package_version="0.1.0")
RUNTIME = Runtime(
    sandbox="bwrap",
    toolchain="CPython 3.11.7",
    platform="linux x86_64",
    command=("{python}", "main.py"),
    limits=Limits(),
    response_timeout_seconds=10.0,
)


def case(check: str, seed: int, fails: tuple[str, ...], **facts: Any) -> CheckRow:
    """Return a row that fails by behaviour in the dimensions named as `check.dimension`."""
    verdicts: dict[str, bool | None] = {d: f"{check}.{d}" not in fails for d in CHECKS[check]}
    status = "passed" if all(verdicts.values()) else "failed"
    told = {"verdicts": verdicts, "status": status, "answered": True, "wall_time_s": 0.25}
    return CheckRow(**{"check": check, "seed": seed, **told, **facts})


def grading(
    *fails: str, steps: Mapping[str, Any] | None = None, digest: str = "a", **facts: Any
) -> Grading:
    """Return a grading of both cases with both seeds."""
    told = {
        "submission_sha256": digest * 64,
        "grader_sha256": "b" * 64,
        "checks_sha256": "d" * 64,
        "status": "graded",
        "steps": tuple(StepRow(name=name, status=word) for name, word in (steps or {}).items()),
        "rows": tuple(case(check, seed, fails) for seed in SEEDS for check in CHECKS),
        "isolation": IsolationRecord(level="enforced", sandbox="bwrap"),
        "runtime": RUNTIME,
        "wall_time_s": 1.5,
    }
    return Grading(**{**told, **facts})


def evaluation(*fails: str, batch: str = "b1", **facts: Any) -> EvaluationDoc:
    """Return what evaluation.json says of such a grading."""
    return evaluation_document(
        grading(*fails, **facts),
        batch=batch,
        made=MADE,
        task=TASK,
        checks=CHECKS,
        weights=WEIGHTS,
    )


OTHER: dict[str, Any] = {
    "schema_version": "1.1",
    "task.name": "other",
    "task.version": "0.2.0",
    "task.content_hash": "e" * 64,
    "task.kind": "regression",
    "task.pack.name": "other-pack",
    "task.pack.version": "0.2.0",
    "task.pack.seeds": [17],
    "task.pack.language": "javascript",
    "grader_sha256": "e" * 64,
    "cases_sha256": "e" * 64,
    "runtime.sandbox": "docker",
    "runtime.image": "python:3.12-slim",
    "runtime.image_id": "sha256:0",
    "runtime.toolchain": "CPython 3.12.1",
    "runtime.platform": "linux aarch64",
    "runtime.command.1": "app.py",
    "runtime.limits.memory_mib": 4096,
    "runtime.limits.cpus": 2.0,
    "runtime.response_timeout_seconds": 20.0,
    "runtime.startup_timeout_seconds": 5.0,
    "runtime.case_timeout_seconds": 5.0,
    "runtime.session_output_limit_bytes": 7,
    "runtime.request_limit_bytes": 7,
    "seeds.1": 43,
    "checks.adds": [],
    "weights.words": 0.25,
}
"""Another value for each field in which evaluations must be equal."""


def changed(document: EvaluationDoc, field: str, value: Any) -> EvaluationDoc:
    """Return a document with one field, by dotted path, set to another value."""
    data: Any = document.model_dump(mode="json")
    place = data
    *path, last = [int(part) if part.isdigit() else part for part in field.split(".")]
    for part in path:
        place = place[part]
    place[last] = value
    return EvaluationDoc.model_validate(data)


def audit(**changes: Grading | None) -> Audit:
    """Return an audit whose two mutants are detected, one of them by a single case.

    Args:
        **changes: A control by name, `_` for `-`, in place of the usual one; None leaves it out.
    """
    controls = {
        "reference": grading(),
        "reference-repeat": grading(),
        "starter": grading("adds.sums", "says.words", "says.style", digest="1"),
        "m1": grading("adds.sums", digest="2"),
        "m2": grading("says.words", "adds.sums", digest="3"),
        **{name.replace("_", "-"): control for name, control in changes.items()},
    }
    plan = AuditPlan(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=TASK,
        mode="full",
        checks=CHECKS,
        weights=WEIGHTS,
        mutants=(
            PlannedMutant(name="m1", target_dimension="sums"),
            PlannedMutant(name="m2", target_dimension="words"),
        ),
        sandbox="bwrap",
    )
    return assess(plan, {name: graded for name, graded in controls.items() if graded is not None})


def _facts_of(outcome: Outcome) -> dict[str, Any]:
    passed = grading(steps={"build": "pass", "fmt_check": "pass"})
    broke = Cause(kind="grader_broke", detail="the disk is full")
    completed = {"execution": Execution.COMPLETED, "elapsed_s": 12.5, "grading": passed}
    escaped = Cause(kind=CauseKind.ESCAPE, detail="it read a secret")
    broken = grading(status="infrastructure_error", cause=broke, rows=())
    failed = grading("adds.sums", steps={"build": "pass"})
    died = Cause(kind=CauseKind.WORKER_CRASH, detail="it died")
    endings: dict[Outcome, dict[str, Any]] = {
        Outcome.SETUP_FAILURE: {"setup": Cause(kind=CauseKind.PREPARATION, detail="no disk")},
        Outcome.CANCELLED: {"cancellation": died},
        Outcome.EXCLUDED_ISOLATION: {**completed, "findings": (escaped,)},
        Outcome.EXCLUDED_GRADING: {**completed, "grading": broken},
        Outcome.FAILED: {**completed, "grading": failed},
        Outcome.INCONCLUSIVE: {**completed, "expectations": _expectations("inconclusive")},
        Outcome.SUCCEEDED: {**completed, "expectations": _expectations("pass")},
    }
    return endings[outcome]


def _expectations(verdict: Any) -> Expectations:
    decision = Decision(name="used-use-numbers", verdict=verdict, rests_on=("it was loaded",))
    skills = {"use-numbers": SkillFacts(used=verdict, observed_load="loaded")}
    return Expectations(skills=skills, decisions=(decision,))


def write_trials(root: Path) -> Path:
    """Write a batch with a trial of each outcome, and one that was not reached; return its folder.

    Trials of the treatment come first, so that those with expectations are treated.
    """
    evals = Evals(root, options={"trials": 4})
    folder = evals.folder
    folder.mkdir(parents=True)
    write_model(folder / "plan.json", evals.plan)
    entries = sorted(evals.plan.trials, key=lambda entry: entry.configuration)
    endings = (Outcome.SUCCEEDED, Outcome.INCONCLUSIVE, *Outcome)
    for entry, outcome in zip(entries, dict.fromkeys(endings), strict=False):
        draft = Draft(plan=evals.plan, entry=entry, client=evals.known_client)
        for name, value in _facts_of(outcome).items():
            setattr(draft, name, value)
        (folder / entry.folder).mkdir()
        write_model(folder / entry.folder / "result.json", draft.result())
    return folder


def result_of(folder: Path, outcome: Outcome) -> Path:
    """Return the result.json of a trial that ended so."""
    (found,) = [
        path
        for path in folder.glob("trial-*/result.json")
        if f'"outcome": "{outcome.value}"' in path.read_text("utf-8")
    ]
    return found
