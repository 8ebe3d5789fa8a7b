from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import InfrastructureError, UsageError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.model.audit import AuditPlan, ControlDoc
from pytest_evalarc.reporting.batch import write_document
from pytest_evalarc.runs.control import run_control
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.plan import make_audit_plan
from tests.evals import Evals
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

Make = Callable[..., Evals]
CONTROLS = ("reference", "reference-repeat", "starter", "first-only", "empty-is-one")


def audit(evals: Evals, controls: tuple[str, ...] = CONTROLS) -> Path:
    """Grade controls as the plugin does, and return the audit's folder."""
    folder = evals.batch.folders.audit(evals.task.name)
    plan = make_audit_plan(evals.task, evals.request, sandbox="bwrap")
    once(folder / "plan.json", AuditPlan, lambda: plan)
    for control in controls:
        path = folder / "rows" / f"{control}.json"
        once(path, ControlDoc, partial(run_control, evals.task, control, evals.batch, mode="full"))
    return folder


def test_an_audit_tells_reference_starter_and_both_kinds_of_mutants_apart(make: Make) -> None:
    """Each declared fault is caught in its own dimension, by the checks that grade trials."""
    folder = audit(make(is_plain=False))

    document, path = write_document(folder)

    assert path == folder / "audit.json"
    found: Any = document.to_json()
    assert found["reference_passed"] is True
    assert found["starter"]["failed_something"] is True
    assert {mutant["name"]: mutant["class"] for mutant in found["mutants"]} == {
        "first-only": "detected",
        "empty-is-one": "detected",
    }
    assert (found["mutation_score"], found["killed"], found["total"]) == (1.0, 2, 2)
    assert found["detection"]["sole_detector_cases"] == ["adds", "empty"]
    assert found["coverage"]["flaky"] == []


def test_audit_json_is_recomputed_byte_for_byte(make: Make) -> None:
    """It is a function of the plan and the rows alone, whoever computes it."""
    folder = audit(make())
    _, path = write_document(folder)
    first = path.read_bytes()
    path.unlink()

    document, _ = write_document(folder)

    assert path.read_bytes() == first == dumps(document.to_json())


def test_a_control_leaves_nothing_in_the_working_folder(make: Make) -> None:
    """The reference is the answer, and must not lie about while agents work."""
    evals = make()

    audit(evals, ("reference", "starter"))

    assert list((evals.batch.folders.work / "grading").iterdir()) == []


def test_a_control_that_is_not_declared_is_refused(make: Make) -> None:
    """It would be graded as the reference, under another name."""
    evals = make()

    with pytest.raises(UsageError, match="has no control 'first-onyl'; nearest: first-only"):
        run_control(evals.task, "first-onyl", evals.batch, mode="full")


def test_a_control_that_cannot_be_built_is_kept_as_its_own_failure(make: Make) -> None:
    """Validation would have said so; nobody may take it for a broken harness or for a catch."""
    evals = make()
    source = evals.task.solution / "app/__init__.py"
    source.write_text("def total(*values):\n    return 0\n")

    document = run_control(evals.task, "first-only", evals.batch, mode="full")

    assert document.grading.status == "graded"
    cause = document.grading.cause
    assert cause is not None and cause.kind == "control"
    assert not document.grading.code_passed


def test_a_control_is_graded_again_after_our_own_fault(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control costs nothing, so a full disk must not void the audit for good."""
    evals = make()

    def full(*_: object, **__: object) -> Any:
        raise InfrastructureError("disk", "is full")

    with monkeypatch.context() as patch:
        patch.setattr("pytest_evalarc.runs.control.make_control", full)
        with pytest.raises(InfrastructureError):
            audit(evals, ("reference",))

    folder = audit(evals, ("reference",))
    assert (folder / "rows/reference.json").is_file()
