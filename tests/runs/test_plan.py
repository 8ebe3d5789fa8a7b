from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evalarc.clients.embedded.nop import nop
from pytest_evalarc.clients.embedded.oracle import oracle
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.runs.plan import check_plan, make_audit_plan, make_plan
from pytest_evalarc.treatments.skills import Skills
from tests.evals import TASK, Evals


def test_the_order_of_configurations_alternates_between_rounds(tmp_path: Path) -> None:
    """Whichever ran first would otherwise always meet the colder machine."""
    plan = Evals(tmp_path, options={"trials": 3}).plan

    assert [
        (entry.round, entry.order, entry.configuration, entry.trial) for entry in plan.trials
    ] == [
        (1, 1, "without-skills", 1),
        (1, 2, "with-skills", 1),
        (2, 1, "with-skills", 2),
        (2, 2, "without-skills", 2),
        (3, 1, "without-skills", 3),
        (3, 2, "with-skills", 3),
    ]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("both", ("without-skills", "with-skills")),
        ("with", ("with-skills",)),
        ("without", ("without-skills",)),
        ("noise", ("noise",)),
    ],
)
def test_a_choice_of_configurations_selects_among_them(
    tmp_path: Path, choice: str, names: tuple[str, ...]
) -> None:
    """A user may measure one side alone."""
    assert Evals(tmp_path, options={"configuration": choice}).plan.configurations == names


def test_a_task_without_plugins_has_one_configuration(tmp_path: Path) -> None:
    """There is nothing to be with or without, whatever happens to be installed."""
    bare = TASK.replace('plugins = ["guide"]\n', "").replace(
        '[expected]\ninstalled = ["use-numbers"]\nused = ["use-numbers"]\n', ""
    )

    plan = Evals(tmp_path, files={"evals/tasks/tiny/task.toml": bare}).plan

    assert plan.configurations == ("baseline",)
    assert plan.treatment is None


def test_the_kept_plan_equals_the_plan_that_was_made(tmp_path: Path) -> None:
    """It is a function of options and task, so every process writes and reads the same."""
    settings = {"recording": "x", "list": [1, 2.5, None, {"a": True}]}
    evals = Evals(tmp_path, client="replay", options={"trials": 2}, settings=settings)

    evals.trial()

    made = make_plan(evals.task, evals.request, evals.label, sandbox="bwrap")
    assert read_model(evals.folder / "plan.json", PlanDoc) == made.document == evals.plan


def test_an_audit_plan_names_each_case_with_its_dimensions_and_each_mutant(tmp_path: Path) -> None:
    """The audit is complete when exactly these controls were graded."""
    evals = Evals(tmp_path)

    plan = make_audit_plan(evals.task, evals.request, sandbox="bwrap")

    assert plan.checks == {"adds": ("sums",), "empty": ("edges",)}
    assert {mutant.name: mutant.target_dimension for mutant in plan.mutants} == {
        "first-only": "sums",
        "empty-is-one": "edges",
    }
    assert sum(plan.weights.values()) == 1


def test_the_oracle_needs_a_solution_to_play(tmp_path: Path) -> None:
    """Otherwise it would play the bare starter, and look like a solution that fails."""
    task = Evals(tmp_path).task
    unsolved = replace(task, has_solution=False)

    check_plan(task, oracle(), Skills())
    check_plan(unsolved, nop(), Skills())
    with pytest.raises(UsageError, match="task tiny: has no solution/ to play"):
        check_plan(unsolved, oracle(), Skills())
