from __future__ import annotations

from typing import Any

import pytest

from pytest_evalarc.counting.batches_compared import compare_batches, compared_again
from pytest_evalarc.counting.measured import measured_audit
from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.comparison import BatchComparison, Change
from pytest_evalarc.model.measured import Measured, MeasuredConditions, MeasuredRow
from tests.documents import audit, grading

WITH = "with-skills"


def row(name: str, passed: int, judged: int, **facts: Any) -> MeasuredRow:
    usual = {"configuration": WITH, "part": "check"}
    return MeasuredRow(**{**usual, "name": name, "passed": passed, "judged": judged, **facts})


def measured(*rows: MeasuredRow, **facts: Any) -> Measured:
    conditions = {
        "task": "c" * 64,
        "client_version": "2.1.3",
        "model": "m1",
        "served": ("m1",),
        "treatment": "skills",
        "isolation": "enforced",
        **facts.pop("conditions", {}),
    }
    usual = {
        "schema_version": SCHEMA_VERSION,
        "kind": "trials",
        "task": "tiny",
        "client": "claude",
        "batch": "b1",
        "selection": "complete",
        "conditions": MeasuredConditions(**conditions),
    }
    return Measured(**{**usual, **facts, "rows": rows})


def changes(comparison: BatchComparison) -> dict[str, str]:
    return {found.name: found.change.value for found in comparison.rows}


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ((5, 5), (5, 5), "unchanged"),
        ((1, 3), (2, 6), "unchanged"),
        ((5, 5), (4, 5), "less_reliable"),
        ((1, 3), (1, 4), "less_reliable"),
        ((1, 5), (0, 5), "regressed"),
        ((5, 5), (0, 1), "regressed"),
        ((0, 5), (0, 3), "unchanged"),
        ((0, 5), (1, 5), "improved"),
        ((5, 5), (0, 0), "incomparable"),
        ((0, 0), (5, 5), "incomparable"),
        (None, (5, 5), "newly_covered"),
        ((5, 5), None, "removed"),
    ],
)
def test_a_row_changes_in_one_way(
    before: tuple[int, int] | None, after: tuple[int, int] | None, change: str
) -> None:
    """A check that never passes any more is graver than one that passes less often."""
    one = measured(*(row("adds", *tally) for tally in [before] if tally))
    two = measured(*(row("adds", *tally) for tally in [after] if tally), batch="b2")

    comparison = compare_batches([one], [two])

    assert changes(comparison) == {"adds": change}
    assert comparison.changes[Change(change)] == 1
    assert sum(comparison.changes.values()) == 1


def test_how_sure_a_difference_is_stands_beside_it() -> None:
    """56 of 70 against 48 of 80 is Newcombe's own example, from 0.0524 to 0.3339."""
    one, two = measured(row("adds", 48, 80)), measured(row("adds", 56, 70))

    (found,) = compare_batches([one], [two]).rows

    assert found.difference_ci95 is not None
    assert (found.difference_ci95.low, found.difference_ci95.high) == pytest.approx(
        (0.0524, 0.3339), abs=5e-5
    )


@pytest.mark.parametrize(
    ("word", "field", "value", "told"),
    [
        ("client", "client_version", "2.1.4", 'client_version: is "2.1.3" in the baseline and'),
        ("model", "model", "m2", 'model: is "m1" in the baseline and "m2" now'),
        ("model", "served", ("m2",), 'served.0: is "m1" in the baseline and "m2" now'),
        ("model", "settings", {"effort": "low"}, "settings.effort: is nothing in the baseline"),
        ("isolation", "isolation", "exploratory", 'isolation: is "exploratory" in the current'),
        ("seeds", "seeds", (17,), "seeds: is [] in the baseline and [17] now"),
        ("task", "task", "e" * 64, 'task: is "cccccc'),
    ],
)
def test_what_differs_is_named_and_may_be_allowed(
    word: str, field: str, value: Any, told: str
) -> None:
    """A rate under another model says nothing of the treatment, unless that was the question."""
    one = measured(row("adds", 5, 5))
    two = measured(row("adds", 0, 5), conditions={field: value})

    refused = compare_batches([one], [two])
    allowed = compare_batches([one], [two], across=[word])

    (found,) = refused.rows
    assert found.change is Change.INCOMPARABLE
    assert found.reason is not None and found.reason.startswith(told)
    assert found.difference_ci95 is None
    assert changes(allowed) == {"adds": "regressed"}
    assert allowed.across == (word,)


def test_a_task_that_changed_still_tells_its_new_and_removed_checks() -> None:
    """A check cannot come or go without the task's digest changing."""
    one = measured(row("adds", 5, 5), row("old", 5, 5))
    two = measured(row("adds", 0, 5), row("new", 5, 5), conditions={"task": "e" * 64})

    assert changes(compare_batches([one], [two])) == {
        "adds": "incomparable",
        "new": "newly_covered",
        "old": "removed",
    }


@pytest.mark.parametrize("side", [0, 1])
def test_a_partial_batch_is_not_compared(side: int) -> None:
    """What it did not get to is neither removed nor regressed."""
    sides = [measured(row("adds", 5, 5), row("says", 5, 5)), measured(row("adds", 0, 5))]
    sides[side] = sides[side].model_copy(update={"selection": "partial"})

    comparison = compare_batches([sides[0]], [sides[1]])

    assert set(changes(comparison).values()) == {"incomparable"}
    assert all("selection: is partial" in str(found.reason) for found in comparison.rows)


def test_an_exploratory_batch_is_not_compared_even_with_its_like() -> None:
    """Nothing was enforced in either, so nobody knows what each of them could reach."""
    loose = measured(row("adds", 5, 5), conditions={"isolation": "exploratory"})

    assert changes(compare_batches([loose], [loose])) == {"adds": "incomparable"}
    assert changes(compare_batches([loose], [loose], across=["isolation"])) == {"adds": "unchanged"}


def test_tasks_of_one_side_alone_are_new_or_removed() -> None:
    """A whole task that is gone must not pass for one without changes."""
    one, two = measured(row("adds", 1, 1), task="old"), measured(row("adds", 1, 1), task="new")

    found = compare_batches([one], [two])
    kept = compare_batches([one], [two], only_current=True)

    assert [(entry.task, entry.change.value) for entry in found.rows] == [
        ("new", "newly_covered"),
        ("old", "removed"),
    ]
    assert [entry.task for entry in kept.rows] == ["new"]
    assert kept.baseline == ()


def test_clients_are_compared_with_each_other_when_that_is_asked() -> None:
    """Which of two agents does better is a question of its own."""
    one = measured(row("adds", 5, 5))
    two = measured(row("adds", 0, 5), client="codex", conditions={"client_version": "0.40"})

    assert set(changes(compare_batches([one], [two], across=["client"])).values()) == {"regressed"}
    assert {entry.change.value for entry in compare_batches([one], [two]).rows} == {
        "newly_covered",
        "removed",
    }


def test_treatments_are_compared_side_by_side_when_that_is_asked() -> None:
    """A placebo and a skill have other names and the same places: treated, and not treated."""
    sides = ("without-placebo", "with-placebo", "noise")
    placebo = [row("a", 1, 5).model_copy(update={"configuration": name}) for name in sides]
    sides = ("without-skills", "with-skills", "noise")
    skills = [row("a", 4, 5).model_copy(update={"configuration": name}) for name in sides]
    before, after = measured(*placebo, conditions={"treatment": "placebo"}), measured(*skills)

    found = compare_batches([before], [after], across=["treatment"])
    refused = compare_batches([before], [after]).rows

    assert {one.change for one in refused} == {Change.INCOMPARABLE}
    assert {one.reason for one in refused} == {
        'treatment: is "placebo" in the baseline and "skills" now'
    }
    assert [(one.configuration, one.change.value) for one in found.rows] == [
        (name, "improved") for name in sides
    ]
    assert found.rows[1].before is not None
    assert found.rows[1].before.passed == 1
    assert compared_again(found) == found


def test_a_side_with_a_task_twice_is_refused() -> None:
    """Nobody could say which of the two is meant."""
    twice = [measured(row("adds", 1, 1)), measured(row("adds", 1, 1), batch="b2")]

    with pytest.raises(UsageError, match="tiny/claude/b2: stands beside tiny/claude/b1"):
        compare_batches(twice, [measured(row("adds", 1, 1))])


# Audits.


def test_an_audit_is_compared_fault_by_fault() -> None:
    """A mutant that the checks let pass is a regression of the checks, whatever the score says."""
    before = measured_audit(audit())
    after = measured_audit(audit(m1=grading(digest="2"), m2=grading("says.words", digest="3")))

    found = {entry.name: entry for entry in compare_batches([before], [after]).rows}

    assert {name: entry.change.value for name, entry in found.items()} == {
        "reference": "unchanged",
        "starter": "unchanged",
        "m1": "regressed",
        "m2": "unchanged",
    }
    assert found["m1"].after is not None and found["m1"].after.margin == 0
    assert all(entry.difference_ci95 is None for entry in found.values())


def test_a_narrower_margin_is_less_reliable() -> None:
    """The fault is still caught, by fewer cases, and the next change may lose it."""
    before = measured_audit(audit())
    rows = [
        entry.model_copy(update={"margin": 3}) if entry.name == "m1" else entry
        for entry in before.rows
    ]
    wider = before.model_copy(update={"rows": tuple(rows)})

    assert changes(compare_batches([wider], [before]))["m1"] == "less_reliable"
    assert changes(compare_batches([before], [wider]))["m1"] == "improved"


def test_audits_compare_across_versions_of_a_task_but_not_across_faults() -> None:
    """The checks are what an audit judges, and a fault of the same name may be another one."""
    before = measured_audit(audit())
    conditions = before.conditions.model_copy(update={"task": "e" * 64})
    after = measured_audit(audit(m2=grading("says.words", digest="9"))).model_copy(
        update={"conditions": conditions}
    )

    found = {entry.name: entry for entry in compare_batches([before], [after]).rows}

    assert found["m1"].change is Change.UNCHANGED
    assert found["m2"].change is Change.INCOMPARABLE
    assert "fault_sha256: is" in str(found["m2"].reason)


def test_a_fast_audit_is_not_compared_with_a_full_one() -> None:
    """It runs fewer cases, so its margins are of another kind."""
    full = measured_audit(audit())
    fast = full.model_copy(
        update={"conditions": full.conditions.model_copy(update={"mode": "fast"})}
    )

    assert set(changes(compare_batches([full], [fast])).values()) == {"incomparable"}


def test_a_reference_that_fails_once_of_twice_is_less_reliable() -> None:
    """Flaky checks are told although the reference passed at first."""
    before = measured_audit(audit())
    after = measured_audit(audit(reference_repeat=grading("says.style")))

    found = changes(compare_batches([before], [after]))

    assert found["reference"] == "less_reliable"


def test_the_sentence_counts_what_changed() -> None:
    """It stands alone in a log."""
    comparison = compare_batches(
        [measured(row("adds", 5, 5), row("says", 5, 5))],
        [measured(row("adds", 0, 5), row("says", 4, 5))],
    )

    assert comparison.interpretation.startswith("Of the rows: 1 regressed, 1 less reliable.")
