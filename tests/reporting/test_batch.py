from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps, read_model
from pytest_evalarc.model.audit import ControlDoc
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.isolation import IsolationRecord
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting import benchmarks
from pytest_evalarc.reporting.batch import write_document, write_documents
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.runs.plan import make_audit_plan, make_plan
from pytest_evalarc.runs.request import ClientLabel
from pytest_evalarc.runs.trial import cancelled
from tests.documents import result_of, write_trials
from tests.evals import Evals


def plan_of(evals: Evals, label: str = "oracle") -> PlanDoc:
    client = ClientLabel(label=label, kind="oracle")
    return make_plan(evals.task, evals.request, client, sandbox="bwrap").document


def write_batch(evals: Evals, label: str = "oracle") -> Path:
    """Write a plan and the result of its first trial, without running anything."""
    plan = plan_of(evals, label)
    folder = evals.batch.folders.trials("tiny", label)
    entry = plan.trials[0]
    (folder / entry.folder).mkdir(parents=True)
    write_model(folder / "plan.json", plan)
    result = cancelled(plan, entry, evals.known_client, None)
    write_model(folder / entry.folder / "result.json", result)
    return folder


def write_audit_rows(evals: Evals) -> Path:
    folder = evals.batch.folders.audit("tiny")
    (folder / "rows").mkdir(parents=True)
    write_model(folder / "plan.json", make_audit_plan(evals.task, evals.request, sandbox="bwrap"))
    write_model(folder / "rows/starter.json", control(evals, "starter"))
    return folder


def control(evals: Evals, name: str) -> ControlDoc:
    digest = "0" * 64
    return ControlDoc(
        schema_version=SCHEMA_VERSION,
        task=evals.task.ref,
        control=name,
        grading=Grading(
            submission_sha256=digest,
            grader_sha256=digest,
            checks_sha256=digest,
            status="graded",
            cause=Cause(kind="control"),
            steps=(),
            rows=(),
            isolation=IsolationRecord(level="enforced", sandbox="bwrap"),
        ),
    )


def only_result(folder: Path) -> Path:
    return next(folder.glob("trial-*/result.json"))


@pytest.fixture
def evals(tmp_path: Path) -> Evals:
    return Evals(tmp_path, options={"trials": 2})


def test_trials_without_a_result_count_as_not_reached(evals: Evals) -> None:
    """Every planned trial ends in exactly one place, also in a session that was cut short."""
    benchmark = read_benchmark(write_batch(evals))

    without = benchmark.configurations["without-skills"]
    assert (without.planned, without.cancelled) == (2, 2)
    assert without.causes["cancelled"] == {"not_reached": 1, "worker_crash": 1}
    assert without.success_rate is None
    assert benchmark.selection == "partial"


def test_benchmark_json_is_recomputed_byte_for_byte(evals: Evals) -> None:
    """It is a function of the plan and the results alone, whoever computes it."""
    folder = write_batch(evals)
    _, path = write_document(folder)
    first = path.read_bytes()
    path.write_bytes(b"torn")

    document, _ = write_document(folder)

    assert path.read_bytes() == first == dumps(document.to_json())
    assert b"NaN" not in first


def test_an_audit_is_told_by_its_plan_and_not_by_its_place(evals: Evals, tmp_path: Path) -> None:
    """A folder of results can be copied anywhere before it is looked at."""
    write_audit_rows(evals).rename(tmp_path / "moved")

    _, path = write_document(tmp_path / "moved")

    assert path == tmp_path / "moved/audit.json"


def test_an_audit_without_any_row_is_partial(evals: Evals) -> None:
    """A session can end between its plan and its first control."""
    folder = write_audit_rows(evals)
    (folder / "rows/starter.json").unlink()
    (folder / "rows").rmdir()

    document, _ = write_document(folder)

    assert not isinstance(document, Benchmark)
    assert (document.selection, document.reason) == ("partial", "partial")


@pytest.mark.parametrize("damage", ["name", "task"])
def test_a_row_of_another_audit_is_refused(evals: Evals, damage: str) -> None:
    """A row that was renamed would be credited to another mutant."""
    folder = write_audit_rows(evals)
    document = control(evals, "reference")
    if damage == "task":
        other = replace(document.task, content_hash="1" * 64)
        document = control(evals, "starter").model_copy(update={"task": other})
    write_model(folder / "rows/starter.json", document)

    with pytest.raises(DocumentError, match="belongs to another audit, or was edited"):
        write_document(folder)


def test_a_damaged_task_does_not_keep_the_others_from_being_written(evals: Evals) -> None:
    """One torn file must not cost the numbers of a whole night."""
    good, bad, audit = (
        write_batch(evals, "good"),
        write_batch(evals, "bad"),
        write_audit_rows(evals),
    )
    only_result(bad).write_bytes(b"{")
    unwritable = write_batch(evals, "unwritable")
    (unwritable / "benchmark.json").mkdir()

    documents = write_documents(evals.batch.folders)

    assert [path for _, path in documents.benchmarks] == [good / "benchmark.json"]
    assert [path for _, path in documents.audits] == [audit / "audit.json"]
    assert [problem.where.partition(":")[0] for problem in documents.problems] == [
        str(only_result(bad)),
        str(unwritable / "benchmark.json"),
    ]
    assert not (bad / "benchmark.json").exists()


def test_other_batches_are_left_alone(evals: Evals, tmp_path: Path) -> None:
    """A session speaks for its own batch."""
    write_batch(evals)
    other = Evals(tmp_path, batch_name="b2")

    assert write_documents(other.batch.folders).benchmarks == ()
    assert write_documents(Evals(tmp_path / "new").batch.folders).problems == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [("trial", 2), ("mode", "with-skills"), ("order", 2), ("task", None)],
)
def test_a_result_of_another_plan_is_refused(evals: Evals, key: str, value: object) -> None:
    """A copied result would be counted where it was never measured."""
    folder = write_batch(evals)
    path = only_result(folder)
    document = json.loads(path.read_bytes())
    document[key] = {**document["task"], "content_hash": "1" * 64} if key == "task" else value
    path.write_bytes(dumps(document))

    with pytest.raises(DocumentError, match="it belongs to another batch, or was edited"):
        write_document(folder)


@pytest.mark.parametrize("key", ["code", "outcome", "success"])
def test_an_edited_result_is_not_counted(evals: Evals, key: str) -> None:
    """A rate over outcomes that no grading gives is a claim, and not a measurement."""
    folder = write_trials(evals.root)
    path = result_of(folder, Outcome.FAILED)
    document = json.loads(path.read_bytes())
    passed = {**document["code"], "hidden": {"adds": "pass", "says": "pass"}}
    document[key] = {"code": passed, "outcome": "succeeded", "success": "pass"}[key]
    path.write_bytes(dumps(document))

    with pytest.raises(DocumentError) as caught:
        read_benchmark(folder)

    assert str(caught.value).startswith(f"{path}: {key}")
    assert "but its rows give" in str(caught.value)


def test_a_result_cut_anywhere_is_told_as_a_sentence(evals: Evals) -> None:
    """A torn file is the ordinary trace of a crash, and never a traceback."""
    folder = write_batch(evals)
    path = only_result(folder)
    whole = path.read_bytes()

    # The newline at the end says nothing.
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DocumentError) as caught:
            read_benchmark(folder)
        assert "\n" not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.data())
@example(None)
def test_a_document_of_any_bytes_is_read_or_told(evals: Evals, data: st.DataObject | None) -> None:
    """Disks, editors and merges leave anything behind."""
    folder = evals.batch.folders.trials("tiny", "oracle")
    if not folder.exists():
        write_batch(evals)
    for path in (folder / "plan.json", only_result(folder)):
        whole = path.read_bytes()
        at = 0 if data is None else data.draw(st.integers(0, len(whole)))
        new = b"\xff" if data is None else data.draw(st.binary(max_size=8))
        gone = 0 if data is None else data.draw(st.integers(0, 20))
        path.write_bytes(whole[:at] + new + whole[at + gone :])
        try:
            write_document(folder)
        except DocumentError as error:
            assert str(error)
        finally:
            path.write_bytes(whole)


def test_a_folder_in_place_of_a_document_is_told(evals: Evals) -> None:
    """Whatever stands there, it is one sentence."""
    folder = write_batch(evals)
    path = only_result(folder)
    path.unlink()
    path.mkdir()

    with pytest.raises(DocumentError, match="cannot be read"):
        write_document(folder)
    (folder / "plan.json").rename(folder / "other.json")
    with pytest.raises(DocumentError, match="name a folder of results"):
        write_document(folder)


def test_results_are_counted_one_at_a_time(evals: Evals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of a large batch do not fit in memory together."""
    folder = write_batch(evals)
    plan = plan_of(evals)
    for entry in plan.trials[1:]:
        (folder / entry.folder).mkdir()
        result = cancelled(plan, entry, evals.known_client, None)
        write_model(folder / entry.folder / "result.json", result)
    alive: list[weakref.ref[TrialResult]] = []
    most = 0

    def watched(path: Path, model: type[Any]) -> Any:
        nonlocal most
        document = read_model(path, model)
        if model is TrialResult:
            alive.append(weakref.ref(document))
            gc.collect()
            most = max(most, sum(ref() is not None for ref in alive))
        return document

    monkeypatch.setattr(benchmarks, "read_model", watched)

    benchmark = read_benchmark(folder)

    assert benchmark.configurations["with-skills"].causes["cancelled"] == {"worker_crash": 2}
    assert len(alive) == 4
    # The one before is let go when the next has been read.
    assert most <= 2
