"""durable-kv: its oracle, its cases, and what they catch."""

from __future__ import annotations

import json

import pytest

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.lab import PackLab
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.task import Limits, PackRef, Task, TaskBrief
from pytest_evalarc.packs.durable_kv.oracle import Oracle
from pytest_evalarc.packs.durable_kv.pack import DurableKv
from tests.needs import needs_bwrap

PACK = DurableKv()
MUTANTS = tuple(mutant.name for mutant in PACK.info.mutants)
SEEDS = (17, 41)
INVALID = {"ok": False, "error": "invalid_request"}


@pytest.fixture
def oracle():
    oracle = Oracle()
    oracle.answer({"op": "put", "key": "there", "value": True})
    return oracle


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ({"op": "get", "key": "there"}, {"ok": True, "found": True, "value": True}),
        ({"op": "get", "key": "", "extra": 1}, {"ok": True, "found": False}),
        ({"op": "put", "key": "", "value": None}, {"ok": True}),
        ({"op": "delete", "key": "absent"}, {"ok": True}),
        (
            {"op": "cas", "key": "there", "expected": True, "value": 2},
            {"ok": True, "swapped": True},
        ),
        ({"op": "cas", "key": "there", "expected": 1, "value": 2}, {"ok": True, "swapped": False}),
        ({"op": "cas", "key": "no", "expected": None, "value": 2}, {"ok": True, "swapped": False}),
        ({"op": "batch", "operations": []}, {"ok": True}),
    ],
)
def test_the_oracle_answers_valid_requests(oracle, request_, reply):
    """Every verdict rests on it, so it is held against the protocol by hand."""
    assert oracle.answer(request_) == reply


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        {"op": "increment", "key": "there"},
        {"op": "put", "key": 1, "value": 2},
        {"op": "put", "key": "there"},
        {"op": "cas", "key": "there", "value": 2},
        {"op": "get", "key": ["there"]},
        {"op": "delete", "key": {}},
        {"op": "batch", "operations": "delete"},
        {
            "op": "batch",
            "operations": [{"op": "delete", "key": "there"}, {"op": "put", "key": "b"}],
        },
        {
            "op": "batch",
            "operations": [{"op": "delete", "key": "there"}, {"op": "batch", "operations": []}],
        },
    ],
)
def test_the_oracle_refuses_an_invalid_request_and_changes_nothing(oracle, request_):
    """A batch is all or nothing, so its valid first half must leave no trace."""
    assert oracle.answer(request_) == INVALID
    assert oracle.answer({"op": "get", "key": "there"})["value"] is True


def test_a_batch_takes_effect_in_order(oracle):
    """Later operations see earlier ones."""
    put = {"op": "put", "key": "a", "value": 1}
    operations = [put, {"op": "put", "key": "b", "value": 17}, {"op": "delete", "key": "a"}]

    assert oracle.answer({"op": "batch", "operations": operations}) == {"ok": True}
    assert oracle.answer({"op": "get", "key": "a"})["found"] is False
    assert oracle.answer({"op": "get", "key": "b"})["value"] == 17


def test_the_same_seed_gives_the_same_cases_and_another_one_does_not():
    """Results of a seed are compared across runs and machines."""
    assert PACK.cases(17) == PACK.cases(17)
    assert {case.id: case.content for case in PACK.cases(17)} != {
        case.id: case.content for case in PACK.cases(41)
    }


def test_sessions_and_requests_are_those_that_the_pack_declares():
    """A case that lost a step would still pass, and would catch less."""
    shapes = {
        case.id: [(len(s["requests"]), s["end"]) for s in case.content["sessions"]]
        for case in PACK.cases(97)
    }

    assert shapes == {
        "cas-match-and-mismatch": [(7, "eof")],
        "cas-type-sensitivity": [(5, "eof")],
        "restart-preserves-acknowledged-write": [(1, "eof"), (2, "eof"), (1, "eof")],
        "sigkill-after-acknowledgement": [(1, "kill"), (1, "eof")],
    }
    assert tuple(shapes) == tuple(PACK.info.cases)


def test_the_weights_cover_the_judged_dimensions_and_sum_to_one():
    """A dimension without cases would cap every score below 1."""
    judged = {dimension for dimensions in PACK.info.cases.values() for dimension in dimensions}

    assert set(PACK.info.weights) == judged
    assert sum(PACK.info.weights.values()) == pytest.approx(1.0)
    assert {mutant.target for mutant in PACK.info.mutants} == judged


def test_every_request_is_within_its_bound():
    """The bound is a promise to whoever writes a candidate."""
    sizes = [
        len(json.dumps(request)) + 1
        for seed in (*SEEDS, 97)
        for case in PACK.cases(seed)
        for session in case.content["sessions"]
        for request in session["requests"]
    ]

    assert max(sizes) <= PACK.info.request_bytes


@pytest.mark.parametrize("mutant", PACK.info.mutants, ids=MUTANTS)
def test_each_edit_of_a_mutant_finds_its_text_once_in_the_reference(mutant):
    """Found twice, or not at all, a fault would be another one than was declared."""
    reference = PACK.control("reference", "python")

    assert [reference[edit.file].decode().count(edit.find) for edit in mutant.edits] == [1] * len(
        mutant.edits
    )
    assert PACK.control(mutant.name, "python") != reference


def test_an_unknown_control_and_language_are_explained():
    """Both are typed by a person."""
    with pytest.raises(UsageError, match="nearest: memory-only"):
        PACK.control("memory_only", "python")
    with pytest.raises(UsageError, match="known: python"):
        PACK.control("reference", "cobol")


def task(root):
    return Task(
        brief=TaskBrief(name="durable-kv", prompt="Write a durable key-value service."),
        kind="capability",
        root=root,
        toolchain=None,
        pack=PackRef(name="durable-kv", seeds=SEEDS),
        weights=dict(PACK.info.weights),
        limits=Limits(memory_mib=256, processes=64, tmp_mib=16),
        sha256="0" * 64,
    )


@pytest.fixture(scope="module")
def gradings(tmp_path_factory):
    """Every control of the pack in Python, put to all of its cases."""
    folder = tmp_path_factory.mktemp("durable-kv")
    lab = PackLab(sandbox=Bwrap(), pack=PACK, work=folder / "work", jobs=3)

    def graded(control):
        root = folder / control
        write_tree(root, PACK.control(control, "python"))
        return grade(task(folder), read_submission(root), lab)

    return {control: graded(control) for control in ("reference", "starter", *MUTANTS)}


@pytest.fixture(scope="module")
def audit(gradings, tmp_path_factory):
    plan = AuditPlan(
        schema_version=SCHEMA_VERSION,
        batch="b1",
        task=task(tmp_path_factory.getbasetemp()).ref,
        mode="full",
        checks=dict(PACK.info.cases),
        weights=dict(PACK.info.weights),
        mutants=tuple(
            PlannedMutant(name=mutant.name, target_dimension=mutant.target)
            for mutant in PACK.info.mutants
        ),
        sandbox="bwrap",
    )
    return assess(plan, gradings)


@pytest.mark.slow
@needs_bwrap
def test_the_reference_passes_every_case_of_every_seed(gradings):
    """Nothing that a mutant fails could be credited to its fault otherwise."""
    rows = gradings["reference"].rows

    assert [(row.seed, row.check) for row in rows] == [
        (seed, case) for seed in SEEDS for case in PACK.info.cases
    ]
    assert {(row.status, row.detail) for row in rows} == {("passed", "")}


@pytest.mark.slow
@needs_bwrap
def test_the_starter_answers_and_is_wrong_everywhere(gradings):
    """It shows the protocol to whoever begins with it, and does none of the work."""
    assert {(r.status, r.answered) for r in gradings["starter"].rows} == {("failed", True)}


@pytest.mark.slow
@needs_bwrap
def test_every_declared_fault_is_caught_where_it_was_aimed(audit):
    """The margins are those that follow from which cases can see which fault."""
    found = {
        mutant.name: (mutant.class_, mutant.detection_margin, mutant.margin_any, mutant.score)
        for mutant in audit.mutants
    }

    assert found == {
        "memory-only": ("detected", 1, 2, 0.375),
        "cas-always-wins": ("detected", 2, 2, 0.625),
        "boolean-equals-one": ("detected", 1, 1, 0.8125),
        "commit-on-exit": ("detected", 1, 1, 0.75),
    }
    assert (audit.mutation_score, audit.detection.weakest_margin, audit.passed) == (1.0, 1, True)


@pytest.mark.slow
@needs_bwrap
def test_what_each_fault_fails_at_is_told_by_request_and_reply(gradings):
    """A person who reads a report must see what was wrong without running it again."""
    (row, *_) = [row for row in gradings["commit-on-exit"].rows if not row.passed]

    assert row.check == "sigkill-after-acknowledgement"
    assert row.detail.startswith("session 2: {")
    assert row.detail.endswith('not {"found": false, "ok": true}')
    assert [process.reason for process in row.processes] == ["killed", "killed"]
