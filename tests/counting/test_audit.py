"""Tests of what an audit's controls show about the checks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import DocumentError
from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION

CHECKS = {"adds": ("sums",), "adds-big": ("sums",), "says": ("words",), "spells": ("words",)}


@pytest.fixture(scope="session")
def plan(task_ref):
    """An audit of four hidden checks in two dimensions, with the named mutants on `sums`."""

    def make(*mutants, checks=CHECKS, mode="full", target="sums"):
        dimensions = dict.fromkeys(d for judged in checks.values() for d in judged)
        return AuditPlan(
            schema_version=SCHEMA_VERSION,
            batch="b1",
            task=task_ref,
            mode=mode,
            checks=checks,
            weights={dimension: 1 / len(dimensions) for dimension in dimensions},
            mutants=tuple(PlannedMutant(name=name, target_dimension=target) for name in mutants),
            sandbox="bwrap",
        )

    return make


@pytest.fixture(scope="session")
def graded(row, grading):
    """A grading of the four checks; each named one fails by behaviour, or as its keywords say."""

    def make(*fails, seed=None, **spoilt):
        rows = []
        for check, (dimension,) in CHECKS.items():
            told = spoilt.get(check.replace("-", "_"))
            if told is not None:
                rows.append(row(check, {dimension: told.pop("verdict", False)}, **told))
            else:
                rows.append(row(check, {dimension: check not in fails}, seed=seed))
        return grading(rows)

    return make


@pytest.fixture(scope="session")
def one_mutant(plan, graded):
    """The audit of one mutant on `sums`, with a reference that passes and a starter that fails."""

    def audit(mutant, *, reference=None, mode="full"):
        controls = {
            "reference": reference or graded(),
            "starter": graded("adds"),
            "m": mutant,
        }
        return assess(plan("m", mode=mode), controls)

    return audit


# The three packs, as they were measured.


def test_margins_are_those_that_were_measured(pack) -> None:
    """All of a pack's declared faults are caught, each by exactly the cases that are known."""
    audit = assess(pack.plan(), pack.controls())

    assert [
        (m.name, m.class_, m.detection_margin, set(m.failing_cases), m.margin_any, m.score)
        for m in audit.mutants
    ] == [
        (f.name, "detected", f.margin, set(f.detectors), f.margin_any, f.score) for f in pack.faults
    ]
    assert (audit.mutation_score, audit.killed, audit.total) == (
        1.0,
        len(pack.faults),
        len(pack.faults),
    )
    assert (audit.valid, audit.reference_passed, audit.passed) == (True, True, True)
    assert (audit.reason, audit.selection) == (None, "complete")


def test_a_perfect_score_shows_how_narrowly_it_was_reached(pack) -> None:
    """Each pack scores 1.0 with a weakest margin of 1, and names the cases that it hangs on."""
    detection = assess(pack.plan(), pack.controls()).detection

    assert detection.weakest_margin == 1
    assert detection.sole_detector_cases == pack.sole
    assert detection.single_case_detections == tuple(f.name for f in pack.faults if f.margin == 1)


def test_leaving_out_a_sole_detector_costs_its_fault(pack) -> None:
    """Leave-one-out is 7/8, 6/7 or 5/6 for a sole detector, and untouched for all others."""
    coverage = assess(pack.plan(), pack.controls()).coverage

    faults = len(pack.faults)
    assert coverage.leave_one_out == {
        case: (faults - 1) / faults if case in pack.sole else 1.0 for case in pack.checks
    }


def test_leave_one_out_is_what_the_reduced_suite_really_scores(durable_kv) -> None:
    """Without `cas-type-sensitivity` the same controls give 7/8, and the weakest margin is 0."""
    full = assess(durable_kv.plan(), durable_kv.controls(seeds=(17,)))
    kept = [case for case in durable_kv.checks if case != "cas-type-sensitivity"]

    audit = assess(durable_kv.plan(only=kept), durable_kv.controls(seeds=(17,), only=kept))

    assert audit.mutation_score == 0.875
    assert full.coverage.leave_one_out["cas-type-sensitivity"] == 0.875
    assert audit.detection.weakest_margin == 0
    assert [m.name for m in audit.mutants if m.class_ == "survived"] == ["boolean-equals-one"]
    assert not audit.passed


def test_durable_kv_has_eighteen_smallest_suites_and_two_idle_cases(durable_kv) -> None:
    """6 of 15 cases keep the score: one of two for basic, one of three restarts and sigkills."""
    coverage = assess(durable_kv.plan(), durable_kv.controls()).coverage

    assert len(set(coverage.minimal_sets)) == 18
    assert {len(cases) for cases in coverage.minimal_sets} == {6}
    assert coverage.minimal_sets_complete
    assert set.intersection(*map(set, coverage.minimal_sets)) == set(durable_kv.sole)
    assert coverage.idle_cases == ("empty-and-unicode-keys", "commit-batch")
    assert coverage.untargeted_dimensions == ()


def test_the_other_packs_need_two_of_their_four_cases(
    support_routing, robot_evidence_review
) -> None:
    """Their smallest suites are known, and nobody declares a fault of the protocol."""
    support = assess(support_routing.plan(), support_routing.controls()).coverage
    robot = assess(robot_evidence_review.plan(), robot_evidence_review.controls()).coverage

    assert support.minimal_sets == (("retry-before-commit", "retry-after-commit"),)
    assert robot.minimal_sets == (
        ("millimeters-sensor-frame", "incomplete-recording"),
        ("centimeters-offset-clock", "incomplete-recording"),
    )
    assert support.untargeted_dimensions == robot.untargeted_dimensions == ("protocol",)


def test_seeds_do_not_add_to_a_margin(pack) -> None:
    """One case under two seeds is one detector; more seeds would else look like robustness."""
    one = assess(pack.plan(), pack.controls(seeds=(17,)))
    five = assess(pack.plan(), pack.controls(seeds=(17, 41, 97, 5, 6)))

    assert [m.detection_margin for m in one.mutants] == [m.detection_margin for m in five.mutants]
    assert one.coverage == five.coverage


def test_a_fast_audit_finds_the_same_margins(durable_kv) -> None:
    """It runs a mutant's target dimension only, so it knows neither score nor other margins."""
    controls = durable_kv.controls()
    for fault in durable_kv.faults:
        some = [case for case, dims in durable_kv.checks.items() if fault.target in dims]
        controls[fault.name] = durable_kv.grading(fault.fails, only=some)

    audit = assess(durable_kv.plan(mode="fast"), controls)

    assert [m.detection_margin for m in audit.mutants] == [f.margin for f in durable_kv.faults]
    assert {(m.margin_any, m.score) for m in audit.mutants} == {(None, None)}
    assert audit.mutation_score == 1.0
    assert audit.passed


# What is no detection.


def test_a_failure_elsewhere_only_is_off_target(one_mutant, graded) -> None:
    """The checks of the target dimension did not notice, which is the question asked."""
    audit = one_mutant(graded("says", "spells"))

    (mutant,) = audit.mutants
    assert (mutant.class_, mutant.killed) == ("off_target", False)
    assert (mutant.detection_margin, mutant.margin_any) == (0, 2)
    assert (audit.mutation_score, audit.detection.weakest_margin) == (0.0, 0)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"status": "agent_error", "cause": "timeout"},
        {"status": "agent_error", "cause": "out_of_memory"},
        {"status": "agent_error", "cause": "output_limit"},
        {"status": "agent_error", "cause": "exited", "answered": False},
        {"status": "agent_error", "cause": "collection"},
        {"status": "agent_error", "cause": "not_run"},
        {"status": "not_run", "verdict": None, "answered": False},
    ],
    ids=[
        "too-late",
        "too-large",
        "too-loud",
        "crashed-before-its-first-answer",
        "not-collected",
        "skipped",
        "never-run",
    ],
)
def test_a_crash_or_a_timeout_is_broken_and_no_kill(spoilt, one_mutant, graded) -> None:
    """A busy host or a mutant that cannot start would otherwise give a perfect score."""
    audit = one_mutant(graded(adds=dict(spoilt), adds_big=dict(spoilt)))

    (mutant,) = audit.mutants
    assert (mutant.class_, mutant.detection_margin, mutant.margin_any) == ("broken", 0, 0)
    assert (audit.mutation_score, audit.killed, audit.passed) == (0.0, 0, False)


@pytest.mark.parametrize("has_rows", [True, False])
def test_a_mutant_that_does_not_build_is_broken(has_rows, one_mutant, row, grading) -> None:
    """It fails every case without ever having been the fault that it declares."""
    rows = [row(check, {}, status="not_run", answered=False) for check in CHECKS]
    audit = one_mutant(grading(rows if has_rows else [], steps=[("build", "fail")]))

    (mutant,) = audit.mutants
    assert (mutant.class_, mutant.reason) == ("broken", "no check ran: build failed")
    assert (mutant.score, audit.mutation_score) == (0.0, 0.0)


def test_a_real_catch_counts_beside_a_crash(one_mutant, graded) -> None:
    """Of two failing cases one is a wrong answer: detected, with a margin of that one alone."""
    audit = one_mutant(graded("adds", adds_big={"status": "agent_error", "cause": "timeout"}))

    (mutant,) = audit.mutants
    assert (mutant.class_, mutant.failing_cases) == ("detected", ("adds",))
    assert mutant.detection_margin == 1


def test_a_crash_after_an_answer_is_behaviour(one_mutant, graded) -> None:
    """The submission ran and then broke its contract, where the reference did not."""
    audit = one_mutant(graded(adds={"status": "agent_error", "cause": "exited"}))

    assert audit.mutants[0].class_ == "detected"


def test_a_timeout_counts_where_the_reference_timed_out_too(task_ref, row, grading) -> None:
    """Then being late tells nothing about the mutant, and the rest of the case's verdicts does."""
    checks = {"case": ("routing", "protocol")}
    plan = AuditPlan(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=task_ref,
        mode="full",
        checks=checks,
        weights={"routing": 0.5, "protocol": 0.5},
        mutants=(PlannedMutant(name="m", target_dimension="routing"),),
        sandbox="bwrap",
    )
    late = {"status": "agent_error", "cause": "timeout"}
    mutant = grading([row("case", {"routing": False, "protocol": False}, **late)])

    def class_given(reference):
        controls = {"reference": grading([reference]), "starter": mutant, "m": mutant}
        return assess(plan, controls).mutants[0].class_

    assert class_given(row("case", {"routing": True, "protocol": True})) == "broken"
    assert class_given(row("case", {"routing": True, "protocol": False}, **late)) == "detected"


def test_only_what_the_reference_passed_can_detect(one_mutant, graded) -> None:
    """A case that fails on known-good would kill every mutant and say nothing about any."""
    audit = one_mutant(graded("adds"), reference=graded("adds"))

    (mutant,) = audit.mutants
    assert (mutant.class_, mutant.failing_cases) == ("survived", ())


def test_the_reference_must_pass_under_the_very_seed(one_mutant, graded) -> None:
    """A mutant's failure under a seed that the reference never ran has nothing to compare with."""
    audit = one_mutant(graded("adds", seed=41), reference=graded(seed=17))

    assert audit.mutants[0].class_ == "broken"


# What leaves an audit without a number.


def test_a_red_baseline_gives_no_score(pack) -> None:
    """With a failing reference every mutant looks killed; score and margins are withheld."""
    controls = pack.controls()
    first = next(iter(pack.checks))
    controls["reference"] = pack.grading({first: pack.checks[first]})

    audit = assess(pack.plan(), controls)

    assert (audit.reference_passed, audit.mutation_score, audit.reason) == (
        False,
        None,
        "reference_failed",
    )
    assert audit.detection.weakest_margin is None
    assert {m.detection_margin for m in audit.mutants} == {None}
    assert not any(first in m.failing_cases for m in audit.mutants)
    assert set(audit.coverage.leave_one_out.values()) == {None}
    assert (audit.valid, audit.passed) == (True, False)
    assert "reference submission fails" in audit.interpretation


def test_an_environment_failure_voids_the_score_and_keeps_the_rest(durable_kv) -> None:
    """The broken control is no kill; what the other controls showed is still there to read."""
    controls = durable_kv.controls()
    spoilt = controls["memory-only"].rows[0].model_copy(update={"status": "environment_error"})
    rows = (spoilt, *controls["memory-only"].rows[1:])
    controls["memory-only"] = controls["memory-only"].model_copy(update={"rows": rows})

    audit = assess(durable_kv.plan(), controls)

    assert (audit.valid, audit.mutation_score, audit.reason) == (False, None, "invalid_control")
    assert audit.detection.weakest_margin is None
    by_name = {m.name: m for m in audit.mutants}
    broken = by_name.pop("memory-only")
    assert (broken.class_, broken.killed, broken.valid) == ("invalid", False, False)
    assert (broken.detection_margin, broken.score) == (None, None)
    assert [m.detection_margin for m in by_name.values()] == [
        f.margin for f in durable_kv.faults if f.name != "memory-only"
    ]
    assert (audit.killed, audit.total, audit.passed) == (7, 8, False)


def test_a_starter_or_repeat_that_the_harness_broke_voids_the_audit(durable_kv, grading) -> None:
    """Every control counts: on a machine that breaks one, the others cannot be relied on either."""
    spoilt = grading(status="infrastructure_error", cause="sandbox")

    for control in ("starter", "reference-repeat"):
        audit = assess(durable_kv.plan(), durable_kv.controls() | {control: spoilt})
        assert (audit.valid, audit.reason, audit.passed) == (False, "invalid_control", False)
        assert audit.starter.failed_something is (None if control == "starter" else True)


def test_no_mutants_is_no_success(plan, graded) -> None:
    """Zero of zero faults caught was a green audit elsewhere; here it is an unknown."""
    audit = assess(plan(), {"reference": graded(), "starter": graded("adds")})

    assert (audit.mutation_score, audit.reason, audit.total) == (None, "no_mutants", 0)
    assert (audit.detection.weakest_margin, audit.passed) == (None, False)
    assert audit.coverage.untargeted_dimensions == ("sums", "words")


@pytest.mark.parametrize("missing", ["reference", "starter", "partial-batch"])
def test_a_control_that_did_not_run_leaves_the_audit_partial(missing, durable_kv) -> None:
    """A selection of items must not pass for the whole audit."""
    controls = durable_kv.controls()
    del controls[missing]

    audit = assess(durable_kv.plan(), controls)

    assert (audit.selection, audit.reason, audit.mutation_score) == ("partial", "partial", None)
    assert not audit.passed
    not_run = {m.name for m in audit.mutants if m.class_ == "not_run"}
    assert (
        not_run
        == {
            "reference": {fault.name for fault in durable_kv.faults},
            "starter": set(),
            "partial-batch": {"partial-batch"},
        }[missing]
    )


def test_a_starter_that_passes_everything_fails_the_audit(plan, graded) -> None:
    """Such a task asks for nothing, and an agent that does nothing would solve it."""
    controls = {"reference": graded(), "starter": graded(), "m": graded("adds")}

    audit = assess(plan("m"), controls)

    assert (audit.mutation_score, audit.starter.failed_something) == (1.0, False)
    assert not audit.passed
    assert "the bare starter passes" in audit.interpretation


def test_a_verdict_that_changes_on_the_reference_is_flaky(one_mutant, plan, graded) -> None:
    """A check that flips on known-good catches faults by luck, so the audit does not pass."""
    controls = {
        "reference": graded(),
        "reference-repeat": graded("spells"),
        "starter": graded("adds"),
        "m": graded("adds"),
    }

    audit = assess(plan("m"), controls)

    assert (audit.coverage.flaky, audit.passed) == (("spells",), False)
    assert audit.mutation_score == 1.0
    steady = assess(plan("m"), controls | {"reference-repeat": graded()})
    assert (steady.coverage.flaky, steady.passed) == ((), True)


def test_a_repeat_with_one_seed_is_compared_on_that_seed(durable_kv) -> None:
    """The reference is graded again with one seed only; the others are not flaky for that."""
    controls = durable_kv.controls() | {"reference-repeat": durable_kv.grading({}, seeds=(17,))}

    audit = assess(durable_kv.plan(), controls)

    assert (audit.coverage.flaky, audit.passed) == ((), True)


def test_controls_of_another_audit_are_refused(plan, graded, row, grading) -> None:
    """A stale row beside fresh ones would compare what two different graders saw."""
    controls = {"reference": graded(), "starter": graded("adds"), "m": graded("adds")}

    with pytest.raises(DocumentError, match="control 'old' is not in its plan"):
        assess(plan("m"), controls | {"old": graded()})
    other = controls["m"].model_copy(update={"grader_sha256": "e" * 64})
    with pytest.raises(DocumentError, match="different graders"):
        assess(plan("m"), controls | {"m": other})


def test_the_interpretation_says_what_the_number_does_not_show(durable_kv) -> None:
    """A reader of one sentence must not take 1.0 for a bound on all faults."""
    audit = assess(durable_kv.plan(), durable_kv.controls())

    assert audit.interpretation == (
        "8 of 8 declared faults detected; the weakest by 1 case; a fault rests on each of these "
        "cases alone: reject-and-continue, rollback-batch, cas-type-sensitivity. This speaks of "
        "the declared faults only, which are no independent draws from all possible ones: it "
        "bounds neither undeclared faults nor exploits of the checks."
    )


# What holds for every audit.

CASES = tuple(f"case-{index}" for index in range(6))
HOW = st.sampled_from(["pass", "fail", "late", "unstarted"])


@st.composite
def grids(draw):
    """How each mutant fares in each case under two seeds, and its target dimension."""
    dimension = st.sampled_from(["sums", "words"])
    checks = {case: (draw(dimension),) for case in CASES}
    faults = draw(st.lists(st.tuples(dimension, st.tuples(*[HOW] * 12)), min_size=1, max_size=5))
    return checks, faults


@pytest.fixture(scope="session")
def from_grid(task_ref, row, grading):
    how = {
        "pass": lambda check, d, seed: row(check, {d: True}, seed=seed),
        "fail": lambda check, d, seed: row(check, {d: False}, seed=seed),
        "late": lambda check, d, seed: row(
            check, {d: False}, seed=seed, status="agent_error", cause="timeout"
        ),
        "unstarted": lambda check, d, seed: row(
            check, {d: False}, seed=seed, status="agent_error", answered=False
        ),
    }

    def make(grid, *, without=None, shuffled=None):
        checks, faults = grid

        def graded(words):
            cells = zip([(case, seed) for case in CASES for seed in (17, 41)], words, strict=True)
            rows = [
                how[word](case, checks[case][0], seed)
                for (case, seed), word in cells
                if case != without
            ]
            if shuffled:
                shuffled.shuffle(rows)
            return grading(rows)

        kept = {case: dims for case, dims in checks.items() if case != without}
        dimensions = {d for dims in kept.values() for d in dims}
        plan = AuditPlan(
            schema_version=SCHEMA_VERSION,
            batch="b1",
            task=task_ref,
            mode="full",
            checks=kept,
            weights={d: 1 / len(dimensions) for d in dimensions},
            mutants=tuple(
                PlannedMutant(name=f"m{index}", target_dimension=target)
                for index, (target, _) in enumerate(faults)
            ),
            sandbox="bwrap",
        )
        controls = {"reference": graded(["pass"] * 12), "starter": graded(["fail"] * 12)}
        mutants = {f"m{index}": graded(words) for index, (_, words) in enumerate(faults)}
        return plan, controls | mutants

    return make


@settings(deadline=None)
@given(grid=grids(), dice=st.integers(0, 2**32))
def test_no_order_of_rows_or_controls_changes_an_audit(grid, dice, from_grid) -> None:
    """Workers finish as they like; the document is a function of what they found."""
    plan, controls = from_grid(grid)
    _, shuffled = from_grid(grid, shuffled=random.Random(dice))

    again = assess(plan, dict(reversed(shuffled.items())))

    def without_rows(audit):
        return audit.model_dump(
            exclude={"reference": True, "starter": True, "mutants": {"__all__": {"evaluation"}}}
        )

    assert without_rows(again) == without_rows(assess(plan, controls))


@settings(deadline=None)
@given(grid=grids())
def test_counts_and_margins_stay_within_their_bounds(grid, from_grid) -> None:
    """Killed is at most total, a margin at most the cases of its dimension, and no kill has 0."""
    checks, faults = grid
    audit = assess(*from_grid(grid))

    assert audit.killed == sum(m.class_ == "detected" for m in audit.mutants) <= audit.total
    for mutant, (target, _) in zip(audit.mutants, faults, strict=True):
        on_target = sum(target in dims for dims in checks.values())
        assert (mutant.detection_margin > 0) == mutant.killed
        assert mutant.detection_margin <= min(on_target, mutant.margin_any)
        assert mutant.margin_any <= len(CASES)
    assert audit.detection.weakest_margin == min(m.detection_margin for m in audit.mutants)


@settings(deadline=None)
@given(grid=grids(), removed=st.sampled_from(CASES))
def test_leave_one_out_foretells_the_suite_without_that_case(grid, removed, from_grid) -> None:
    """Only a sole detector's removal lowers the score, and by exactly what was foretold."""
    audit = assess(*from_grid(grid))
    reduced = assess(*from_grid(grid, without=removed))

    assert reduced.mutation_score == audit.coverage.leave_one_out[removed]
    is_sole = removed in audit.detection.sole_detector_cases
    assert (reduced.mutation_score < audit.mutation_score) == is_sole


@settings(deadline=None)
@given(grid=grids())
def test_a_minimal_set_keeps_the_score_and_no_idle_case(grid, from_grid) -> None:
    """Each listed set still detects every fault that the whole suite detects."""
    audit = assess(*from_grid(grid))

    killed = [set(m.failing_cases) for m in audit.mutants if m.killed]
    assert audit.coverage.minimal_sets_complete
    for cases in audit.coverage.minimal_sets:
        assert all(detectors & set(cases) for detectors in killed)
        assert not set(cases) & set(audit.coverage.idle_cases)
        assert set(audit.detection.sole_detector_cases) <= set(cases)
