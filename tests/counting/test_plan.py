"""Tests of which trials are treated, and of their order."""

from __future__ import annotations

import pytest

from pytest_evalarc.counting.plan import is_treated, planned_trials

PAIR = ("without-skills", "with-skills")


def test_rounds_alternate_which_configuration_goes_first() -> None:
    """A machine that warms up or tires would otherwise favour one side in every round."""
    trials = planned_trials(PAIR, 3)

    assert [(t.round, t.order, t.configuration) for t in trials] == [
        (1, 1, "without-skills"),
        (1, 2, "with-skills"),
        (2, 1, "with-skills"),
        (2, 2, "without-skills"),
        (3, 1, "without-skills"),
        (3, 2, "with-skills"),
    ]


def test_every_round_runs_one_trial_of_each_configuration() -> None:
    """Folders are named by trial and configuration, so each pair must occur exactly once."""
    trials = planned_trials((*PAIR, "noise"), 4)

    assert {t.folder for t in trials} == {
        f"trial-{number}-{name}" for number in range(1, 5) for name in (*PAIR, "noise")
    }
    assert len(trials) == 12
    assert all(t.trial == t.round for t in trials)


@pytest.mark.parametrize(("configurations", "trials"), [(PAIR, 0), ((), 1), (("a", "a"), 1)])
def test_a_plan_of_nothing_or_of_doubles_is_refused(
    configurations: tuple[str, ...], trials: int
) -> None:
    """Two trials of one folder would overwrite each other's results."""
    with pytest.raises(ValueError, match=r"trials is|not distinct"):
        planned_trials(configurations, trials)


def test_the_treatment_among_others_is_the_treatment() -> None:
    """Noise is compared with `without`, so it is counted as treated."""
    names = ("without-skills", "with-skills", "noise", "baseline")

    assert [is_treated(name) for name in names] == [False, True, True, False]
