"""Tests of scores by dimension and altogether."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evalarc.counting.score import dimension_scores, evaluate
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.task import PackRef

ONE_CHECK = {"a": ("a",)}


def test_every_declared_fault_scores_what_was_measured(pack, task_ref) -> None:
    """The published scores of all three packs' mutants follow from where each one fails."""
    scores = {
        fault.name: evaluate(task_ref, pack.grading(fault.fails), pack.checks, pack.weights).score
        for fault in pack.faults
    }

    assert scores == {fault.name: fault.score for fault in pack.faults}


def test_a_passing_submission_scores_one_and_is_resolved(pack, task_ref) -> None:
    """The weights sum to 1 in decimal, and binary noise must not keep a perfect score from it."""
    evaluation = evaluate(task_ref, pack.grading({}), pack.checks, pack.weights)

    assert (evaluation.score, evaluation.resolved, evaluation.status) == (1.0, True, "passed")


def test_a_do_nothing_support_candidate_is_far_from_resolved(support_routing, task_ref) -> None:
    """It scores 0.35 for harming nothing; no weighted score stands for resolution."""
    fails = support_routing.faults[0].fails
    evaluation = evaluate(
        task_ref, support_routing.grading(fails), support_routing.checks, support_routing.weights
    )

    assert (evaluation.score, evaluation.resolved) == (0.35, False)
    assert {name: (d.passed, d.total) for name, d in evaluation.dimensions.items()} == {
        "routing": (0, 12),
        "notes": (0, 12),
        "closure": (6, 12),
        "scope": (12, 12),
        "protocol": (12, 12),
    }


def test_a_failed_step_leaves_the_score_and_takes_the_resolution(row, grading, task_ref) -> None:
    """The score speaks of the checks alone; resolved means that everything asked was met."""
    graded = grading([row("a", {"a": True})], steps=[("build", "pass"), ("fmt_check", "fail")])

    evaluation = evaluate(task_ref, graded, ONE_CHECK, {"a": 1.0})

    assert (evaluation.score, evaluation.resolved, evaluation.status) == (1.0, False, "failed")


def test_a_spoilt_case_makes_the_score_null_and_not_lower(durable_kv, task_ref) -> None:
    """An environment failure says nothing of the candidate: neither 0 nor the rest is a score."""
    graded = durable_kv.grading({})
    spoilt = graded.rows[0].model_copy(update={"status": "environment_error"})
    graded = graded.model_copy(update={"rows": (spoilt, *graded.rows[1:])})

    evaluation = evaluate(task_ref, graded, durable_kv.checks, durable_kv.weights)

    assert (evaluation.valid, evaluation.score, evaluation.resolved) == (False, None, False)
    assert evaluation.status == "environment_error"
    basic = evaluation.dimensions["basic"]
    assert (basic.passed, basic.assessed, basic.total, basic.score) == (8, 8, 9, None)
    assert evaluation.dimensions["validation"].score == 1.0


@pytest.mark.parametrize("has_rows", [True, False])
def test_a_submission_that_does_not_build_scores_zero(has_rows, row, grading, task_ref) -> None:
    """Its checks never ran through its own fault; a null score would spare it the failure."""
    rows = [row("a", {}, status="not_run", answered=False)] if has_rows else []

    evaluation = evaluate(task_ref, grading(rows, steps=[("build", "fail")]), ONE_CHECK, {"a": 1.0})

    assert (evaluation.valid, evaluation.score, evaluation.status) == (True, 0.0, "failed")
    assert evaluation.dimensions["a"].assessed == 0


def test_cases_that_nobody_asked_for_leave_the_score_unknown(durable_kv, task_ref) -> None:
    """A fast audit runs one dimension of a mutant; the rest is unknown, neither passed nor lost."""
    some = [case for case, dims in durable_kv.checks.items() if dims == ("persistence",)]

    evaluation = evaluate(
        task_ref, durable_kv.grading({}, only=some), durable_kv.checks, durable_kv.weights
    )

    assert (evaluation.valid, evaluation.score, evaluation.resolved) == (True, None, False)
    assert evaluation.dimensions["persistence"].score == 1.0
    assert evaluation.dimensions["basic"].score is None


@pytest.mark.parametrize(
    ("run", "told"), [((17,), (17,)), ((97, 41), (41, 97)), ((), (41, 17, 97))]
)
def test_an_evaluation_names_the_seeds_that_were_run(durable_kv, task_ref, run, told) -> None:
    """A starter is put to one of them, and nobody shall read more into its score."""
    packed = replace(task_ref, pack=PackRef(name="durable-kv", seeds=(41, 17, 97)))
    grading = durable_kv.grading({}, seeds=run)

    evaluation = evaluate(packed, grading, durable_kv.checks, durable_kv.weights)

    assert evaluation.seeds == told


def test_a_task_without_checks_has_no_score(grading, task_ref) -> None:
    """It asks only whether a skill loads: its score is null, and a clean build resolves it."""
    evaluation = evaluate(task_ref, grading(steps=[("build", "pass")]), {}, {})

    assert (evaluation.score, evaluation.resolved) == (None, True)


def test_doubled_and_unknown_rows_are_refused(row) -> None:
    """Counted twice a case would weigh twice, and a stray one means that documents are mixed up."""
    with pytest.raises(DocumentError, match="seed 17 is there twice"):
        dimension_scores([row("a", {"a": True}, seed=17)] * 2, ONE_CHECK, {"a": 1.0})
    with pytest.raises(DocumentError, match="check 'z' is not one of this task"):
        dimension_scores([row("z", {"a": True})], ONE_CHECK, {"a": 1.0})


@settings(deadline=None)
@given(
    lost=st.sets(st.tuples(st.integers(0, 14), st.sampled_from([17, 41, 97]))),
    order=st.randoms(use_true_random=False),
)
def test_the_score_is_a_fraction_that_no_order_changes(
    lost, order, *, durable_kv, task_ref, row, grading
) -> None:
    """Rows arrive as workers finish; the score is the mean of what each seed alone would score."""
    rows = [
        row(check, {dims[0]: (index, seed) not in lost}, seed=seed)
        for index, (check, dims) in enumerate(durable_kv.checks.items())
        for seed in (17, 41, 97)
    ]
    by_seed = [
        evaluate(
            task_ref,
            grading([r for r in rows if r.seed == seed]),
            durable_kv.checks,
            durable_kv.weights,
        ).score
        for seed in (17, 41, 97)
    ]
    order.shuffle(rows)

    score = evaluate(task_ref, grading(rows), durable_kv.checks, durable_kv.weights).score

    assert 0.0 <= score <= 1.0
    assert score == pytest.approx(sum(by_seed) / 3, abs=2e-8)
    assert (score == 1.0) == (not lost)
