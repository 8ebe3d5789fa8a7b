from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_evalarc.counting.batches_compared import compare_batches
from pytest_evalarc.counting.comparison import compare
from pytest_evalarc.counting.measured import accepted
from pytest_evalarc.counting.recount import EditedError
from pytest_evalarc.counting.trajectory import trajectory
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.atomic import write_model
from pytest_evalarc.files.strict import dumps, read_model
from pytest_evalarc.model.audit import Audit
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.comparison import BatchComparison, Change
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.regrade import Regrade
from pytest_evalarc.model.trajectory import Checkpoint
from pytest_evalarc.model.trial import TrialResult
from pytest_evalarc.reporting.batch import write_document
from pytest_evalarc.reporting.measured import read_measured
from pytest_evalarc.reporting.regrade import write_regrade
from pytest_evalarc.reporting.summary import write_summary
from pytest_evalarc.reporting.verify import documents_in, verify
from tests.batches import write_audit, write_batch
from tests.documents import audit, case, evaluation, grading, result_of, write_trials

HALF = evaluation("says.words", "says.style")
HALF_GRADING = grading("says.words", "says.style")


def written(folder: Path, name: str, document: Any) -> Path:
    write_model(folder / name, document)
    return folder / name


def an_audit(folder: Path) -> Path:
    return written(folder, "audit.json", audit())


def an_evaluation(folder: Path) -> Path:
    return written(folder, "evaluation.json", evaluation("says.words", steps={"build": "pass"}))


def a_trajectory(folder: Path) -> Path:
    entries = [
        Checkpoint(elapsed_seconds=seconds, evaluation=document)
        for seconds, document in ((100, evaluation()), (300, HALF), (400, evaluation("says.style")))
    ]
    return written(folder, "trajectory.json", trajectory(entries, budget_seconds=600))


def a_comparison(folder: Path) -> Path:
    before = evaluation("says.words", steps={"build": "pass", "fmt_check": "fail"})
    after = evaluation("adds.sums", steps={"build": "fail", "fmt_check": "pass"})
    return written(folder, "comparison.json", compare(before, after))


def a_benchmark(folder: Path) -> Path:
    return write_document(write_trials(folder))[1]


def a_summary(folder: Path) -> Path:
    batch = write_trials(folder)
    return write_summary(batch.parents[2], batch.name)[1]


def a_result(outcome: Outcome) -> Callable[[Path], Path]:
    return lambda folder: result_of(write_trials(folder), outcome)


def a_regrade(folder: Path) -> Path:
    """Return the re-grading of a trial that was excluded for its grading."""
    path = result_of(write_trials(folder), Outcome.EXCLUDED_GRADING)
    result = read_model(path, TrialResult)
    again = Regrade(
        schema_version=SCHEMA_VERSION,
        number=1,
        task=result.task,
        mode=result.mode,
        trial=result.trial,
        code={
            "hidden": {"adds": "pass", "says": "fail"},
            "fmt_check": None,
            "edits_outside_editable": [],
        },
        grading=grading("says.words"),
        outcome=Outcome.FAILED,
        cause=Cause(kind="code", detail="says"),
        success="fail",
    )
    return written(path.parent, "regrade-1.json", again)


def a_regraded_benchmark(folder: Path) -> Path:
    return write_regrade(a_regrade(folder).parent.parent, 1).path


def a_batch_comparison(folder: Path) -> Path:
    """Return a comparison with a regression, a control, and a row of each other kind."""
    with_skills, without = "with-skills", "without-skills"
    steady = {without: [grading("adds.sums"), None, None]}
    before = write_batch(folder, {**steady, with_skills: [None, None, HALF_GRADING]}, batch="b1")
    lost = [grading("says.words")] * 3
    after = write_batch(folder, {**steady, with_skills: lost}, batch="b2")
    (one,), (two,), (old,) = map(read_measured, (before, after, write_audit(folder)))
    unjudged = old.rows[-1].model_copy(update={"judged": 0, "passed": 0})
    new = old.model_copy(update={"rows": (*old.rows[:-1], unjudged)})
    return written(folder, "compared.json", compare_batches([one, old], [two, new]))


def an_accepted_document(folder: Path) -> Path:
    (measured,) = read_measured(write_audit(folder))
    return written(folder, "accepted.json", accepted(measured))


EVERY = {
    "audit": an_audit,
    "evaluation": an_evaluation,
    "trajectory": a_trajectory,
    "comparison": a_comparison,
    "batch-comparison": a_batch_comparison,
    "accepted": an_accepted_document,
    "benchmark": a_benchmark,
    "summary": a_summary,
    "regrade": a_regrade,
    "regraded-benchmark": a_regraded_benchmark,
    **{outcome.value: a_result(outcome) for outcome in Outcome},
}


@pytest.fixture(params=EVERY)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a document of each kind, as it was written."""
    return EVERY[request.param](tmp_path)


def test_a_document_that_nobody_touched_agrees_with_its_rows(path: Path) -> None:
    """An alarm at a true document would teach its readers not to listen."""
    assert verify(path) == ()


# Every field of every document is changed in turn, and what is not noticed is listed below.

WORDS = {
    "class": ("detected", "survived", "off_target", "broken", "invalid", "not_run"),
    "status": ("passed", "failed", "environment_error"),
    "grading_status": ("graded", "infrastructure_error"),
    "outcome": tuple(outcome.value for outcome in Outcome),
    "success": ("pass", "fail", "inconclusive"),
    "verdict": ("pass", "fail"),
    "reason": ("partial", "no_mutants", "other words"),
    "selection": ("partial", "complete"),
    "before": ("passed", "failed"),
    "after": ("passed", "failed"),
    "mode": ("full", "fast"),
    "isolation": ("enforced", "mixed"),
    "level": ("enforced", "exploratory"),
    "kind": ("capability", "regression", "code", "timeout"),
    "target_dimension": ("sums", "words"),
    "execution": ("completed", "timeout"),
}
"""Values that fit where another one would only be refused as misfit."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value that holds no other, and of each list.

    Of a list's elements the first two stand for all.
    """
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from places(inner, (*path, key))
        return
    yield path
    if isinstance(value, list):
        for index, inner in enumerate(value[:2]):
            yield from places(inner, (*path, index))


def other_value(key: str, value: Any) -> Any:
    words = [word for word in WORDS.get(key, ()) if word != value]
    if words and not isinstance(value, (list, dict)):
        return words[0]
    if isinstance(value, str):
        return "9" * 64 if re.fullmatch("[0-9a-f]{64}", value) else f"{value}x"
    if isinstance(value, list):
        return value[:-1] if value else ["adds"]
    if isinstance(value, bool):
        return not value
    return value / 2 if value else 1


def with_other(document: Any, place: tuple[Any, ...]) -> Any:
    edited = copy.deepcopy(document)
    inner = edited
    for key in place[:-1]:
        inner = inner[key]
    key = next(part for part in reversed(place) if isinstance(part, str))
    inner[place[-1]] = other_value(key, inner[place[-1]])
    return edited


def unnoticed(path: Path) -> set[str]:
    """Return every place of a document that can be changed without a word, numbers left out."""
    document = json.loads(path.read_bytes())
    whole = path.read_bytes()
    found = set()
    for place in places(document):
        path.write_bytes(dumps(with_other(document, place)))
        try:
            noticed = bool(verify(path))
        except DocumentError:
            noticed = True
        if not noticed:
            found.add(".".join("*" if isinstance(part, int) else part for part in place))
    path.write_bytes(whole)
    return found


ROW = {
    "answered",
    "cause",
    "detail",
    "processes",
    "trace",
    "transcript_sha256",
    "wall_time_s",
}
STEP = {"cause", "detail", "output_bytes", "wall_time_s"}


def starting(places: set[str], *prefixes: str) -> set[str]:
    return {place for place in places if place.startswith(prefixes)}


def test_no_derived_field_of_an_evaluation_can_be_changed(tmp_path: Path) -> None:
    """What is left are facts: of what, with what and when, and what each case said."""
    found = unnoticed(an_evaluation(tmp_path))

    facts = starting(found, "task.", "runtime.", "isolation.")
    assert found - facts <= {
        "schema_version",
        "batch",
        "candidate_sha256",
        "created_at",
        "package_version",
        "grader_sha256",
        "cases_sha256",
        "edits_outside_editable",
        "evaluation_seconds",
        *(f"cases.*.{fact}" for fact in ROW),
        *(f"steps.*.{fact}" for fact in STEP),
        "steps.*.name",
        "steps",
    }


def test_no_derived_field_of_an_audit_can_be_changed(tmp_path: Path) -> None:
    """Neither class nor margin nor score nor coverage nor a sentence."""
    found = unnoticed(an_audit(tmp_path))

    evaluations = {"reference", "reference_repeat", "starter.evaluation", "mutants.*.evaluation"}
    inside = starting(found, *(f"{place}." for place in evaluations))
    within = {place.partition("evaluation.")[2] or place.partition(".")[2] for place in inside}
    facts = starting(within, "runtime.", "isolation.")
    assert within - facts <= {
        "candidate_sha256",
        "cases_sha256",
        "edits_outside_editable",
        "evaluation_seconds",
        *(f"cases.*.{fact}" for fact in ROW),
    }
    assert found - inside - starting(found, "task.") == {
        "schema_version",
        "batch",
        "sandbox",
        "mode",
    }


def test_no_derived_field_of_a_trajectory_can_be_changed(tmp_path: Path) -> None:
    """Its rows are the observations."""
    found = unnoticed(a_trajectory(tmp_path))

    assert found - starting(found, "conditions.") <= {
        "schema_version",
        "checkpoints.*.resolved",
        "checkpoints.*.batch",
        "checkpoints.*.candidate_sha256",
    }


def test_no_derived_field_of_a_comparison_can_be_changed(tmp_path: Path) -> None:
    """Its rows are the verdicts of both sides."""
    found = unnoticed(a_comparison(tmp_path))

    facts = starting(found, "task.", "runtime.", "baseline.isolation.", "current.isolation.")
    assert found - facts <= {
        "schema_version",
        "grader_sha256",
        "cases_sha256",
        "baseline.batch",
        "baseline.candidate_sha256",
        "baseline.created_at",
        "baseline.package_version",
        "current.batch",
        "current.candidate_sha256",
        "current.created_at",
        "current.package_version",
    }


def test_no_derived_field_of_a_comparison_of_batches_can_be_changed(tmp_path: Path) -> None:
    """Its rows are the tallies of both sides, and why two measurements cannot be compared."""
    path = a_batch_comparison(tmp_path)
    rows = read_model(path, BatchComparison).rows
    assert {row.change for row in rows} == {
        Change.REGRESSED,
        Change.IMPROVED,
        Change.UNCHANGED,
        Change.INCOMPARABLE,
    }

    found = unnoticed(path)

    names = ("task", "client", "configuration", "part", "name")
    assert found <= {
        "schema_version",
        "baseline",
        "baseline.*",
        "current",
        "current.*",
        "across",
        *(f"rows.*.{name}" for name in names),
        # A margin on one side alone is compared with nothing.
        "rows.*.before.margin",
        "rows.*.after.margin",
    }


@pytest.mark.parametrize(
    ("place", "value", "gives"),
    [
        (("changes", "regressed"), 0, "2"),
        (("rows", 0, "difference_ci95", "low"), 0.0, None),
        (("rows", 0, "change"), "improved", '"unchanged"'),
        (("rows", 0, "after", "passed"), 9, '"3 at most"'),
    ],
)
def test_an_edited_number_of_a_comparison_of_batches_is_named(
    place: tuple[Any, ...], value: Any, gives: str | None, tmp_path: Path
) -> None:
    """Also one from which no interval could be computed."""
    path = a_batch_comparison(tmp_path)
    document = json.loads(path.read_bytes())
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    gives = gives or json.dumps(inner[place[-1]])
    inner[place[-1]] = value
    path.write_bytes(dumps(document))

    told = [str(found) for found in verify(path)]

    field = ".".join(map(str, place))
    assert f"{field}: says {json.dumps(value)}, its rows give {gives}" in told


def test_a_row_that_is_compared_after_all_is_not_believed_incomparable(tmp_path: Path) -> None:
    """Its tallies say whether it was judged, whatever its reason says."""
    path = a_batch_comparison(tmp_path)
    document = json.loads(path.read_bytes())
    (number,) = [
        number
        for number, row in enumerate(document["rows"])
        if (row["reason"] or "").startswith("judged: ")
    ]
    document["rows"][number]["after"]["judged"] = 1
    path.write_bytes(dumps(document))

    fields = [found.field for found in verify(path)]

    assert {f"rows.{number}.change", f"rows.{number}.reason"} <= set(fields)


def test_no_field_of_an_accepted_document_can_be_changed(tmp_path: Path) -> None:
    """Its rates show which count was edited, and its digest everything else."""
    assert unnoticed(an_accepted_document(tmp_path)) == set()


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("passed", 0, "rows.2.pass_rate: says 1.0, its rows give 0.0"),
        ("passed", 2, 'rows.2.passed: says 2, its rows give "1 at most"'),
        ("pass_rate", 0.5, "rows.2.pass_rate: says 0.5, its rows give 1.0"),
    ],
)
def test_an_edited_number_of_an_accepted_document_is_named(
    field: str, value: float, told: str, tmp_path: Path
) -> None:
    """The row is told, and not the digest that every edit changes."""
    path = an_accepted_document(tmp_path)
    document = json.loads(path.read_bytes())
    document["rows"][2][field] = value
    path.write_bytes(dumps(document))

    assert [str(found) for found in verify(path)] == [told]


@pytest.mark.parametrize("make", [a_benchmark, a_regraded_benchmark, a_summary])
def test_no_field_of_a_benchmark_can_be_changed(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    """It holds no row of its own: all of it follows from what lies beside it."""
    assert unnoticed(make(tmp_path)) == {"schema_version"}


DERIVED = {"code", "outcome", "success", "cause.kind"}


@pytest.mark.parametrize("outcome", Outcome)
def test_no_derived_field_of_a_result_can_be_changed(outcome: Outcome, tmp_path: Path) -> None:
    """Outcome, success and the view of the code follow from gradings and expectations."""
    path = a_result(outcome)(tmp_path)
    found = unnoticed(path)

    assert starting(found, *DERIVED) == set()
    in_rows = starting(found, "gradings.*.rows.")
    assert not [place for place in in_rows if re.search("status|verdicts|check", place)]
    assert "execution" not in found or outcome is Outcome.EXCLUDED_ISOLATION
    assert "expectations.decisions.*.verdict" not in found


def test_no_derived_field_of_a_regrading_can_be_changed(tmp_path: Path) -> None:
    """A grading that was made again may not be edited into a success either."""
    found = unnoticed(a_regrade(tmp_path))

    assert starting(found, *DERIVED) == set()


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.SUCCEEDED])
def test_a_trial_cannot_be_edited_into_a_success(outcome: Outcome, tmp_path: Path) -> None:
    """Also with outcome, cause and success changed together."""
    path = a_result(outcome)(tmp_path)
    document = json.loads(path.read_bytes())
    document |= {"outcome": "succeeded", "cause": None, "success": "pass"}
    path.write_bytes(dumps(document))

    fields = [found.field for found in verify(path)]

    assert fields[:2] == ["outcome", "cause.kind"]


@pytest.mark.parametrize("kind", ["preparation", "interrupted", "worker_crash", "budget"])
def test_a_trial_that_failed_cannot_be_edited_out_of_the_count(kind: str, tmp_path: Path) -> None:
    """What was graded had been reached, whatever the cause says."""
    path = a_result(Outcome.FAILED)(tmp_path)
    outcome = "setup_failure" if kind == "preparation" else "cancelled"
    document = json.loads(path.read_bytes())
    document |= {"outcome": outcome, "cause": {"kind": kind, "detail": ""}, "success": None}
    path.write_bytes(dumps(document))

    assert [(found.field, found.gives) for found in verify(path)] == [
        ("outcome", "failed"),
        ("cause.kind", "code"),
        ("success", "fail"),
    ]


def test_a_level_of_isolation_that_was_not_had_is_found(tmp_path: Path) -> None:
    """Only enforced trials are compared, so the word is worth forging."""
    path = a_result(Outcome.SUCCEEDED)(tmp_path)
    document = json.loads(path.read_bytes())
    document["isolation"]["record"] = {"level": "trusted_local", "sandbox": "local"}
    path.write_bytes(dumps(document))

    (found,) = verify(path)

    assert str(found) == 'isolation.mode: says "enforced", its rows give "trusted_local"'


def test_what_the_document_says_and_what_its_rows_give_is_told(tmp_path: Path) -> None:
    """The reader must find the lie without computing anything."""
    path = an_audit(tmp_path)
    document = json.loads(path.read_bytes())
    document["mutants"][1]["detection_margin"] = 7
    document["detection"]["single_case_detections"] = []
    path.write_bytes(dumps(document))

    assert [str(found) for found in verify(path)] == [
        "mutants.1.detection_margin: says 7, its rows give 1",
        'detection.single_case_detections: says [], its rows give ["m1", "m2"]',
    ]


def test_a_row_that_was_edited_moves_everything_above_it(tmp_path: Path) -> None:
    """The rows are believed, so the numbers are what disagrees."""
    path = an_audit(tmp_path)
    document = json.loads(path.read_bytes())
    for row in document["mutants"][0]["evaluation"]["cases"]:
        row["verdicts"] = dict.fromkeys(row["verdicts"], True)
        row["status"] = "passed"
    path.write_bytes(dumps(document))

    gives = {found.field: found.gives for found in verify(path)}

    assert gives["mutants.0.class"] == "survived"
    assert gives["mutants.0.evaluation.score"] == 1.0
    assert (gives["killed"], gives["mutation_score"]) == (1, 0.5)
    assert gives["detection.weakest_margin"] == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.data())
def test_an_audit_of_any_controls_agrees_with_itself(tmp_path: Path, data: st.DataObject) -> None:
    """Broken, missing, crashed and flaky controls too: what was written is what is computed."""
    changes = {
        name: data.draw(gradings())
        for name in data.draw(
            st.sets(st.sampled_from(["reference", "reference_repeat", "starter", "m1", "m2"]))
        )
    }
    path = written(tmp_path, "audit.json", audit(**changes))

    assert verify(path) == ()
    assert read_model(path, Audit) == audit(**changes)


@st.composite
def gradings(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["none", "broken", "invalid", "crashed", "spoilt", "judged"]))
    fails = draw(st.sets(st.sampled_from(["adds.sums", "says.words", "says.style"])))
    spoilt = case("adds", 17, (), status="environment_error")
    unanswered = case("adds", 17, ("adds.sums",), status="agent_error", answered=False)
    cause = Cause(kind="grader_broke")
    return {
        "none": None,
        "broken": grading(status="infrastructure_error", cause=cause, rows=()),
        "invalid": grading(cause=Cause(kind="invalid_submission"), rows=()),
        "crashed": grading(rows=(unanswered,), steps={"build": "fail"}),
        "spoilt": grading(rows=(spoilt, *grading(*fails).rows[1:])),
        "judged": grading(*fails, steps={"build": draw(st.sampled_from(["pass", "fail"]))}),
    }[kind]


# What cannot be verified at all.


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{}", "is no document with derived numbers; known are audit.json, benchmark.json"),
        (b"[]", "is no document with derived numbers"),
        (b'{"schema_version": "1.0", "trials": []}', "is no document with derived numbers"),
        (b'{"mutation_score": 1, "schema_version": "2.0"}', "has schema version '2.0', not 1.x"),
        (
            b'{"mutation_score": 1, "schema_version": "evalarc.audit.v2"}',
            "has schema version 'evalarc.audit.v2', not 1.x",
        ),
        (b'{"mutation_score": NaN}', "NaN is not a JSON number"),
        (b'{"mutation_score": 1e999}', "1e999 is not finite"),
        (b'{"killed": 1, "killed": 2}', 'key "killed" is there twice'),
        (b'{"mutation_score": 1}', "Field required"),
        (b"{", "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[" * 10_000, "levels deep"),
    ],
)
def test_what_is_no_document_of_ours_is_refused_in_one_sentence(
    content: bytes, sentence: str, tmp_path: Path
) -> None:
    """It may be any file at all."""
    path = tmp_path / "file.json"
    path.write_bytes(content)

    with pytest.raises(DocumentError) as caught:
        verify(path)

    assert sentence in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_key_that_nobody_knows_is_refused(path: Path) -> None:
    """It could be what a reader of the document takes for a number of ours."""
    document = json.loads(path.read_bytes())
    path.write_bytes(dumps({**document, "mutation_scores": 1.0}))

    try:
        found = verify(path)
    except DocumentError as error:
        assert "mutation_scores" in str(error)
    else:
        assert [disagreement.field for disagreement in found] == ["mutation_scores"]


def test_rows_that_cannot_be_counted_are_told_with_the_file(tmp_path: Path) -> None:
    """A case that is there twice would weigh twice."""
    path = an_evaluation(tmp_path)
    document = json.loads(path.read_bytes())
    document["cases"].append(document["cases"][0])
    path.write_bytes(dumps(document))

    with pytest.raises(DocumentError, match="check 'adds' with seed 17 is there twice") as caught:
        verify(path)
    assert caught.value.where.startswith(str(path))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ({"sums": 0.4, "words": 0.5}, "weights: dimension 'style' has none"),
        ({"sums": 0.4, "words": 0.5, "style": 0.2}, "weights: are not shares that sum to 1"),
    ],
)
def test_weights_that_are_no_shares_are_told(
    weights: dict[str, float], sentence: str, tmp_path: Path
) -> None:
    """A score above 1 would be a traceback instead."""
    path = an_evaluation(tmp_path)
    path.write_bytes(dumps({**json.loads(path.read_bytes()), "weights": weights}))

    with pytest.raises(DocumentError, match=sentence):
        verify(path)


def test_a_benchmark_without_its_rows_cannot_be_verified(tmp_path: Path) -> None:
    """Copied away from its results it is a claim."""
    path = a_benchmark(tmp_path)
    alone = tmp_path / "benchmark.json"
    alone.write_bytes(path.read_bytes())

    with pytest.raises(DocumentError, match=r"plan\.json: cannot be read"):
        verify(alone)


def test_a_benchmark_of_an_edited_result_is_refused(tmp_path: Path) -> None:
    """It would agree with rows that do not agree with themselves."""
    path = a_benchmark(tmp_path)
    edited = result_of(path.parent, Outcome.FAILED)
    document = json.loads(edited.read_bytes())
    document["code"]["hidden"]["adds"] = "pass"
    edited.write_bytes(dumps(document))

    with pytest.raises(EditedError) as caught:
        verify(path)

    assert str(caught.value) == (
        f'{edited}: code.hidden.adds: says "pass", but its rows give "fail"; '
        "it was edited: restore it"
    )


def test_a_regrading_beside_another_trial_is_refused(tmp_path: Path) -> None:
    """Moved to another trial it would mend that one."""
    path = a_regrade(tmp_path)
    other = result_of(path.parent.parent, Outcome.FAILED).with_name("regrade-1.json")
    path.rename(other)

    with pytest.raises(DocumentError, match="is not of this trial"):
        verify(other)


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_a_document_of_every_kind_is_found_in_its_folder(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    """Also accepted results and comparisons, which are called as their makers like."""
    path = make(tmp_path)
    (tmp_path / "notes.json").write_text('{"schema_version": "1.0", "number": 1}', "utf-8")

    found = documents_in(tmp_path)

    assert path in found
    assert tmp_path / "notes.json" not in found


def test_nothing_that_an_agent_left_is_taken_for_a_document(tmp_path: Path) -> None:
    """Else a submission could make every look at the results fail, or fill it with its words."""
    result = a_result(Outcome.SUCCEEDED)(tmp_path)
    (result.parent.parent / "plan.json").write_text("{}", "utf-8")
    left = result.parent / "submission"
    left.mkdir()
    for name in ("result.json", "audit.json", "mine.json"):
        (left / name).write_text('{"schema_version": "1.0", "changes": {}}', "utf-8")

    for folder in (tmp_path, result.parent):
        found = documents_in(folder)
        assert result in found
        assert not [path for path in found if left in path.parents]
