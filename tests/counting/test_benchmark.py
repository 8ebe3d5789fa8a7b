"""Tests of what the trials of one task and client add up to."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.counting.shards import own_trials
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.isolation import TrialIsolation
from pytest_evalarc.model.planned import Execution, Outcome, Shard
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.model.task import Deadlines, TaskRef
from pytest_evalarc.model.transcript import Load, Usage
from pytest_evalarc.model.trial import (
    Decision,
    Expectations,
    ModelRef,
    PlanDoc,
    SkillFacts,
    TrialResult,
    Versioned,
)

TASK = TaskRef(name="store-durability", kind="capability", content_hash="c" * 64)
WITHOUT, WITH = "without-symposium", "with-symposium"
STARTED = (
    Outcome.EXCLUDED_ISOLATION,
    Outcome.EXCLUDED_GRADING,
    Outcome.FAILED,
    Outcome.INCONCLUSIVE,
    Outcome.SUCCEEDED,
)
CAUSES = {
    Outcome.SETUP_FAILURE: "prelaunch",
    Outcome.CANCELLED: "worker_crash",
    Outcome.EXCLUDED_ISOLATION: "escape",
    Outcome.EXCLUDED_GRADING: "grading",
    Outcome.FAILED: "code",
}


def make_plan(trials, *, configurations=(WITHOUT, WITH), treatment="symposium", model=None):
    return PlanDoc(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=TASK,
        client="fast-claude",
        client_kind="claude",
        model=model,
        treatment=treatment,
        deadlines_secs=Deadlines(),
        sandbox="bwrap",
        session_sandbox="srt",
        trials=planned_trials(configurations, trials),
    )


def make_result(
    trial,
    outcome,
    *,
    cause=None,
    tokens=None,
    secs=None,
    cost=None,
    served=(),
    mode="enforced",
    **more,
):
    kind = cause or CAUSES.get(outcome)
    return TrialResult(
        schema_version=SCHEMA_VERSION,
        task=TASK,
        client=Versioned(name="claude"),
        model=ModelRef(served=served),
        mode=trial.configuration,
        trial=trial.trial,
        order=trial.order,
        os="linux x86_64",
        deadlines_secs=Deadlines(),
        elapsed_secs=secs,
        usage=None
        if tokens is None
        else Usage(input_tokens=tokens, output_tokens=0, cost_usd=cost),
        execution=Execution.COMPLETED,
        isolation=TrialIsolation(mode=mode),
        outcome=outcome,
        cause=Cause(kind=kind) if kind else None,
        **more,
    )


def make_results(plan, **outcomes):
    """Results by folder: `without` and `with_` give an outcome, or keywords, per round."""
    told = {WITHOUT: outcomes["without"], WITH: outcomes["with_"]}
    results = {}
    for trial in plan.trials:
        entry = told[trial.configuration][trial.round - 1]
        if entry is not None:
            keywords = entry if isinstance(entry, dict) else {"outcome": entry}
            results[trial.folder] = make_result(trial, **keywords)
    return results


def loads(**loads_by_skill):
    skills = {name: SkillFacts(observed_load=load) for name, load in loads_by_skill.items()}
    return Expectations(skills=skills)


S, F, Q = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.INCONCLUSIVE


@pytest.fixture(scope="module")
def reference_example():
    """The reference's own example: 2 of 5 without and 4 of 5 with the treatment."""
    plan = make_plan(5)
    loaded = loads(store=Load.LOADED)
    return plan, make_results(
        plan,
        without=[
            {"outcome": S, "tokens": 44000, "secs": 90},
            {"outcome": S, "tokens": 44200, "secs": 94},
            {"outcome": F, "tokens": 36300, "secs": 71},
            {"outcome": F, "tokens": 35000, "secs": 75},
            {"outcome": F, "tokens": 35000, "secs": 75},
        ],
        with_=[
            *[
                {"outcome": S, "tokens": tokens, "secs": 72, "expectations": loaded}
                for tokens in (30000, 34000, 38000, 42000)
            ],
            {
                "outcome": F,
                "cause": "expectation",
                "tokens": 31500,
                "secs": 62,
                "expectations": loads(store=Load.NOT_OBSERVED),
            },
        ],
    )


def test_the_example_of_the_reference_is_reproduced(reference_example) -> None:
    """Its published document, key by key, follows from ten results."""
    data = count(*reference_example).to_json()

    expected = {
        WITHOUT: {
            "planned": 5,
            "setup_failures": 0,
            "cancelled": 0,
            "started": 5,
            "excluded": {"isolation": 0, "grading": 0},
            "eligible": 5,
            "succeeded": 2,
            "failed": 3,
            "inconclusive": 0,
            "success_rate": 0.4,
            "ci95": {"low": 0.11762077, "high": 0.76927572},
            "pass_at_k": {"1": 0.4, "2": 0.7, "3": 0.9, "4": 1.0, "5": 1.0},
            "pass_pow_k": {"1": 0.4, "2": 0.1, "3": 0.0, "4": 0.0, "5": 0.0},
            "pass_all": False,
            "cost": {
                "eligible": {
                    "tokens": {"mean": 38900, "trials": 5},
                    "agent_secs": {"mean": 81, "trials": 5},
                    "cost_usd": {"mean": None, "trials": 0},
                },
                "succeeded": {
                    "tokens": {"mean": 44100, "trials": 2},
                    "agent_secs": {"mean": 92, "trials": 2},
                    "cost_usd": {"mean": None, "trials": 0},
                },
            },
        },
        WITH: {
            "planned": 5,
            "setup_failures": 0,
            "cancelled": 0,
            "started": 5,
            "excluded": {"isolation": 0, "grading": 0},
            "eligible": 5,
            "succeeded": 4,
            "failed": 1,
            "inconclusive": 0,
            "success_rate": 0.8,
            "ci95": {"low": 0.37553463, "high": 0.96377589},
            "pass_at_k": {"1": 0.8, "2": 1.0, "3": 1.0, "4": 1.0, "5": 1.0},
            "pass_pow_k": {"1": 0.8, "2": 0.6, "3": 0.4, "4": 0.2, "5": 0.0},
            "pass_all": False,
            "observed_load": {
                "store": {"loaded": 4, "attempted": 0, "not_observed": 1, "unknown": 0}
            },
            "cost": {
                "eligible": {
                    "tokens": {"mean": 35100, "trials": 5},
                    "agent_secs": {"mean": 70, "trials": 5},
                    "cost_usd": {"mean": None, "trials": 0},
                },
                "succeeded": {
                    "tokens": {"mean": 36000, "trials": 4},
                    "agent_secs": {"mean": 72, "trials": 4},
                    "cost_usd": {"mean": None, "trials": 0},
                },
            },
        },
    }
    for name, keys in expected.items():
        counted = data["configurations"][name]
        assert {key: counted[key] for key in keys} == keys
    assert list(data["configurations"]) == [WITHOUT, WITH]
    assert "observed_load" not in data["configurations"][WITHOUT]
    assert (data["task"], data["client"]) == ("store-durability", "fast-claude")
    assert (data["isolation"], data["selection"]) == ("enforced", "complete")


def test_the_clocks_of_hosts_change_no_figure(reference_example) -> None:
    """When a trial started is told of it and nothing else: hosts may be hours apart."""
    plan, results = reference_example
    now = datetime(2026, 1, 1, tzinfo=UTC)
    skewed = {
        folder: result.model_copy(update={"started_at": now - timedelta(hours=7 * number)})
        for number, (folder, result) in enumerate(results.items())
    }

    assert count(plan, skewed) == count(plan, results)


def test_the_delta_nests_like_a_configuration(reference_example) -> None:
    """With minus without, for each rate and mean, and without the noise of binary fractions."""
    delta = count(*reference_example).delta.to_json()

    assert delta == {
        "success_rate": 0.4,
        "success_rate_ci95": {"low": -0.16261479, "high": 0.72643616},
        "p_value": 0.52380952,
        "matched": {
            "both": 2,
            "only_treated": 2,
            "only_baseline": 0,
            "neither": 1,
            "p_value": 0.5,
        },
        "verdict": "no_difference_shown",
        "code_rate": None,
        "cost": {
            "eligible": {"tokens": -3800, "agent_secs": -11, "cost_usd": None},
            "succeeded": {"tokens": -8100, "agent_secs": -20, "cost_usd": None},
        },
        "reason": None,
    }


@pytest.mark.parametrize(
    ("trials", "without", "with_", "word"),
    [
        (5, 0, 5, Shown.HELPED),
        (5, 5, 0, Shown.HARMED),
        (5, 2, 4, Shown.NO_DIFFERENCE),
        (4, 0, 4, Shown.TOO_FEW),
    ],
)
def test_a_delta_has_a_verdict_unless_trials_are_too_few(trials, without, with_, word) -> None:
    """A reader takes one word away, so it must not be one that chance would give as well."""
    plan = make_plan(trials)
    ends = {
        key: [S] * number + [F] * (trials - number)
        for key, number in (("without", without), ("with_", with_))
    }

    assert count(plan, make_results(plan, **ends)).delta.verdict is word


def test_a_partial_benchmark_has_no_verdict() -> None:
    """The trials that are missing may be just those that would have turned it."""
    plan = make_plan(6)
    results = make_results(plan, without=[F, F, F, F, F, None], with_=[S, S, S, S, S, S])

    benchmark = count(plan, results)

    assert (benchmark.selection, benchmark.delta.verdict) == ("partial", None)
    assert benchmark.delta.success_rate_ci95.low > 0


def test_trials_are_matched_by_their_number_where_both_count() -> None:
    """An excluded trial takes its counterpart out of the pairs, and out of no rate."""
    plan = make_plan(6)
    out, setup = Outcome.EXCLUDED_GRADING, Outcome.SETUP_FAILURE
    results = make_results(plan, without=[F, F, S, S, out, F], with_=[S, S, F, S, S, setup])

    delta = count(plan, results).delta

    assert delta.matched.to_json() == {
        "both": 1,
        "only_treated": 2,
        "only_baseline": 1,
        "neither": 0,
        "p_value": 1.0,
    }
    # 4 of 5 against 2 of 5.
    assert delta.p_value == pytest.approx(0.52380952)


def test_without_a_pair_nothing_is_matched() -> None:
    """Rates of different trials are compared all the same."""
    plan = make_plan(2)
    out = Outcome.EXCLUDED_GRADING
    delta = count(plan, make_results(plan, without=[F, out], with_=[out, S])).delta

    assert (delta.matched, delta.success_rate, delta.p_value) == (None, 1.0, 1.0)


def test_an_older_benchmark_is_still_read(reference_example) -> None:
    """Keys were added since: programs that keep benchmarks need not write them again."""
    document = count(*reference_example).to_json()
    for configuration in document["configurations"].values():
        for key in ("ci95", "pass_at_k", "pass_pow_k"):
            del configuration[key]
    for key in ("success_rate_ci95", "p_value", "matched", "verdict"):
        del document["delta"][key]

    older = Benchmark.model_validate(document)

    assert older.configurations[WITH].ci95 is None
    assert older.delta.success_rate == 0.4


def test_infrastructure_errors_are_neither_failures_nor_forgotten() -> None:
    """2 passed, 4 failed, 2 broke: the rate is 2/6, and the 2 are printed beside it."""
    plan = make_plan(8, configurations=("baseline",), treatment=None)
    ends = [S, S, F, F, F, F, Outcome.EXCLUDED_GRADING, Outcome.EXCLUDED_GRADING]
    results = {t.folder: make_result(t, end) for t, end in zip(plan.trials, ends, strict=True)}

    benchmark = count(plan, results)

    counted = benchmark.configurations["baseline"]
    assert (counted.started, counted.eligible, counted.excluded.grading) == (8, 6, 2)
    assert counted.success_rate == 2 / 6
    assert counted.causes["excluded"] == {"grading": 2}
    assert benchmark.delta is None
    assert "delta" not in benchmark.to_json()


def test_with_nothing_eligible_every_rate_and_mean_is_null() -> None:
    """An arm with no countable trial has no rate: not 0, not 1, and no NaN."""
    plan = make_plan(2)
    setup, escape = Outcome.SETUP_FAILURE, Outcome.EXCLUDED_ISOLATION
    results = make_results(plan, without=[setup, setup], with_=[escape, S])

    benchmark = count(plan, results)

    counted = benchmark.configurations[WITHOUT]
    assert (counted.success_rate, counted.pass_all, counted.code.rate) == (None, None, None)
    assert (counted.ci95, counted.pass_at_k, counted.pass_pow_k) == (None, {}, {})
    assert counted.cost.eligible.tokens.to_json() == {"mean": None, "trials": 0}
    assert benchmark.configurations[WITH].success_rate == 1.0
    assert (benchmark.delta.success_rate, benchmark.delta.success_rate_ci95) == (None, None)
    assert set(benchmark.delta.cost["eligible"].values()) == {None}


def test_unknown_usage_is_left_out_of_the_mean_and_never_zero() -> None:
    """A client may report time and no tokens, so each mean carries its own count."""
    plan = make_plan(4, configurations=("baseline",), treatment=None)
    usages = [
        Usage(input_tokens=100, output_tokens=10, cache_read_tokens=5, cache_write_tokens=1),
        Usage(input_tokens=100, output_tokens=None, cache_read_tokens=900),
        Usage(input_tokens=200, output_tokens=0),
        None,
    ]
    results = {
        t.folder: make_result(t, S, secs=secs).model_copy(update={"usage": usage})
        for t, usage, secs in zip(plan.trials, usages, (1.0, 2.0, 3.0, None), strict=True)
    }

    cost = count(plan, results).configurations["baseline"].cost

    assert cost.eligible.tokens.to_json() == {"mean": (116 + 200) / 2, "trials": 2}
    assert cost.succeeded.agent_secs.to_json() == {"mean": 2.0, "trials": 3}


def test_a_planned_trial_without_a_result_was_not_reached() -> None:
    """A run that was cut short must not pass for a smaller, complete one."""
    plan = make_plan(3)
    results = make_results(plan, without=[S, Outcome.CANCELLED, None], with_=[S, S, S])

    benchmark = count(plan, results)

    counted = benchmark.configurations[WITHOUT]
    assert (counted.planned, counted.cancelled, counted.started) == (3, 2, 1)
    assert counted.causes["cancelled"] == {"not_reached": 1, "worker_crash": 1}
    assert benchmark.selection == "partial"
    assert count(plan, {}).configurations[WITH].causes["cancelled"] == {"not_reached": 3}
    assert count(plan, {}).isolation is None


def test_a_trial_that_a_budget_kept_back_has_that_cause() -> None:
    """It can be gone on with for more money, while one that was not reached needs another run."""
    plan = make_plan(3)
    results = make_results(plan, without=[S, S, None], with_=[S, None, None])
    kept_back = {f"trial-{n}-{mode}" for n in (2, 3) for mode in (WITHOUT, WITH)}

    benchmark = count(plan, results, kept_back=kept_back - {"trial-2-with-symposium"})

    assert benchmark.configurations[WITHOUT].causes["cancelled"] == {"budget": 1}
    assert benchmark.configurations[WITH].causes["cancelled"] == {"budget": 1, "not_reached": 1}
    # What was started before is counted as what it became.
    assert benchmark.configurations[WITHOUT].succeeded == 2
    assert benchmark.selection == "partial"


def test_a_shard_counts_its_own_rounds_alone() -> None:
    """Trials of other machines are no lost ones, and rates of a part decide nothing."""
    plan = make_plan(4)
    shard = Shard(number=1, of=2)
    own = own_trials(plan.trials, shard, task=TASK.name, client=plan.client)
    results = make_results(plan, without=[S, S, S, S], with_=[S, S, S, S])
    mine = {trial.folder: results[trial.folder] for trial in own}

    benchmark = count(plan, mine, shard=shard)

    counted = benchmark.configurations[WITH]
    assert (counted.planned, counted.cancelled, counted.succeeded) == (2, 0, 2)
    assert (benchmark.selection, benchmark.shard) == ("partial", shard)
    assert benchmark.delta is not None
    assert benchmark.delta.verdict is None
    with pytest.raises(DocumentError, match="the plan has no such trial"):
        count(plan, results, shard=shard)


def test_the_only_shard_is_the_whole_plan() -> None:
    """A matrix of one job is asked like any other, and there is nothing to merge it with."""
    plan = make_plan(2)
    results = make_results(plan, without=[S, S], with_=[S, S])

    benchmark = count(plan, results, shard=Shard(number=1, of=1))

    assert benchmark.selection == "complete"


def test_money_is_a_mean_with_its_own_count() -> None:
    """A client that was killed told tokens and no price, or nothing at all."""
    plan = make_plan(3)
    results = make_results(
        plan,
        without=[
            {"outcome": S, "tokens": 10, "cost": 0.5},
            {"outcome": F, "tokens": 10, "cost": 0.1},
            {"outcome": F, "tokens": 10},
        ],
        with_=[
            {"outcome": S, "tokens": 10, "cost": 0.25},
            {"outcome": Outcome.EXCLUDED_ISOLATION, "tokens": 10, "cost": 9.0},
            {"outcome": F},
        ],
    )

    benchmark = count(plan, results)

    cost = benchmark.configurations[WITHOUT].cost
    assert cost.eligible.cost_usd.to_json() == {"mean": 0.3, "trials": 2}
    assert cost.succeeded.cost_usd.to_json() == {"mean": 0.5, "trials": 1}
    assert benchmark.delta.cost["eligible"]["cost_usd"] == -0.05
    assert benchmark.delta.cost["succeeded"]["cost_usd"] == -0.25


@pytest.mark.parametrize(
    ("without", "with_", "reason"),
    [
        ([("a",), ("a",)], [("a",), ("a",)], None),
        ([("a", "b"), ("b", "a")], [("a", "b"), ("b", "a", "a")], None),
        # What a client does not say is no difference.
        ([("a",), ()], [(), ("a",)], None),
        ([(), ()], [(), ()], None),
        ([("a",), ("a",)], [("b",), ("b",)], "models_differ"),
        ([("a",), ("a", "b")], [("a",), ("a", "b")], "models_differ"),
        ([("a",), ("a",)], [("a",), ("a", "small")], "models_differ"),
    ],
)
def test_arms_that_other_models_answered_are_not_compared(without, with_, reason) -> None:
    """A model that stood in for the one that was asked for would pass for the treatment."""
    plan = make_plan(2)
    results = make_results(
        plan,
        without=[{"outcome": F, "served": served} for served in without],
        with_=[{"outcome": S, "served": served} for served in with_],
    )

    delta = count(plan, results).delta

    assert (delta.reason, delta.success_rate) == (reason, None if reason else 1.0)


def test_the_models_of_trials_that_do_not_count_forbid_no_comparison() -> None:
    """They are in no rate and in no mean."""
    plan = make_plan(2)
    void = {"outcome": Outcome.EXCLUDED_ISOLATION, "served": ("other",)}
    same = {"outcome": S, "served": ("b", "a")}

    benchmark = count(plan, make_results(plan, without=[same, void], with_=[same, same]))

    assert benchmark.delta.reason is None
    assert benchmark.configurations[WITHOUT].served == {"a + b": 1}
    assert benchmark.configurations[WITH].served == {"a + b": 2}


def test_causes_are_counted_in_their_groups() -> None:
    """A report can then say why trials are missing, which decides what to do about it."""
    plan = make_plan(4)
    results = make_results(
        plan,
        without=[
            {"outcome": F, "cause": "timeout"},
            {"outcome": F, "cause": "timeout"},
            {"outcome": F, "cause": "code"},
            Outcome.EXCLUDED_ISOLATION,
        ],
        with_=[Outcome.SETUP_FAILURE, {"outcome": Q, "cause": "expectation"}, S, S],
    )

    configurations = count(plan, results).configurations

    assert configurations[WITHOUT].causes == {
        "setup_failures": {},
        "cancelled": {},
        "excluded": {"escape": 1},
        "failed": {"code": 1, "timeout": 2},
    }
    assert configurations[WITH].causes["setup_failures"] == {"prelaunch": 1}
    assert configurations[WITH].inconclusive == 1


def test_the_code_rate_stands_beside_the_success_rate(row, grading) -> None:
    """The treated arm must meet expectations too, so its success alone is held to more."""
    good = grading([row("a", {"a": True})])
    bad = grading([row("a", {"a": False})])
    spoilt = grading(status="infrastructure_error", cause="sandbox")
    plan = make_plan(4)
    results = make_results(
        plan,
        without=[{"outcome": S, "gradings": (good,)}, *[{"outcome": F, "gradings": (bad,)}] * 3],
        with_=[
            {"outcome": F, "cause": "expectation", "gradings": (good,)},
            {"outcome": F, "cause": "code", "gradings": (good, bad)},
            {"outcome": F, "cause": "timeout", "gradings": (spoilt,)},
            {"outcome": Outcome.EXCLUDED_ISOLATION, "gradings": (good,)},
        ],
    )

    benchmark = count(plan, results)

    assert benchmark.configurations[WITHOUT].code.to_json() == {
        "passed": 1,
        "eligible": 4,
        "rate": 0.25,
    }
    # The last grading counts; what a broken one would have said is unknown.
    assert benchmark.configurations[WITH].code.to_json() == {
        "passed": 1,
        "eligible": 2,
        "rate": 0.5,
    }
    assert (benchmark.delta.code_rate, benchmark.delta.success_rate) == (0.25, -0.25)


def test_loads_and_expectations_are_those_of_eligible_treated_trials() -> None:
    """An excluded trial's load is no observation, and a missing one is unknown, not absent."""

    def seen(load, verdict):
        decisions = (
            Decision(name="used-store", verdict=verdict, rests_on=()),
            Decision(name="not_installed-x", verdict=None, rests_on=()),
        )
        return loads(store=load).model_copy(update={"decisions": decisions})

    plan = make_plan(4)
    results = make_results(
        plan,
        without=[S] * 4,
        with_=[
            {"outcome": S, "expectations": seen(Load.LOADED, "pass")},
            {"outcome": F, "expectations": seen(Load.ATTEMPTED, "fail")},
            {"outcome": F, "cause": "client_error"},
            {
                "outcome": Outcome.EXCLUDED_ISOLATION,
                "expectations": seen(Load.LOADED, "pass"),
            },
        ],
    )

    configurations = count(plan, results).configurations

    assert configurations[WITH].observed_load == {
        "store": {Load.LOADED: 1, Load.ATTEMPTED: 1, Load.NOT_OBSERVED: 0, Load.UNKNOWN: 1}
    }
    assert configurations[WITH].expectations == {
        "used-store": {"pass": 1, "fail": 1, "inconclusive": 0}
    }
    assert configurations[WITHOUT].observed_load is None
    assert configurations[WITHOUT].expectations is None


@pytest.mark.parametrize(
    ("modes", "level"),
    [
        (("exploratory", "exploratory"), "exploratory"),
        (("trusted_local", "trusted_local"), "trusted_local"),
        (("enforced", "exploratory"), "mixed"),
    ],
)
def test_only_enforced_trials_are_compared(modes, level) -> None:
    """Without an enforced boundary the difference may be what leaked, so no delta is told."""
    plan = make_plan(1)
    results = make_results(
        plan,
        without=[{"outcome": F, "mode": modes[0], "secs": 1}],
        with_=[{"outcome": S, "mode": modes[1], "secs": 2}],
    )

    benchmark = count(plan, results)

    assert benchmark.isolation == level
    assert benchmark.configurations[WITH].success_rate == 1.0
    assert benchmark.delta.to_json() == {
        "success_rate": None,
        "success_rate_ci95": None,
        "p_value": None,
        "matched": None,
        "verdict": None,
        "code_rate": None,
        "cost": {
            "eligible": {"tokens": None, "agent_secs": None, "cost_usd": None},
            "succeeded": {"tokens": None, "agent_secs": None, "cost_usd": None},
        },
        "reason": "not_enforced",
    }


def test_a_trial_that_never_started_has_no_isolation_level() -> None:
    """A set-up failure ran nothing, so its mode must not turn the batch into a mixed one."""
    plan = make_plan(1)
    results = make_results(
        plan, without=[{"outcome": Outcome.SETUP_FAILURE, "mode": "exploratory"}], with_=[S]
    )

    assert count(plan, results).isolation == "enforced"


def test_one_configuration_alone_has_nothing_to_be_compared_with() -> None:
    """`--evalarc-configuration with` keeps the key, so that readers find null and not a gap."""
    plan = make_plan(1, configurations=(WITH,))
    (trial,) = plan.trials

    benchmark = count(plan, {trial.folder: make_result(trial, S)})

    assert benchmark.delta.success_rate is None


def test_noise_is_compared_when_it_is_the_treatment_of_the_batch() -> None:
    """The treatment among all other plugins is a treated configuration like `with`."""
    plan = make_plan(1, configurations=(WITHOUT, "noise"))
    results = {
        trial.folder: make_result(trial, outcome)
        for trial, outcome in zip(plan.trials, (F, S), strict=True)
    }

    assert count(plan, results).delta.success_rate == 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"task": replace(TASK, content_hash="e" * 64)}, "task content hash is"),
        ({"mode": WITH}, "configuration is 'with-symposium', planned 'without-symposium'"),
        ({"client": Versioned(name="codex")}, "client is 'codex', planned 'fast-claude'"),
        ({"model": ModelRef(name="other")}, "model is 'other', planned 'big'"),
        ({"trial": 7}, "trial is 7, planned 1"),
    ],
)
def test_a_result_of_another_plan_is_refused(change, sentence) -> None:
    """Counting it would compare two different things under one name."""
    plan = make_plan(1, model="big")
    folder = plan.trials[0].folder
    result = make_result(plan.trials[0], S).model_copy(update=change)

    with pytest.raises(DocumentError, match=sentence) as caught:
        count(plan, {folder: result})

    assert caught.value.where == f"{folder}/result.json"


def test_a_result_that_was_never_planned_is_refused() -> None:
    """A trial added afterwards would be one picked by hand."""
    plan = make_plan(1)

    with pytest.raises(DocumentError, match="the plan has no such trial"):
        count(plan, {"trial-2-with-symposium": make_result(plan.trials[1], S)})


def test_a_result_may_name_the_client_by_its_label() -> None:
    """Label and kind differ when several models run side by side; either is this plan's."""
    plan = make_plan(1)
    result = make_result(plan.trials[0], S).model_copy(
        update={"client": Versioned(name="fast-claude")}
    )

    assert count(plan, {plan.trials[0].folder: result}).configurations[WITHOUT].succeeded == 1


ENDS = st.one_of(st.none(), st.sampled_from(list(Outcome)))
TRIALS = st.lists(
    st.tuples(ENDS, ENDS, st.none() | st.integers(0, 10**6), st.none() | st.floats(0, 1e5)),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(trials=TRIALS, dice=st.integers(0, 2**32))
def test_every_planned_trial_ends_in_exactly_one_place(trials, dice) -> None:
    """The two equations of the reference hold, rates are fractions, and no order matters."""
    plan = make_plan(len(trials))
    given = [
        [end and {"outcome": end, "tokens": tokens, "secs": secs} for end in (left, right)]
        for left, right, tokens, secs in trials
    ]
    results = make_results(
        plan, without=[pair[0] for pair in given], with_=[pair[1] for pair in given]
    )
    shuffled = list(results.items())
    random.Random(dice).shuffle(shuffled)

    benchmark = count(plan, results)

    assert count(plan, dict(shuffled)) == benchmark
    for index, counted in enumerate(benchmark.configurations.values()):
        ends = [trial[index] for trial in trials]
        assert counted.planned == len(trials)
        assert counted.started == sum(end in STARTED for end in ends)
        assert counted.planned == counted.setup_failures + counted.cancelled + counted.started
        assert counted.eligible == counted.succeeded + counted.failed + counted.inconclusive
        excluded = counted.excluded.isolation + counted.excluded.grading
        assert counted.eligible == counted.started - excluded
        assert (counted.success_rate is None) == (counted.eligible == 0)
        assert counted.success_rate is None or 0.0 <= counted.success_rate <= 1.0
        assert counted.pass_all in (None, counted.succeeded == counted.eligible)
        assert counted.cost.succeeded.tokens.trials <= counted.succeeded
        assert counted.cost.eligible.agent_secs.trials <= counted.eligible
        assert sum(counted.causes["cancelled"].values()) == counted.cancelled
        assert sum(counted.causes["failed"].values()) == counted.failed
    assert (benchmark.selection == "partial") == any(
        end in (None, Outcome.CANCELLED) for trial in trials for end in trial[:2]
    )
