"""durable-kv: its oracle, its cases, its references, and what the cases catch."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.lab import PackLab
from pytest_evalarc.grading.pack import CandidateError, Case
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.grading.toolchain import Interpreter, Toolchain
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import PackRef, Task, TaskBrief
from pytest_evalarc.packs.durable_kv.cases import LONG_TEXT, SHORT_KEYS, material
from pytest_evalarc.packs.durable_kv.faults import FAULTS
from pytest_evalarc.packs.durable_kv.oracle import Oracle
from pytest_evalarc.packs.durable_kv.pack import DurableKv
from pytest_evalarc.runs.once import once
from tests.needs import needs, needs_bwrap
from tests.sharing import run_folder

PACK = DurableKv()
CASES = tuple(PACK.info.cases)
MUTANTS = tuple(mutant.name for mutant in PACK.info.mutants)
LANGUAGES = tuple(PACK.info.languages)
DECLARED_SEEDS = (17, 41, 97)
OTHER_SEEDS = (2, 1000, 2**40 + 1)
SEEDS = (*DECLARED_SEEDS, *OTHER_SEEDS)
LOCAL = Local()
"""Starts thousands of processes faster than a boundary would, and what ships here is trusted."""
INVALID = {"ok": False, "error": "invalid_request"}

SHAPES = {
    "read-write-delete": ("basic", [(6, "eof")]),
    "json-types-and-overwrite": ("basic", [(16, "eof")]),
    "seeded-state-machine": ("basic", [(52, "eof")]),
    "reject-and-continue": ("validation", [(10, "eof")]),
    "empty-and-unicode-keys": ("validation", [(4, "eof")]),
    "commit-batch": ("transactions", [(4, "eof")]),
    "rollback-batch": ("transactions", [(7, "eof")]),
    "cas-match-and-mismatch": ("compare_swap", [(7, "eof")]),
    "cas-type-sensitivity": ("compare_swap", [(5, "eof")]),
    "restart-preserves-acknowledged-write": ("persistence", [(1, "eof"), (2, "eof"), (1, "eof")]),
    "restart-preserves-transaction": ("persistence", [(1, "eof"), (2, "eof")]),
    "restart-preserves-cas": ("persistence", [(2, "eof"), (1, "eof")]),
    "sigkill-after-acknowledgement": ("crash_recovery", [(1, "kill"), (1, "eof")]),
    "sigkill-after-atomic-batch": ("crash_recovery", [(1, "kill"), (2, "eof")]),
    "sigkill-after-delete": ("crash_recovery", [(1, "eof"), (1, "kill"), (1, "eof")]),
}
"""By case: its dimension, and the requests and end of each session."""

BASIC = CASES[:3]
COMPARE_SWAP = CASES[7:9]
PERSISTENCE = CASES[9:12]
CRASH_RECOVERY = CASES[12:]

MARGINS = {
    "ack-without-work": ("basic", BASIC, CASES, 0.0),
    "memory-only": ("persistence", PERSISTENCE, (*PERSISTENCE, *CRASH_RECOVERY[:2]), 0.78333333),
    "partial-batch": ("transactions", ("rollback-batch",), ("rollback-batch",), 0.9),
    "cas-always-wins": ("compare_swap", COMPARE_SWAP, COMPARE_SWAP, 0.85),
    "boolean-equals-one": ("compare_swap", COMPARE_SWAP[1:], COMPARE_SWAP[1:], 0.925),
    "delete-noop": (
        "basic",
        ("read-write-delete", "seeded-state-machine"),
        (
            *("read-write-delete", "seeded-state-machine", "commit-batch"),
            *("restart-preserves-acknowledged-write", "sigkill-after-delete"),
        ),
        0.65,
    ),
    "accept-nonstring-keys": (
        *("validation", ("reject-and-continue",), ("reject-and-continue",)),
        0.925,
    ),
    "commit-on-exit": ("crash_recovery", CRASH_RECOVERY, CRASH_RECOVERY, 0.9),
}
"""By fault: its target, the cases that see it there, those that see it anywhere, and its score."""

SOLE_DETECTORS = ("reject-and-continue", "rollback-batch", "cas-type-sensitivity")
IDLE = ("empty-and-unicode-keys", "commit-batch")

languages = pytest.mark.parametrize(
    "language", ["python", pytest.param("javascript", marks=needs("node"))]
)


# The oracle.


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
    assert canonical(oracle.answer(request_)) == canonical(reply)


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        "get",
        {},
        {"op": "increment", "key": "there"},
        {"op": ["get"], "key": "there"},
        {"op": "put", "key": 1, "value": 2},
        {"op": "put", "value": 2},
        {"op": "put", "key": "there"},
        {"op": "cas", "key": "there", "value": 2},
        {"op": "cas", "key": "there", "expected": True},
        {"op": "cas", "key": None, "expected": True, "value": 2},
        {"op": "get", "key": ["there"]},
        {"op": "get"},
        {"op": "delete", "key": {}},
        {"op": "batch"},
        {"op": "batch", "operations": "delete"},
        {"op": "batch", "operations": {"op": "delete", "key": "there"}},
        {"op": "batch", "operations": [None]},
        {"op": "batch", "operations": [{"op": "get", "key": "there"}]},
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


@pytest.mark.parametrize(
    ("stored", "expected", "swaps"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ([1, 2], [2, 1], False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        (2**63, 2.0**63, False),
        (2**70 + 1, 2**70, False),
        (False, 0, False),
        (None, False, False),
        ("", [], False),
        ([{"a": True}], [{"a": 1}], False),
    ],
)
def test_the_oracle_swaps_only_what_is_equal_in_type_too(stored, expected, swaps):
    """Python holds some of these for equal, and no candidate may."""
    oracle = Oracle()
    oracle.answer({"op": "put", "key": "k", "value": stored})
    reply = oracle.answer({"op": "cas", "key": "k", "expected": expected, "value": "new"})

    assert reply == {"ok": True, "swapped": swaps}
    left = oracle.answer({"op": "get", "key": "k"})["value"]
    assert canonical(left) == canonical("new" if swaps else stored)


# The cases.


def requests_of(case):
    return [request for session in case.content["sessions"] for request in session["requests"]]


def case_of(name, seed=17):
    return next(case for case in PACK.cases(seed) if case.id == name)


def test_the_same_seed_gives_the_same_cases_and_another_one_does_not():
    """Results of a seed are compared across runs and machines."""
    assert PACK.cases(17) == PACK.cases(17)
    for first, second in zip(PACK.cases(17), PACK.cases(41), strict=True):
        assert first.id == second.id
        assert first.content != second.content


def test_the_cases_of_a_seed_are_what_they_were_when_results_were_made():
    """They are part of a result's identity: if they change, so must the version of the pack."""
    content = [[case.id, case.content] for case in PACK.cases(17)]

    assert hashlib.sha256(canonical(content).encode()).hexdigest() == (
        "64aed668e7fdafed9b4d280adaae63707fd227238d0c4edfa651a0a29cf428ab"
    )
    assert PACK.info.version == "0.1.0"


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_and_requests_are_those_that_the_pack_declares(seed):
    """A case that lost a step would still pass, and would catch less."""
    cases = PACK.cases(seed)
    shapes = {
        case.id: (
            *PACK.info.cases[case.id],
            [(len(s["requests"]), s["end"]) for s in case.content["sessions"]],
        )
        for case in cases
    }

    assert shapes == SHAPES
    assert tuple(shapes) == CASES
    assert sum(len(case.content["sessions"]) for case in cases) == 23
    assert sum(len(requests_of(case)) for case in cases) == 129


def test_a_seed_varies_keys_value_and_random_steps():
    """What two seeds share cannot be what a candidate has learnt by heart."""
    given = [material(seed) for seed in range(100)]

    assert all(re.fullmatch("钥匙-[0-9a-f]{16}", each.key) for each in given)
    assert all(re.fullmatch("[0-9a-f]{16}", each.other_key) for each in given)
    assert all(1 <= each.value["version"] <= 9999 for each in given)
    assert len({each.key for each in given} | {each.other_key for each in given}) == 200
    assert len({each.value["version"] for each in given}) > 90
    assert len({canonical(list(each.steps)) for each in given}) == 100


@pytest.mark.parametrize("seed", SEEDS)
def test_random_steps_touch_every_key_with_every_operation(seed):
    """Few keys and many steps are what makes one write meet another."""
    requests = requests_of(case_of("seeded-state-machine", seed))
    steps, last = requests[:48], requests[48:]
    keys = {material(seed).key, material(seed).other_key, *SHORT_KEYS}

    assert {step["op"] for step in steps} == {"put", "get", "delete"}
    assert {step["key"] for step in steps} == keys
    assert [step["op"] for step in last] == ["get"] * 4
    assert {step["key"] for step in last} == keys


def test_a_kept_deletion_shows_in_the_random_steps_of_any_seed():
    """A fault must not hide from a case because a seed happens to never look."""

    class Keeping(Oracle):
        def answer(self, request):
            return super().answer(
                {"op": "batch", "operations": []} if deletes(request) else request
            )

    def deletes(request):
        return request["op"] == "delete"

    def verdict(case):
        return PACK.run(case, opening(Keeping())).verdicts["basic"]

    assert not any(verdict(case_of("seeded-state-machine", seed)) for seed in range(300))


def test_every_request_is_within_its_bound():
    """The bound is a promise to whoever writes a candidate."""
    sizes = [
        len(json.dumps(request)) + 1
        for seed in SEEDS
        for case in PACK.cases(seed)
        for request in requests_of(case)
    ]

    assert len(LONG_TEXT) < max(sizes) == 4163 <= PACK.info.request_bytes


def test_the_weights_cover_the_judged_dimensions_and_sum_to_one():
    """A dimension without cases would cap every score below 1."""
    judged = {dimension for dimensions in PACK.info.cases.values() for dimension in dimensions}

    assert set(PACK.info.weights) == judged
    assert sum(PACK.info.weights.values()) == pytest.approx(1.0)
    assert {mutant.target for mutant in PACK.info.mutants} == judged


def test_the_task_tells_a_candidate_every_operation_and_no_case():
    """The prompt is the contract: whoever keeps it passes, and it gives no answer away."""
    prompt = PACK.info.prompt

    assert {"put", "get", "delete", "cas", "batch"} <= set(re.findall(r"`(\w+)`", prompt))
    assert json.dumps(INVALID) in prompt
    assert f"{PACK.info.request_bytes} bytes" in prompt
    assert f"{PACK.info.limits.memory_mib} MiB of memory" in prompt
    assert f"print {PACK.info.limits.output_mib} MiB" in prompt
    assert not [name for name in (*CASES, *MUTANTS) if name in prompt]


# What a case makes of a candidate.


@dataclass
class Answering:
    """A session whose candidate is an object with the oracle's method, kept across sessions."""

    candidate: Oracle
    ended: list

    def ask(self, request):
        # Through JSON and back, as everything goes that a process is asked and answers.
        return json.loads(json.dumps(self.candidate.answer(json.loads(json.dumps(request)))))

    def end(self, how):
        self.ended.append(how)


def opening(candidate, ended=None):
    """Return what opens sessions of one candidate that forgets nothing."""
    ended = [] if ended is None else ended
    return lambda: Answering(candidate, ended)


class WrongOnce(Oracle):
    """Answers rightly but for one request, whose reply it has changed."""

    def __init__(self, place, change):
        super().__init__()
        self.place, self.change, self.asked = place, change, 0

    def answer(self, request):
        reply = super().answer(request)
        self.asked += 1
        return self.change(reply) if self.asked == self.place else reply


@pytest.mark.parametrize("name", CASES)
def test_right_replies_pass_and_each_session_is_ended_as_declared(name):
    """The kill is what a case of crashes is about, and it must come after the last reply."""
    ended = []
    verdict = PACK.run(case_of(name), opening(Oracle(), ended))

    dimension, sessions = SHAPES[name]
    assert (verdict.verdicts, verdict.fault, verdict.detail) == ({dimension: True}, None, "")
    assert ended == [how for _, how in sessions]


@pytest.mark.parametrize("name", CASES)
def test_one_wrong_reply_fails_its_case_whichever_it_is(name):
    """No reply goes unread, and nothing more is asked of a candidate that was wrong."""
    dimension, sessions = SHAPES[name]
    for place in range(1, sum(requests for requests, _ in sessions) + 1):
        candidate = WrongOnce(place, lambda reply: {**reply, "ok": not reply["ok"]})
        verdict = PACK.run(case_of(name), opening(candidate))

        assert verdict.verdicts == {dimension: False}
        assert verdict.detail.startswith("session ")
        assert candidate.asked == place


@pytest.mark.parametrize(
    "change",
    [
        lambda reply: {**reply, "extra": None},
        lambda reply: {**reply, "ok": 1},
        lambda reply: {**reply, "found": "true"},
        lambda reply: {**reply, "value": None},
        lambda reply: {**reply, "value": {**reply["value"], "version": 3.0}},
        lambda reply: {**reply, "value": {**reply["value"], "tags": ["a", None, "1.5"]}},
        lambda reply: {key: value for key, value in reply.items() if key != "found"},
        lambda reply: [reply],
        lambda reply: None,
    ],
)
def test_a_reply_that_is_nearly_right_is_wrong(change):
    """Replies are compared as JSON is spelt, where Python's equality would let some pass."""
    verdict = PACK.run(case_of("read-write-delete"), opening(WrongOnce(3, change)))

    assert verdict.verdicts == {"basic": False}


def test_the_order_of_keys_in_a_reply_means_nothing():
    """JSON gives it no meaning, and languages print it differently."""

    def turned(value):
        items = reversed(value.items())
        return {key: turned(each) if isinstance(each, dict) else each for key, each in items}

    verdict = PACK.run(case_of("read-write-delete"), opening(WrongOnce(3, turned)))

    assert verdict.verdicts == {"basic": True}


def test_what_was_wrong_is_told_by_request_and_reply():
    """A person who reads a report must see it without running the case again."""
    candidate = WrongOnce(2, lambda _: {"ok": True, "found": False})
    verdict = PACK.run(case_of("sigkill-after-acknowledgement"), opening(candidate))

    told = re.fullmatch(r"session 2: (\{.*\}) must give (\{.*\}), not (\{.*\})", verdict.detail)
    asked, wanted, got = map(json.loads, told.groups())
    assert asked == requests_of(case_of("sigkill-after-acknowledgement"))[1]
    assert wanted == {"ok": True, "found": True, "value": material(17).value}
    assert got == {"ok": True, "found": False}


def test_a_long_value_is_told_in_part():
    """A report is read by people, and four thousand letters say no more than three hundred."""
    candidate = WrongOnce(14, lambda _: {"ok": False, "error": "too long"})
    verdict = PACK.run(case_of("json-types-and-overwrite"), opening(candidate))

    assert "characters dropped" in verdict.detail
    assert len(verdict.detail) < 1000


def test_a_candidate_that_breaks_the_protocol_is_left_to_the_driver():
    """Its failure has a kind of its own, which a verdict would hide."""

    class Silent(Oracle):
        def answer(self, request):
            raise CandidateError("timeout", "it did not answer in time")

    with pytest.raises(CandidateError, match="in time"):
        PACK.run(case_of("commit-batch"), opening(Silent()))


# The controls.


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("fault", FAULTS, ids=MUTANTS)
def test_each_edit_of_a_fault_finds_its_text_once_in_the_reference(fault, language):
    """Found twice, or not at all, a fault would be another one than was declared."""
    reference = PACK.control("reference", language)
    (entry,) = reference
    text = reference[entry].decode()

    assert [text.count(find) for find, _ in fault.edits[language]] == [1] * len(
        fault.edits[language]
    )
    mutant = PACK.control(fault.name, language)
    assert mutant.keys() == reference.keys()
    assert mutant != reference


def test_the_declared_faults_and_their_targets_are_these():
    """Margins of two versions are compared fault by fault."""
    declared = {mutant.name: mutant.target for mutant in PACK.info.mutants}

    assert declared == {name: target for name, (target, *_) in MARGINS.items()}
    assert all(fault.edits.keys() == set(LANGUAGES) for fault in FAULTS)


def test_an_unknown_control_and_language_are_explained():
    """Both are typed by a person."""
    with pytest.raises(UsageError, match="nearest: memory-only"):
        PACK.control("memory_only", "python")
    with pytest.raises(UsageError, match="known: javascript, python"):
        PACK.control("reference", "cobol")


# The controls as real processes.


def task(root, language, *, pack=PACK, seeds=SEEDS):
    return Task(
        brief=TaskBrief(name="durable-kv", prompt=pack.info.prompt),
        kind="capability",
        root=root,
        toolchain=pack.info.languages[language].toolchain,
        pack=PackRef(name="durable-kv", seeds=seeds, language=language),
        weights=dict(pack.info.weights),
        limits=pack.info.limits,
        sha256="0" * 64,
    )


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Puts controls to their cases; the workers of one run share what was graded."""

    folder: Path
    shared: Path
    toolchains: dict[str, tuple[Toolchain, Interpreter]]
    threads: CaseThreads

    def lab(self, language, *, pack, sandbox):
        toolchain, interpreter = self.toolchains[language]
        return PackLab(
            sandbox=sandbox,
            toolchain=toolchain,
            interpreter=interpreter,
            pack=pack,
            work=self.folder / "work",
            jobs=3,
            threads=self.threads,
        )

    def grade(self, language, control, *, pack=PACK, seeds=SEEDS, sandbox=LOCAL):
        root = self.folder / language / control
        if not root.exists():
            write_tree(root, PACK.control(control, language))
        lab = self.lab(language, pack=pack, sandbox=sandbox)
        return grade(task(root, language, pack=pack, seeds=seeds), read_submission(root), lab)

    def graded(self, language, control):
        """Return the grading of all cases of all seeds, made once whoever asks."""
        document = self.shared / f"{language}-{control}.json"
        return once(document, Grading, lambda: self.grade(language, control))

    def audit(self, language, controls, *, seeds=DECLARED_SEEDS, cases=CASES):
        """Return the audit of some controls as it would be with some of the seeds and cases."""
        gradings = {
            control: only(self.graded(language, control), seeds, cases) for control in controls
        }
        plan = AuditPlan(
            schema_version=SCHEMA_VERSION,
            batch="b1",
            task=task(self.folder, language).ref,
            mode="full",
            checks={case: PACK.info.cases[case] for case in cases},
            weights=dict(PACK.info.weights),
            mutants=tuple(
                PlannedMutant(name=mutant.name, target_dimension=mutant.target)
                for mutant in PACK.info.mutants
            ),
            sandbox=LOCAL.name,
        )
        return assess(plan, gradings)


def only(grading, seeds, cases):
    rows = tuple(row for row in grading.rows if row.seed in seeds and row.check in cases)
    return grading.model_copy(update={"rows": rows})


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("durable-kv")
    toolchains = {"python": (Python(), Python().interpreter(lambda: folder))}
    if Node().missing() is None:
        Node().stage(folder / "node")
        toolchains["javascript"] = (Node(), Node().interpreter(lambda: folder / "node"))
    with CaseThreads() as threads:
        yield Bench(
            folder=folder,
            shared=run_folder(tmp_path_factory) / "durable-kv-graded",
            toolchains=toolchains,
            threads=threads,
        )


every_seed = pytest.mark.parametrize(
    "seeds", [DECLARED_SEEDS, OTHER_SEEDS], ids=["declared-seeds", "other-seeds"]
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@languages
class TestControls:
    """Every control of either language, put once to all cases of six seeds."""

    def test_the_reference_passes_every_case_of_every_seed(self, bench, language):
        """Nothing that a mutant fails could be credited to its fault otherwise."""
        rows = bench.graded(language, "reference").rows

        assert [(row.seed, row.check) for row in rows] == [
            (seed, case) for seed in SEEDS for case in CASES
        ]
        assert {(row.status, row.detail) for row in rows} == {("passed", "")}

    def test_the_reference_is_started_and_ended_as_the_cases_say(self, bench, language):
        """A kill that came as a clean exit would test nothing that the restarts do not."""
        rows = bench.graded(language, "reference").rows
        reasons = {"eof": ("exited", 0), "kill": ("killed", -9)}

        assert {
            row.check: [(process.reason, process.exit_code) for process in row.processes]
            for row in rows
        } == {name: [reasons[how] for _, how in sessions] for name, (_, sessions) in SHAPES.items()}

    def test_the_starter_answers_and_is_wrong_everywhere(self, bench, language):
        """It shows the protocol to whoever begins with it, and does none of the work."""
        audit = bench.audit(language, ("reference", "starter"))

        assert audit.starter.evaluation.score == 0.0
        rows = bench.graded(language, "starter").rows
        assert {(row.status, row.answered) for row in rows} == {("failed", True)}
        assert all('"not_implemented"' in row.detail for row in rows)

    @every_seed
    @pytest.mark.parametrize("name", MUTANTS)
    def test_a_fault_is_caught_by_the_cases_that_can_see_it(self, bench, language, name, seeds):
        """Margins, detectors and scores are what follows from the cases, in any language."""
        audit = bench.audit(language, ("reference", name), seeds=seeds)
        (mutant,) = (mutant for mutant in audit.mutants if mutant.name == name)

        target, detecting, anywhere, score = MARGINS[name]
        assert (mutant.class_, mutant.target_dimension) == ("detected", target)
        assert mutant.failing_cases == detecting
        assert (mutant.detection_margin, mutant.margin_any) == (len(detecting), len(anywhere))
        assert mutant.score == pytest.approx(score, abs=5e-9)

    @pytest.mark.parametrize("name", MUTANTS)
    def test_a_fault_fails_the_same_cases_with_every_seed_by_answers_alone(
        self, bench, language, name
    ):
        """A seed that hid a fault, or a mutant that only crashed, would make a margin luck."""
        rows = bench.graded(language, name).rows

        for seed in SEEDS:
            of_seed = {row.check: row for row in rows if row.seed == seed}
            failed = tuple(case for case in CASES if not of_seed[case].passed)
            assert failed == MARGINS[name][2]
        assert {(row.status, row.cause, row.answered) for row in rows} <= {
            ("passed", None, True),
            ("failed", None, True),
        }

    @every_seed
    def test_the_audit_passes_and_says_on_what_it_rests(self, bench, language, seeds):
        """Three faults hang on one case each, and two cases catch no declared fault at all."""
        audit = bench.audit(language, ("reference", "starter", *MUTANTS), seeds=seeds)

        assert (audit.mutation_score, audit.killed, audit.total, audit.passed) == (1.0, 8, 8, True)
        assert audit.detection.weakest_margin == 1
        assert audit.detection.single_case_detections == (
            *("partial-batch", "boolean-equals-one", "accept-nonstring-keys"),
        )
        assert audit.detection.sole_detector_cases == SOLE_DETECTORS
        coverage = audit.coverage
        assert coverage.idle_cases == IDLE
        assert coverage.untargeted_dimensions == ()
        assert coverage.leave_one_out == {
            case: 0.875 if case in SOLE_DETECTORS else 1.0 for case in CASES
        }
        assert (len(coverage.minimal_sets), coverage.minimal_sets_complete) == (18, True)
        assert {len(cases) for cases in coverage.minimal_sets} == {6}
        assert set.intersection(*map(set, coverage.minimal_sets)) == set(SOLE_DETECTORS)

    @pytest.mark.parametrize("case", CASES)
    def test_without_a_case_the_audit_scores_what_was_foretold(self, bench, language, case):
        """The score of the reduced list of cases is really counted again, with one seed."""
        audit = bench.audit(
            language,
            ("reference", "starter", *MUTANTS),
            seeds=(17,),
            cases=tuple(other for other in CASES if other != case),
        )

        lost = case in SOLE_DETECTORS
        assert audit.mutation_score == (0.875 if lost else 1.0)
        assert audit.detection.weakest_margin == (0 if lost else 1)
        assert audit.reference_passed

    def test_what_a_fault_fails_at_is_told_by_request_and_reply(self, bench, language):
        """A person who reads a report must see what was wrong without running it again."""
        (row, *_) = [row for row in bench.graded(language, "commit-on-exit").rows if not row.passed]

        assert row.check == "sigkill-after-acknowledgement"
        assert row.detail.startswith("session 2: {")
        assert row.detail.endswith('not {"found": false, "ok": true}')
        assert [process.reason for process in row.processes] == ["killed", "killed"]


# The references beyond the cases.

KEYS = ("", "a", "__proto__", "constructor", "钥", "\x00\n\u2028", "\ud800", "😀", "1", '"')
NUMBERS = (
    *(0, 1, -1, 2**53 + 1, -(2**63), 10**40 + 7),
    *(0.0, -0.0, 1.0, 1.5, 0.1, 1e16, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, -2.5e-9),
)
PLAIN = (None, True, False, "", "1", "true", *KEYS, *NUMBERS)
OUT_OF_PLACE = (
    {"op": "get", "key": "a"},
    {"op": "cas", "key": "a", "expected": 1, "value": 2},
    {"op": "batch", "operations": []},
)
"""What is valid, but not in a batch."""
NO_KEYS = (None, 1, 1.0, True, [], ["a"], {}, {"rawJSON": "1"})


class Fuzz(DurableKv):
    """The pack with one case: random requests, from sessions that end either way."""

    info = replace(DurableKv.info, cases={"random": ("basic",)}, weights={"basic": 1.0}, mutants=())
    REQUESTS, SESSIONS = 300, 6

    def cases(self, seed):
        requests = random_requests(seed, self.REQUESTS)
        size = self.REQUESTS // self.SESSIONS
        sessions = [
            {"requests": requests[place * size : (place + 1) * size], "end": end}
            for place, end in enumerate(("eof", "kill") * (self.SESSIONS // 2))
        ]
        return [Case(id="random", seed=seed, content={"sessions": sessions})]


def random_value(draw, depth=0):
    kind = draw.randrange(8 if depth < 4 else 6)
    if kind < 6:
        return draw.choice(PLAIN)
    children = [random_value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 6:
        return children
    return {draw.choice((*KEYS, "rawJSON", "toJSON")): child for child in children}


def alike(value):
    """Return a value that some language holds for the same; for an object it is the same."""
    if isinstance(value, dict):
        return dict(reversed(value.items()))
    if isinstance(value, list):
        return [alike(each) for each in value]
    if isinstance(value, bool | None):
        return int(bool(value))
    if isinstance(value, int):
        return float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value)


def random_write(draw):
    key = draw.choice(KEYS)
    if draw.random() < 0.3:
        return {"op": "delete", "key": key}
    return {"op": "put", "key": key, "value": random_value(draw)}


def random_swap(draw, oracle):
    """Return a swap that often expects what is there, or what could be taken for it."""
    key = draw.choice(KEYS)
    there = oracle.answer({"op": "get", "key": key}).get("value")
    expected = draw.choice((there, there, alike(there), random_value(draw)))
    return {"op": "cas", "key": key, "expected": expected, "value": random_value(draw)}


def random_batch(draw):
    operations = [random_write(draw) for _ in range(draw.randrange(5))]
    if draw.random() < 0.3:
        stranger = draw.choice((broken(draw), random_value(draw), *OUT_OF_PLACE))
        operations.insert(draw.randrange(len(operations) + 1), stranger)
    return {"op": "batch", "operations": operations}


def random_request(draw, oracle):
    match draw.choice(("get", "get", "write", "write", "cas", "cas", "batch", "broken", "stray")):
        case "get":
            return {"op": "get", "key": draw.choice(KEYS)}
        case "write":
            return random_write(draw)
        case "cas":
            return random_swap(draw, oracle)
        case "batch":
            return random_batch(draw)
        case "broken":
            return broken(draw)
    return random_value(draw)


def random_requests(seed, count):
    draw, oracle = random.Random(seed), Oracle()
    requests = []
    for _ in range(count):
        requests.append(random_request(draw, oracle))
        oracle.answer(requests[-1])
    return requests


def broken(draw):
    """Return a request that lacks a field, or has one that may not be."""
    request = draw.choice(
        (
            {"op": "get", "key": "a"},
            {"op": "put", "key": "a", "value": 1},
            {"op": "delete", "key": "a"},
            {"op": "cas", "key": "a", "expected": 1, "value": 2},
        )
    )
    if draw.random() < 0.5:
        return {**request, "key": draw.choice(NO_KEYS)}
    if draw.random() < 0.5:
        return {**request, "op": draw.choice(("batch", "__proto__", "toString", None, 1, ["get"]))}
    gone = draw.choice(tuple(request))
    return {field: value for field, value in request.items() if field != gone}


@pytest.mark.slow
@needs_bwrap
@languages
def test_a_reference_answers_random_requests_as_the_oracle_does(bench, language):
    """A candidate is measured by the oracle, and learns from the reference: they must agree.

    The case goes through the grader itself, sandbox, restarts, kills and strict reader and all.
    """
    grading = bench.grade(language, "reference", pack=Fuzz(), seeds=DECLARED_SEEDS, sandbox=Bwrap())

    assert [(row.seed, row.status, row.detail) for row in grading.rows] == [
        (seed, "passed", "") for seed in DECLARED_SEEDS
    ]
    assert all(len(row.processes) == Fuzz.SESSIONS for row in grading.rows)


@pytest.mark.parametrize("seed", DECLARED_SEEDS)
def test_random_requests_get_replies_of_every_kind(seed):
    """Requests that are all refused would make any two services agree."""
    oracle = Oracle()
    (case,) = Fuzz().cases(seed)
    asked = requests_of(case)
    replies = [oracle.answer(request) for request in asked]

    kinds = [
        *({"found": True}, {"found": False}, {"swapped": True}, {"swapped": False}),
        {"error": "invalid_request"},
    ]
    assert all(sum(kind.items() <= reply.items() for reply in replies) >= 5 for kind in kinds)
    batches = [
        reply["ok"]
        for request, reply in zip(asked, replies, strict=True)
        if isinstance(request, dict) and request.get("op") == "batch"
    ]
    assert min(batches.count(True), batches.count(False)) >= 3
    assert max(len(json.dumps(request)) + 1 for request in asked) <= PACK.info.request_bytes


def told(bench, language, lines, state):
    """Return what the reference prints for lines of text, without a sandbox or a reader."""
    interpreter = bench.toolchains[language][1]
    root = bench.folder / language / "told"
    if not root.exists():
        write_tree(root, PACK.control("reference", language))
    places = {interpreter.word: interpreter.program, "workspace": root, "state": state}
    command = [word.format_map(places) for word in PACK.info.languages[language].command]
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


SPELLINGS = [
    *("0", "1", "-1", "1.0", "-0.0", "0.0", "1e2", "1E+2", "100.0", "1.10", "0.1", "1e-7"),
    *("9007199254740993", "-123456789012345678901234567890", "1.7976931348623157e308", "5e-324"),
]


@pytest.mark.slow
@languages
def test_a_number_comes_back_as_it_was_sent_before_and_after_a_restart(bench, language, tmp_path):
    """As doubles, 1 and 1.0 are one number, and a long integer is another one than was sent."""
    numbers = f"[{','.join(SPELLINGS)}]"
    put = f'{{"op":"put","key":"k","value":{{"n":{numbers}}}}}'
    get = '{"op":"get","key":"k"}'

    _, now = told(bench, language, [put, get], tmp_path)
    (later,) = told(bench, language, [get], tmp_path)

    wanted = canonical({"ok": True, "found": True, "value": {"n": json.loads(numbers)}})
    assert canonical(json.loads(now)) == canonical(json.loads(later)) == wanted
    if language == "javascript":
        assert numbers in now
        assert numbers in later


@pytest.mark.slow
@languages
def test_a_line_that_is_no_json_is_refused_and_the_service_goes_on(bench, language, tmp_path):
    """A service that dies of one bad line has forgotten that others may follow."""
    lines = ["{", "", '{"op":"put","key":"k","value":1}', "nonsense", '{"op":"get","key":"k"}']

    replies = [json.loads(line) for line in told(bench, language, lines, tmp_path)]

    found = {"ok": True, "found": True, "value": 1}
    assert replies == [INVALID, INVALID, {"ok": True}, INVALID, found]
