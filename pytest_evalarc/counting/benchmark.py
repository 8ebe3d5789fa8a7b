"""What the trials of one task and client add up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pytest_evalarc.counting.intervals import newcombe_difference, wilson_interval
from pytest_evalarc.counting.outcome import CauseKind
from pytest_evalarc.counting.paired import mcnemar_exact
from pytest_evalarc.counting.passes import by_k, pass_at_k, pass_pow_k
from pytest_evalarc.counting.plan import is_treated
from pytest_evalarc.counting.rates import fisher_exact, verdict
from pytest_evalarc.counting.shards import own_trials
from pytest_evalarc.counting.validity import infrastructure_fault
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.benchmark import (
    Benchmark,
    CodeRate,
    ConfigurationBenchmark,
    Cost,
    CostOver,
    Delta,
    Excluded,
    Level,
    Matched,
    Mean,
)
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.planned import Outcome, PlannedTrial, Shard
from pytest_evalarc.model.transcript import Load
from pytest_evalarc.model.trial import PlanDoc, TrialResult, Verdict

CostFigure: TypeAlias = Literal["tokens", "agent_secs", "cost_usd"]
Incomparable: TypeAlias = Literal["not_enforced", "models_differ"]

SERVED_TOGETHER = " + "
"""Stands between the models of a trial that several answered."""

DECIMALS = 8
"""Enough for any rate, and few enough to hide binary noise as in 0.6 - 0.4."""

_COUNTED = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.INCONCLUSIVE)
_CAUSE_GROUPS = {
    Outcome.SETUP_FAILURE: "setup_failures",
    Outcome.CANCELLED: "cancelled",
    Outcome.EXCLUDED_ISOLATION: "excluded",
    Outcome.EXCLUDED_GRADING: "excluded",
    Outcome.FAILED: "failed",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counted:
    """All of a finished trial that is counted: whole, thousands of them would fill the memory."""

    outcome: Outcome
    cause: str | None
    code_passed: bool | None
    """None where nothing was graded, and where nobody knows."""
    loads: Mapping[str, Load]
    verdicts: Sequence[tuple[str, Verdict]]
    tokens: int | None
    agent_secs: float | None
    cost_usd: float | None
    served: str
    """The models that answered, sorted and joined; empty where the client does not say."""
    level: Literal["enforced", "exploratory", "trusted_local"]


def count(
    plan: PlanDoc,
    results: Mapping[str, TrialResult],
    *,
    kept_back: Collection[str] = (),
    shard: Shard | None = None,
) -> Benchmark:
    """Return what a batch adds up to, as `count_each`, by `PlannedTrial.folder`."""
    return count_each(plan, results.items(), kept_back=kept_back, shard=shard)


def count_each(
    plan: PlanDoc,
    results: Iterable[tuple[str, TrialResult]],
    *,
    kept_back: Collection[str] = (),
    shard: Shard | None = None,
) -> Benchmark:
    """Return what a batch adds up to; a function of its plan and results alone.

    Args:
        plan: Every trial that was planned.
        results: Each finished trial with its `PlannedTrial.folder`, in any order; looked at one
            after another, and none of them is held. A planned trial without a result counts as
            cancelled, `not_reached`.
        kept_back: Folders of planned trials that were not started because a budget was reached:
            without a result they count as cancelled, `budget`.
        shard: The part of the plan that these are the results of; None is all of it. Trials of
            other shards are not planned here, so they are not counted as cancelled either.

    Returns:
        Counts by place, and rates and means that are None where there is nothing to count. The
        delta is the treatment minus its baseline, rounded to 8 decimals; its values are None
        unless all started trials were enforced and all eligible ones answered by the same
        models, since only those are compared.

    Raises:
        DocumentError: A result is not of this plan or shard: its trial, task, client, model or
            configuration differs.
    """
    planned = own_trials(plan.trials, shard, task=plan.task.name, client=plan.client)
    counted = _counted_by_folder(plan, planned, results)
    configurations = {
        name: _count_configuration(
            {
                trial.folder: counted.get(trial.folder)
                for trial in planned
                if trial.configuration == name
            },
            treated=is_treated(name),
            kept_back=kept_back,
        )
        for name in plan.configurations
    }
    isolation = _isolation(counted.values())
    is_short = any(configuration.cancelled for configuration in configurations.values())
    is_partial = is_short or (shard is not None and shard.is_part)
    return Benchmark(
        schema_version=SCHEMA_VERSION,
        batch=plan.batch,
        task=plan.task.name,
        kind=plan.task.kind,
        content_hash=plan.task.content_hash,
        client=plan.client,
        model=plan.model,
        treatment=plan.treatment,
        isolation=isolation,
        selection="partial" if is_partial else "complete",
        shard=shard,
        configurations=configurations,
        delta=_delta(plan, configurations, counted, is_partial=is_partial),
    )


def _counted_by_folder(
    plan: PlanDoc, planned: Iterable[PlannedTrial], results: Iterable[tuple[str, TrialResult]]
) -> dict[str, _Counted]:
    by_folder = {trial.folder: trial for trial in planned}
    counted: dict[str, _Counted] = {}
    for folder, result in results:
        problem = _contradiction(plan, by_folder.get(folder), result)
        if problem:
            raise DocumentError(
                f"{folder}/result.json", problem, "it belongs to another batch, or was edited"
            )
        counted[folder] = _counted(result)
    return counted


def _counted(result: TrialResult) -> _Counted:
    expected = result.expectations
    return _Counted(
        outcome=result.outcome,
        cause=result.cause.kind if result.cause else None,
        code_passed=_code_passed(result),
        loads={name: facts.observed_load for name, facts in expected.skills.items()}
        if expected
        else {},
        verdicts=[
            (decision.name, decision.verdict)
            for decision in (expected.decisions if expected else ())
            if decision.verdict is not None
        ],
        tokens=result.usage.total if result.usage else None,
        agent_secs=result.elapsed_secs,
        cost_usd=result.usage.cost_usd if result.usage else None,
        served=SERVED_TOGETHER.join(sorted(set(result.model.served))),
        level=result.isolation.mode,
    )


def _code_passed(result: TrialResult) -> bool | None:
    """Return whether the code passed its last grading; None when that is not known at all.

    A timed-out trial stays eligible when its grading breaks, and then nobody knows.
    """
    if not result.gradings or infrastructure_fault(result.gradings[-1]) is not None:
        return None
    return result.gradings[-1].code_passed


def _contradiction(plan: PlanDoc, trial: PlannedTrial | None, result: TrialResult) -> str | None:
    if trial is None:
        return "the plan has no such trial"
    pairs: list[tuple[str, object, object]] = [
        ("task", result.task.name, plan.task.name),
        ("task content hash", result.task.content_hash, plan.task.content_hash),
        ("configuration", result.mode, trial.configuration),
        ("trial", result.trial, trial.trial),
        ("order", result.order, trial.order),
    ]
    if result.client.name != plan.client_kind:
        pairs.append(("client", result.client.name, plan.client))
    if plan.model is not None and result.model.name is not None:
        pairs.append(("model", result.model.name, plan.model))
    for what, found, wanted in pairs:
        if found != wanted:
            return f"{what} is {found!r}, planned {wanted!r}"
    return None


def _count_configuration(
    trials: Mapping[str, _Counted | None], *, treated: bool, kept_back: Collection[str]
) -> ConfigurationBenchmark:
    finished = [trial for trial in trials.values() if trial is not None]
    unreached = Counter(
        CauseKind.BUDGET if folder in kept_back else CauseKind.NOT_REACHED
        for folder, trial in trials.items()
        if trial is None
    )
    places = Counter(trial.outcome for trial in finished)
    places[Outcome.CANCELLED] += len(trials) - len(finished)
    eligible = [trial for trial in finished if trial.outcome in _COUNTED]
    succeeded = [trial for trial in eligible if trial.outcome is Outcome.SUCCEEDED]
    return ConfigurationBenchmark(
        planned=len(trials),
        setup_failures=places[Outcome.SETUP_FAILURE],
        cancelled=places[Outcome.CANCELLED],
        started=len(trials) - places[Outcome.SETUP_FAILURE] - places[Outcome.CANCELLED],
        excluded=Excluded(
            isolation=places[Outcome.EXCLUDED_ISOLATION], grading=places[Outcome.EXCLUDED_GRADING]
        ),
        eligible=len(eligible),
        succeeded=len(succeeded),
        failed=places[Outcome.FAILED],
        inconclusive=places[Outcome.INCONCLUSIVE],
        success_rate=_rate(len(succeeded), len(eligible)),
        ci95=_ci95(len(succeeded), len(eligible)),
        pass_at_k=by_k(pass_at_k, len(eligible), len(succeeded)),
        pass_pow_k=by_k(pass_pow_k, len(eligible), len(succeeded)),
        pass_all=len(succeeded) == len(eligible) if eligible else None,
        code=_code_rate(eligible),
        causes=_causes(finished, unreached=unreached),
        observed_load=_observed_load(eligible) if treated else None,
        expectations=_expectations(eligible) if treated else None,
        cost=Cost(eligible=_cost(eligible), succeeded=_cost(succeeded)),
        served=_served(eligible),
    )


def _causes(
    finished: Sequence[_Counted], *, unreached: Mapping[CauseKind, int]
) -> dict[str, dict[str, int]]:
    groups: dict[str, Counter[str]] = {group: Counter() for group in _CAUSE_GROUPS.values()}
    groups["cancelled"].update({kind.value: number for kind, number in unreached.items()})
    for trial in finished:
        if trial.cause and trial.outcome in _CAUSE_GROUPS:
            groups[_CAUSE_GROUPS[trial.outcome]][trial.cause] += 1
    return {
        group: {kind: kinds[kind] for kind in sorted(kinds) if kinds[kind]}
        for group, kinds in groups.items()
    }


def _code_rate(eligible: Sequence[_Counted]) -> CodeRate:
    """Return how often the code passed, over the trials in which that is known at all."""
    known = [trial.code_passed for trial in eligible if trial.code_passed is not None]
    return CodeRate(passed=sum(known), eligible=len(known), rate=_rate(sum(known), len(known)))


def _observed_load(eligible: Sequence[_Counted]) -> dict[str, dict[Load, int]]:
    """Return loads by skill; a trial that says nothing of a skill leaves its load unknown."""
    loads = {
        skill: Counter(trial.loads.get(skill, Load.UNKNOWN) for trial in eligible)
        for skill in sorted({skill for trial in eligible for skill in trial.loads})
    }
    return {skill: {load: seen[load] for load in Load} for skill, seen in loads.items()}


def _expectations(eligible: Sequence[_Counted]) -> dict[str, dict[str, int]]:
    """Return verdicts by expectation; one that a trial did not judge is not counted there."""
    verdicts: dict[str, Counter[str]] = {}
    for trial in eligible:
        for name, given in trial.verdicts:
            verdicts.setdefault(name, Counter())[given] += 1
    return {
        name: {verdict: verdicts[name][verdict] for verdict in get_args(Verdict)}
        for name in sorted(verdicts)
    }


def _cost(trials: Sequence[_Counted]) -> CostOver:
    return CostOver(
        tokens=_mean(trial.tokens for trial in trials),
        agent_secs=_mean(trial.agent_secs for trial in trials),
        cost_usd=_mean(trial.cost_usd for trial in trials),
    )


def _served(eligible: Sequence[_Counted]) -> dict[str, int]:
    """Return how many trials were answered by which models, over those that say so."""
    known = Counter(trial.served for trial in eligible if trial.served)
    return {models: known[models] for models in sorted(known)}


def _mean(values: Iterable[float | None]) -> Mean:
    """Return the mean of what was reported; the unknown is left out, never 0."""
    known = [value for value in values if value is not None]
    return Mean(mean=math.fsum(known) / len(known) if known else None, trials=len(known))


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ci95(succeeded: int, eligible: int) -> Interval | None:
    return wilson_interval(succeeded, eligible).rounded(DECIMALS) if eligible else None


def _isolation(trials: Iterable[_Counted]) -> Level | None:
    not_started = (Outcome.SETUP_FAILURE, Outcome.CANCELLED)
    levels = {trial.level for trial in trials if trial.outcome not in not_started}
    if not levels:
        return None
    return "mixed" if len(levels) > 1 else levels.pop()


def _incomparable(isolation: Level | None, trials: Iterable[_Counted]) -> Incomparable | None:
    """Return what forbids to subtract one configuration from the other, if anything does."""
    if isolation not in ("enforced", None):
        return "not_enforced"
    # An arm that another model answered differs by more than its treatment.
    answered = {trial.served for trial in trials if trial.outcome in _COUNTED and trial.served}
    return "models_differ" if len(answered) > 1 else None


def _delta(
    plan: PlanDoc,
    configurations: Mapping[str, ConfigurationBenchmark],
    counted: Mapping[str, _Counted],
    *,
    is_partial: bool,
) -> Delta | None:
    if plan.treatment is None:
        return None
    baseline_name = f"without-{plan.treatment}"
    treated_name = f"with-{plan.treatment}"
    if treated_name not in configurations:
        treated_name = "noise"
    treated, baseline = configurations.get(treated_name), configurations.get(baseline_name)
    reason = _incomparable(_isolation(counted.values()), counted.values())

    def minus(figure: Callable[[ConfigurationBenchmark], float | None]) -> float | None:
        if treated is None or baseline is None or reason is not None:
            return None
        part, other = figure(treated), figure(baseline)
        return None if part is None or other is None else round(part - other, DECIMALS)

    def costs(over: Callable[[Cost], CostOver]) -> dict[CostFigure, float | None]:
        return {
            "tokens": minus(lambda counted: over(counted.cost).tokens.mean),
            "agent_secs": minus(lambda counted: over(counted.cost).agent_secs.mean),
            "cost_usd": minus(lambda counted: over(counted.cost).cost_usd.mean),
        }

    success_rate = minus(lambda counted: counted.success_rate)
    counts = None
    if success_rate is not None and treated is not None and baseline is not None:
        counts = (treated.succeeded, treated.eligible, baseline.succeeded, baseline.eligible)
    return Delta(
        success_rate=success_rate,
        success_rate_ci95=newcombe_difference(*counts).rounded(DECIMALS) if counts else None,
        p_value=round(fisher_exact(*counts), DECIMALS) if counts else None,
        matched=_matched(plan, counted, treated_name, baseline_name) if counts else None,
        verdict=verdict(*counts) if counts and not is_partial else None,
        code_rate=minus(lambda counted: counted.code.rate),
        cost={
            "eligible": costs(lambda cost: cost.eligible),
            "succeeded": costs(lambda cost: cost.succeeded),
        },
        reason=reason,
    )


def _matched(
    plan: PlanDoc, counted: Mapping[str, _Counted], treated: str, baseline: str
) -> Matched | None:
    """Return how trials of the same number ended in both configurations."""
    ended: dict[str, dict[int, bool]] = {treated: {}, baseline: {}}
    for entry in plan.trials:
        trial = counted.get(entry.folder)
        if trial is not None and trial.outcome in _COUNTED and entry.configuration in ended:
            ended[entry.configuration][entry.trial] = trial.outcome is Outcome.SUCCEEDED
    pairs = Counter(
        (succeeded, ended[baseline][number])
        for number, succeeded in ended[treated].items()
        if number in ended[baseline]
    )
    if not pairs:
        return None
    only_treated, only_baseline = pairs[True, False], pairs[False, True]
    return Matched(
        both=pairs[True, True],
        only_treated=only_treated,
        only_baseline=only_baseline,
        neither=pairs[False, False],
        p_value=round(mcnemar_exact(only_treated, only_baseline), DECIMALS),
    )
