from __future__ import annotations

from typing import Any

import pytest

from pytest_evalarc.counting.comparison import IncomparableError, compare
from pytest_evalarc.model.base import Cause
from tests.documents import OTHER, SEEDS, case, changed, evaluation, grading


def test_equal_evaluations_differ_in_nothing() -> None:
    """The smallest change must stand out."""
    comparison = compare(evaluation("adds.sums"), evaluation("adds.sums", batch="b2"))

    assert comparison.score_delta == 0.0
    assert not comparison.has_regressions
    assert comparison.regressions == comparison.improvements == comparison.case_transitions == ()
    assert [(case.seed, case.case) for case in comparison.current_failed_cases] == [
        (17, "adds"),
        (41, "adds"),
    ]


def test_what_changed_is_told_check_by_check() -> None:
    """A score of 0.6 after one of 0.4 hides that sums were lost."""
    comparison = compare(evaluation("says.words", "says.style"), evaluation("adds.sums"))

    assert (comparison.baseline.score, comparison.current.score) == (0.4, 0.6)
    assert comparison.score_delta == 0.2
    assert comparison.has_regressions
    assert dumped(comparison.regressions) == [
        {"seed": seed, "case": "adds", "dimension": "sums"} for seed in SEEDS
    ]
    assert dumped(comparison.improvements) == [
        {"seed": seed, "case": "says", "dimension": dimension}
        for seed in SEEDS
        for dimension in ("words", "style")
    ]
    assert dumped(comparison.case_transitions)[:2] == [
        {
            "seed": 17,
            "case": "adds",
            "before": "passed",
            "after": "failed",
            "regressed": ["sums"],
            "improved": [],
        },
        {
            "seed": 17,
            "case": "says",
            "before": "failed",
            "after": "passed",
            "regressed": [],
            "improved": ["words", "style"],
        },
    ]
    assert "Of the checks 2 regressed and 4 improved." in comparison.interpretation


def dumped(models: Any) -> list[dict[str, Any]]:
    return [model.model_dump(mode="json") for model in models]


def test_a_case_can_get_better_and_worse_at_once() -> None:
    """Its status alone, failed before and after, would hide both."""
    comparison = compare(evaluation("says.words"), evaluation("says.style"))

    (first, second) = comparison.case_transitions
    assert (first.before, first.after) == (second.before, second.after) == ("failed", "failed")
    assert (first.regressed, first.improved) == (("style",), ("words",))


def test_a_check_that_is_not_run_any_more_regressed() -> None:
    """The submission does not build: nothing of it was spared by that."""
    rows = tuple(
        case(check, seed, (), status="not_run", verdicts={})
        for seed in SEEDS
        for check in ("adds", "says")
    )
    comparison = compare(evaluation(), evaluation(rows=rows, steps={"build": "fail"}))

    assert len(comparison.regressions) == 6
    assert comparison.score_delta == -1.0


def test_a_step_that_fails_now_is_a_regression() -> None:
    """All checks pass, and yet what was resolved is not any more."""
    before = evaluation(steps={"build": "pass", "fmt_check": "pass"})
    after = evaluation(steps={"build": "pass", "fmt_check": "fail"})

    comparison = compare(before, after)

    assert comparison.regressed_steps == ("fmt_check",)
    assert comparison.has_regressions
    assert comparison.score_delta == 0.0
    assert compare(after, before).improved_steps == ("fmt_check",)
    assert not compare(after, before).has_regressions


@pytest.mark.parametrize("field", OTHER)
def test_what_was_not_made_in_the_same_way_is_refused_with_the_field(field: str) -> None:
    """A difference of scores that another limit explains is no difference of submissions."""
    with pytest.raises(IncomparableError) as caught:
        compare(evaluation(), changed(evaluation(), field, OTHER[field]))

    assert caught.value.where == field
    shown = str(OTHER[field]).replace("'", '"')
    assert shown in caught.value.problem.partition(" in the baseline and ")[2]
    assert "is " in caught.value.problem.partition(" in the baseline and ")[0]


def test_a_runtime_that_nobody_recorded_is_equal_to_none() -> None:
    """Two unknown runtimes are not the same one."""
    unknown = evaluation(runtime=None)

    for pair, name in (
        ((unknown, unknown), "the baseline"),
        ((evaluation(), unknown), "the current evaluation"),
    ):
        with pytest.raises(IncomparableError, match=f"runtime: is not recorded in {name}"):
            compare(*pair)


def test_an_evaluation_that_broke_is_compared_with_nothing() -> None:
    """It says nothing of its candidate."""
    broken = evaluation(status="infrastructure_error", cause=Cause(kind="grader_broke"))

    with pytest.raises(IncomparableError, match="valid: is false in the baseline"):
        compare(broken, evaluation())
    with pytest.raises(IncomparableError, match="valid: is false in the current evaluation"):
        compare(evaluation(), broken)


def test_evaluations_of_other_cases_are_refused() -> None:
    """A case that is gone would otherwise be neither lost nor kept."""
    rows = grading().rows

    with pytest.raises(IncomparableError, match="cases: case 'says' with seed 41"):
        compare(evaluation(), evaluation(rows=rows[:-1]))
