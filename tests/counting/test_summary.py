"""Tests of what a batch shows over all of its tasks and clients."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

import pytest

from pytest_evalarc.counting.benchmark import count
from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.counting.summary import summarize_batch
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.base import SCHEMA_VERSION, Cause
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.isolation import TrialIsolation
from pytest_evalarc.model.planned import Execution, Outcome
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.model.task import Deadlines, TaskRef
from pytest_evalarc.model.trial import ModelRef, PlanDoc, TrialResult, Versioned

WITHOUT, WITH = "without-skills", "with-skills"


def benchmark(
    task: str,
    *,
    client: str = "fast",
    treatment: str | None = "skills",
    trials: int = 5,
    reached: int | None = None,
    mode: str = "enforced",
    setup_fails: bool = False,
    served: Iterable[str] = (),
    **succeeded: int,
) -> Benchmark:
    """Return a benchmark in which the first `succeeded` trials of a configuration succeed.

    Args:
        task: Its name.
        client: The client's label.
        treatment: None for a task without one.
        trials: Planned, of each configuration.
        reached: How many of each were run; all unless it is given.
        mode: The isolation of all trials.
        setup_fails: Whether no trial starts at all.
        served: Models that answer the configurations, in their order.
        **succeeded: `without`, `with_` and `baseline`.
    """
    names = {"without": WITHOUT, "with_": WITH, "baseline": "baseline"}
    wanted = {names[key]: number for key, number in succeeded.items()}
    models = dict(zip(wanted, served, strict=False))
    ref = TaskRef(name=task, kind="capability", content_hash="c" * 64)
    plan = PlanDoc(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=ref,
        client=client,
        client_kind="claude",
        treatment=treatment,
        deadlines_secs=Deadlines(),
        sandbox="bwrap",
        session_sandbox="srt",
        trials=planned_trials(tuple(wanted), trials),
    )

    def result(configuration: str, trial: int, order: int) -> TrialResult:
        outcome = Outcome.SUCCEEDED if trial <= wanted[configuration] else Outcome.FAILED
        cause = None if outcome is Outcome.SUCCEEDED else Cause(kind="code")
        if setup_fails:
            outcome, cause = Outcome.SETUP_FAILURE, Cause(kind="preparation")
        model = models.get(configuration)
        return TrialResult(
            schema_version=SCHEMA_VERSION,
            task=ref,
            client=Versioned(name="claude"),
            model=ModelRef(served=(model,) if model else ()),
            mode=configuration,
            trial=trial,
            order=order,
            os="linux x86_64",
            deadlines_secs=Deadlines(),
            execution=Execution.COMPLETED,
            isolation=TrialIsolation(mode=mode),
            outcome=outcome,
            cause=cause,
        )

    ran = [entry for entry in plan.trials if entry.trial <= (reached or trials)]
    return count(plan, {one.folder: result(one.configuration, one.trial, one.order) for one in ran})


def night(*, tasks: int = 6, trials: int = 5, gain: int = 2, client: str = "fast"):
    """Return benchmarks of tasks of which each is a little harder than the one before."""
    return [
        benchmark(
            f"task-{number}",
            client=client,
            trials=trials,
            without=number % 3,
            with_=min(trials, number % 3 + gain + number % 2),
        )
        for number in range(tasks)
    ]


def test_a_rate_over_tasks_is_the_mean_of_their_rates() -> None:
    """A task of many trials weighs no more than one of few: tasks are what was sampled."""
    large = benchmark("large", trials=20, without=0, with_=20)
    small = benchmark("small", trials=5, without=5, with_=5)

    (across,) = summarize_batch("b1", [large, small]).across_tasks

    assert across.tasks == 2
    assert across.configurations[WITHOUT].success_rate == 0.5
    assert across.configurations[WITH].success_rate == 1.0
    assert across.delta == 0.5
    # Pooled trials would say 5/25 and 25/25, so 0.8.


def test_few_tasks_have_no_interval_and_no_verdict() -> None:
    """Four tasks that all agree would have an interval without any width."""
    (across,) = summarize_batch("b1", night(tasks=4)).across_tasks

    assert (across.delta_ci95, across.verdict, across.reason) == (None, None, "too_few_tasks")
    assert across.configurations[WITH].ci95 is None


def test_enough_tasks_have_an_interval_around_the_mean_difference() -> None:
    """It is of whole tasks, and the verdict is the side of 0 that it lies on."""
    benchmarks = night()
    (across,) = summarize_batch("b1", benchmarks).across_tasks

    deltas = [one.delta.success_rate for one in benchmarks]
    assert deltas == pytest.approx([0.4, 0.6, 0.4, 0.6, 0.4, 0.6])
    assert across.delta == pytest.approx(fmean(deltas))
    assert 0.35 < across.delta_ci95.low < 0.5 < across.delta_ci95.high < 0.65
    assert (across.verdict, across.reason) == (Shown.HELPED, None)
    rate = across.configurations[WITHOUT]
    assert rate.success_rate in rate.ci95


@pytest.mark.parametrize(("gain", "word"), [(-2, Shown.HARMED), (0, Shown.NO_DIFFERENCE)])
def test_the_verdict_over_tasks_has_all_sides(gain: int, word: Shown) -> None:
    """Harm is told as plainly as help, and no difference shown is not no difference."""
    benchmarks = [
        benchmark(f"task-{n}", without=2 + n % 2, with_=2 + gain + (n // 2) % 2) for n in range(8)
    ]

    summary = summarize_batch("b1", benchmarks)

    assert summary.across_tasks[0].verdict is word
    assert "no difference shown is not the same as no difference" in summary.interpretation


def test_p_values_of_many_tasks_are_adjusted_to_one_another() -> None:
    """Of twenty tasks one differs by chance, and a reader would look at just that one."""
    lucky = benchmark("lucky", trials=6, without=0, with_=5)
    others = [benchmark(f"task-{n}", trials=6, without=3, with_=3) for n in range(19)]

    alone = summarize_batch("b1", [lucky]).tasks[0]
    among = next(
        row for row in summarize_batch("b1", [lucky, *others]).tasks if row.task == "lucky"
    )

    assert alone.p_value == alone.p_value_holm == among.p_value == pytest.approx(0.01515152)
    assert alone.verdict is Shown.HELPED
    assert among.p_value_holm == pytest.approx(20 * 0.01515152, abs=1e-6)
    assert among.verdict is Shown.NO_DIFFERENCE


def test_clients_and_treatments_are_never_mixed() -> None:
    """The mean over two agents is the rate of neither."""
    benchmarks = [
        *night(tasks=5, gain=2),
        *night(tasks=5, gain=0, client="slow"),
        benchmark("plain", treatment=None, baseline=3),
    ]

    summary = summarize_batch("b1", reversed(benchmarks))

    told = [(each.client, each.treatment, each.tasks) for each in summary.across_tasks]
    assert told == [("fast", None, 1), ("fast", "skills", 5), ("slow", "skills", 5)]
    plain = summary.across_tasks[0]
    assert (plain.delta, plain.delta_ci95, plain.verdict) == (None, None, None)
    assert plain.configurations["baseline"].success_rate == 0.6
    assert [(row.task, row.client) for row in summary.tasks] == sorted(
        (one.task, one.client) for one in benchmarks
    )


@pytest.mark.parametrize(
    ("why", "facts"),
    [
        ("partial", {"reached": 3}),
        ("not_enforced", {"mode": "trusted_local"}),
        ("models_differ", {"served": ("big-1", "small-1")}),
        ("no_rate", {"setup_fails": True}),
    ],
)
def test_a_task_that_cannot_be_compared_is_left_out_by_name(why: str, facts: dict) -> None:
    """It moves no number over tasks, and its row says why."""
    odd = benchmark("odd", without=0, with_=5, **facts)
    summary = summarize_batch("b1", [*night(), odd])
    (across,) = summary.across_tasks
    (row,) = [row for row in summary.tasks if row.task == "odd"]

    assert (row.left_out, row.p_value_holm) == (why, None)
    assert (across.tasks, across.left_out) == (6, ("odd",))
    (without_it,) = summarize_batch("b1", night()).across_tasks
    assert across.delta_ci95 == without_it.delta_ci95
    assert across.configurations == without_it.configurations


def test_a_task_without_treatment_outside_a_boundary_is_left_out_too() -> None:
    """Its benchmark has no delta that would say so."""
    odd = benchmark("odd", treatment=None, mode="exploratory", baseline=5)

    (row,) = summarize_batch("b1", [odd]).tasks

    assert row.left_out == "not_enforced"


def test_a_batch_in_which_nothing_counts_says_so() -> None:
    """Null with a reason, and no rate of nothing."""
    summary = summarize_batch("b1", [benchmark("odd", without=0, with_=5, reached=1)])
    (across,) = summary.across_tasks

    assert (across.tasks, across.delta, across.configurations) == (0, None, {})
    assert across.reason == "no_task"
    assert summary.interpretation.startswith("With fast no task can be counted.")


def test_it_is_said_in_a_sentence_for_each_client_and_treatment() -> None:
    """Whoever reads nothing else reads how sure it is."""
    summary = summarize_batch("b1", night())
    few = summarize_batch("b1", night(tasks=1))
    plain = summarize_batch("b1", [benchmark("plain", treatment=None, baseline=3)])

    bounds = summary.across_tasks[0].delta_ci95
    assert summary.interpretation.startswith(
        "With fast over 6 tasks: skills helped, success rate +0.50 "
        f"(95 % from {bounds.low:+.2f} to {bounds.high:+.2f}). Tasks weigh the same"
    )
    assert few.interpretation.startswith(
        "With fast over 1 task: too few tasks to tell whether skills helped, success rate +0.40. "
    )
    assert plain.interpretation.startswith("Success rates with fast over 1 task: baseline 0.60. ")


def test_a_summary_does_not_depend_on_the_order_of_its_tasks() -> None:
    """Two sessions find the folders in whatever order, and must write the same bytes."""
    benchmarks = night()

    assert summarize_batch("b1", benchmarks) == summarize_batch("b1", reversed(benchmarks))


def test_what_is_not_of_the_batch_is_refused() -> None:
    """Copied results would be counted where they were never measured."""
    one = benchmark("one", without=1, with_=2)

    with pytest.raises(DocumentError, match="is of batch 'b1', not of 'b2'"):
        summarize_batch("b2", [one])
    with pytest.raises(DocumentError, match="is there twice"):
        summarize_batch("b1", [one, one])
