"""Documents on disk: any bytes give a document or one sentence, and what is written is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import as_model, document_bytes, dumps, loads, read_model
from pytest_evalarc.files.text import without_surrogates
from pytest_evalarc.model.audit import Audit, AuditPlan
from pytest_evalarc.model.base import Cause, Model
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.candidate import EvaluationDoc
from pytest_evalarc.model.summary import Summary
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.benchmarks import read_benchmark
from pytest_evalarc.reporting.summary import write_summary_of
from pytest_evalarc.reporting.verify import verify
from tests.batches import write_audit
from tests.documents import evaluation, write_trials
from tests.fuzz.forms import JSON, altered, damaged, files_of, fuzzed, refusing

MODELS: dict[str, type[Model]] = {
    "plan": PlanDoc,
    "result": TrialResult,
    "benchmark": Benchmark,
    "summary": Summary,
    "audit": Audit,
    "audit-plan": AuditPlan,
    "evaluation": EvaluationDoc,
}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a batch with a trial of every outcome, and what it adds up to."""
    folder = write_trials(tmp_path_factory.mktemp("trials"))
    benchmark = read_benchmark(folder)
    write_model(folder / "benchmark.json", benchmark)
    return folder


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def documents(
    trials: Path, audited: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[bytes]]:
    """Return documents of each kind, as this package writes them."""
    summary = write_summary_of(tmp_path_factory.mktemp("results"), "b1", [read_benchmark(trials)])
    return {
        "plan": [(trials / "plan.json").read_bytes()],
        "result": [path.read_bytes() for path in sorted(trials.glob("trial-*/result.json"))],
        "benchmark": [(trials / "benchmark.json").read_bytes()],
        "summary": [summary[1].read_bytes()],
        "audit": [(audited / "audit.json").read_bytes()],
        "audit-plan": [(audited / "plan.json").read_bytes()],
        "evaluation": [document_bytes(evaluation("adds.sums"))],
    }


@fuzzed(150)
@given(
    st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_are_json_of_one_meaning_or_refused(data: bytes) -> None:
    """What one reader takes and another refuses would let one file say two things."""
    with refusing(DocumentError):
        value = loads(data, where="it")

        assert loads(dumps(value), where="again") == value


@fuzzed(100)
@given(JSON)
def test_what_python_would_write_is_read_back_or_refused(value: Any) -> None:
    """Of what Python writes only NaN and the infinities are no JSON."""
    data = json.dumps(value).encode()

    with refusing(DocumentError):
        assert loads(data, where="it") == value
        assert all(map(math.isfinite, _floats(value)))


def _floats(value: Any) -> list[float]:
    if isinstance(value, float):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for each in inner for found in _floats(each)]


@fuzzed(80)
@given(st.text(), st.text())
def test_any_text_survives_in_a_document(detail: str, twice: str) -> None:
    """A complaint of a foreign program may hold anything; only a lone surrogate has no bytes."""
    cause = Cause(kind="made", detail=detail + twice + detail)

    found = as_model(document_bytes(cause), Cause, where="it")

    assert found.detail == without_surrogates(cause.detail)
    assert document_bytes(found) == document_bytes(cause)


@pytest.mark.parametrize("kind", sorted(MODELS))
@fuzzed(25)
@given(st.data())
def test_a_damaged_document_is_read_or_refused(
    documents: dict[str, list[bytes]], tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    """A disk that was full, an editor, or an agent that reached a folder may leave anything."""
    path = tmp_path / "it.json"
    path.write_bytes(data.draw(damaged(documents[kind])))

    with refusing(DocumentError):
        found = read_model(path, MODELS[kind])

        assert as_model(document_bytes(found), MODELS[kind], where="again") == found


@pytest.mark.parametrize("kind", sorted(MODELS))
@fuzzed(25)
@given(st.data())
def test_a_document_with_other_values_is_read_or_refused(
    documents: dict[str, list[bytes]], tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    """A document of a wrong type anywhere must not get as far as the code that counts it."""
    original = data.draw(st.sampled_from(documents[kind]))
    path = tmp_path / "it.json"
    path.write_bytes(json.dumps(data.draw(altered(json.loads(original)))).encode())

    with refusing(DocumentError):
        found = read_model(path, MODELS[kind])

        write_model(path, found)
        assert read_model(path, MODELS[kind]) == found


@pytest.mark.parametrize("kind", ["trials", "audit"])
@fuzzed(40)
@given(st.data())
def test_results_that_were_changed_are_verified_or_refused(
    request: pytest.FixtureRequest, kind: str, data: st.DataObject
) -> None:
    """`verify` is asked exactly of folders that somebody may have changed, and changes nothing."""
    folder = request.getfixturevalue("trials" if kind == "trials" else "audited")
    name = data.draw(st.sampled_from(sorted(n for n in files_of(folder) if n.endswith(".json"))))
    path = folder / name
    whole = path.read_bytes()
    changed = data.draw(
        damaged([whole]) | altered(json.loads(whole)).map(lambda found: json.dumps(found).encode())
    )
    try:
        path.write_bytes(changed)
        before = files_of(folder)
        with refusing():
            for found in verify(folder):
                assert "\n" not in str(found)
        assert files_of(folder) == before
    finally:
        path.write_bytes(whole)
