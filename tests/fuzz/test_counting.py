"""Numbers: in range, in order, symmetric, and the same as counting every possibility."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.counting.differences import differences
from pytest_evalarc.counting.hitting import minimum_hitting_sets
from pytest_evalarc.counting.holm import holm
from pytest_evalarc.counting.intervals import newcombe_difference, student_quantile, wilson_interval
from pytest_evalarc.counting.paired import cluster_bootstrap, mcnemar_exact
from pytest_evalarc.counting.passes import pass_at_k, pass_pow_k
from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.counting.power import smallest_difference
from pytest_evalarc.counting.rates import fisher_exact, verdict
from pytest_evalarc.counting.shards import dealt_rounds, own_trials, shard_of_task
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.model.shown import Shown
from tests.fuzz.forms import JSON, fuzzed

COUNTS = st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LARGE = st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CONFIDENCE = st.floats(0.01, 0.9999)


@fuzzed(150)
@given(COUNTS | LARGE, CONFIDENCE)
def test_an_interval_of_a_rate_holds_it_and_mirrors(counts: tuple[int, int], level: float) -> None:
    """A failure is a success of the opposite, and more trials or less confidence are narrower."""
    passed, eligible = counts
    found = wilson_interval(passed, eligible, confidence=level)
    mirror = wilson_interval(eligible - passed, eligible, confidence=level)

    assert 0 <= found.low <= passed / eligible <= found.high <= 1
    assert found.low == pytest.approx(1 - mirror.high, abs=1e-9)
    wider = wilson_interval(passed, eligible, confidence=(1 + level) / 2)
    assert wider.low <= found.low + 1e-12 and found.high <= wider.high + 1e-12
    if passed < eligible:
        more = wilson_interval(passed + 1, eligible, confidence=level)
        assert found.low <= more.low and found.high <= more.high


@fuzzed(150)
@given(COUNTS | LARGE, COUNTS | LARGE)
def test_an_interval_of_a_difference_holds_it_and_mirrors(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    """With minus without is the opposite of without minus with."""
    found = newcombe_difference(*first, *second)
    mirror = newcombe_difference(*second, *first)

    difference = first[0] / first[1] - second[0] / second[1]
    assert -1 <= found.low <= difference + 1e-12 and difference - 1e-12 <= found.high <= 1
    assert (found.low, found.high) == pytest.approx((-mirror.high, -mirror.low), abs=1e-12)


@fuzzed(100)
@given(COUNTS, COUNTS)
def test_fisher_counts_every_table(first: tuple[int, int], second: tuple[int, int]) -> None:
    """The p-value is a sum over all tables with these margins, which are few enough to list."""
    (a, n), (b, m) = first, second
    weights = {
        k: math.comb(n, k) * math.comb(m, a + b - k) for k in range(n + 1) if 0 <= a + b - k <= m
    }
    likely = sum(weight for weight in weights.values() if weight <= weights[a])

    found = fisher_exact(a, n, b, m)

    assert 0 < found <= 1
    assert found == pytest.approx(likely / sum(weights.values()), rel=1e-9)
    assert found == fisher_exact(b, m, a, n) == fisher_exact(n - a, n, m - b, m)


@fuzzed(60)
@given(st.integers(0, 10), st.integers(0, 10))
def test_mcnemar_counts_every_way_the_pairs_could_fall(treated: int, baseline: int) -> None:
    """Under no effect each discordant pair is a coin; all falls of the coins are listed."""
    pairs = treated + baseline
    falls = [sum(fall) for fall in itertools.product((0, 1), repeat=min(pairs, 10))]

    found = mcnemar_exact(treated, baseline)

    assert 0 < found <= 1 and found == mcnemar_exact(baseline, treated)
    if pairs <= 10:
        extreme = min(treated, baseline)
        tail = sum(fall <= extreme for fall in falls) / len(falls)
        assert found == pytest.approx(min(1.0, 2 * tail))


@fuzzed(100)
@given(st.lists(st.floats(0, 1), max_size=8))
def test_adjusted_p_values_keep_their_order_and_shrink_never(values: list[float]) -> None:
    """Holm's correction can only make a claim weaker, and never turns two claims around."""
    found = holm(values)

    assert len(found) == len(values)
    assert all(p <= q <= 1 for p, q in zip(values, found, strict=True))
    for (p, q), (r, s) in itertools.combinations(zip(values, found, strict=True), 2):
        assert (p - r) * (q - s) >= 0
    assert holm(values[::-1]) == found[::-1] or len(set(values)) < len(values)


@fuzzed(80)
@given(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_passes_of_k_are_those_of_every_choice(numbers: tuple[int, int, int]) -> None:
    """All ways to choose k of n trials, one by one."""
    eligible, passed, k = numbers
    trials = [True] * passed + [False] * (eligible - passed)
    choices = list(itertools.combinations(trials, k))

    assert pass_at_k(eligible, passed, k) == pytest.approx(
        sum(any(choice) for choice in choices) / len(choices)
    )
    assert 0 <= pass_pow_k(eligible, passed, k) <= pass_at_k(eligible, passed, k) <= 1


@fuzzed(60)
@given(st.lists(st.sets(st.sampled_from("abcde"), min_size=1), max_size=6))
def test_hitting_sets_are_all_of_the_smallest(targets: list[set[str]]) -> None:
    """Every subset of five cases is tried instead."""
    subsets = [set(c) for size in range(6) for c in itertools.combinations("abcde", size)]
    hitting = [subset for subset in subsets if all(subset & target for target in targets)]
    least = min(map(len, hitting))

    found = minimum_hitting_sets(targets, order="abcde")

    assert found.complete
    assert {frozenset(each) for each in found.sets} == {
        frozenset(each) for each in hitting if len(each) == least
    }


@fuzzed(60)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.integers(0, 5))
def test_a_bootstrap_stays_within_what_can_be(values: list[float], seed: int) -> None:
    """A mean of differences of rates is a difference of rates, and equal data give equal bounds."""
    found = cluster_bootstrap(values, resamples=200, seed=seed)

    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == cluster_bootstrap(values, resamples=200, seed=seed)


@fuzzed(60)
@given(COUNTS, COUNTS)
def test_a_verdict_turns_with_its_sides(first: tuple[int, int], second: tuple[int, int]) -> None:
    """What helped from one side harmed from the other."""
    turned = {Shown.HELPED: Shown.HARMED, Shown.HARMED: Shown.HELPED}
    found = verdict(*first, *second)

    assert verdict(*second, *first) == turned.get(found, found)


@fuzzed(40)
@given(st.integers(1, 60), CONFIDENCE, st.integers(1, 500))
def test_power_and_quantiles_are_in_range(trials: int, level: float, degrees: int) -> None:
    """Few trials show nothing, and what they can show is a difference of rates."""
    least = smallest_difference(trials)

    assert least is None or 0 < least <= 1
    assert 0 < student_quantile(level, degrees) < math.inf


@fuzzed(60)
@given(st.integers(1, 30), st.integers(1, 7), st.text("abc-", min_size=1, max_size=5))
def test_shards_share_a_plan_without_rest(trials: int, of: int, name: str) -> None:
    """Each trial is in one shard, and with it the trial that it is compared with."""
    plan = planned_trials(("without-skills", "with-skills"), trials)
    shards = [
        own_trials(plan, Shard(number=number, of=of), task=name, client="claude")
        for number in range(1, of + 1)
    ]

    assert sorted(itertools.chain(*shards), key=plan.index) == list(plan)
    sizes = [len({trial.round for trial in shard}) for shard in shards]
    assert max(sizes) - min(sizes) <= 1
    assert all(len(shard) == 2 * size for shard, size in zip(shards, sizes, strict=True))
    dealt = dealt_rounds(name, "claude", (trial.round for trial in plan), of)
    assert set(dealt.values()) <= set(range(1, of + 1))
    assert 1 <= shard_of_task(name, of) <= of


@fuzzed(60)
@given(JSON, JSON)
def test_two_values_differ_where_they_differ(first: object, second: object) -> None:
    """No difference is told of a value and itself, and one at least of two that are not equal."""
    assert not list(differences(first, first)) or "nan" in repr(first)
    if json_text(first) != json_text(second):
        assert list(differences(first, second))


def json_text(value: object) -> str:
    return repr(value)
