"""support-routing: its service, its verifier, its desk, and what its cases catch."""

from __future__ import annotations

import ast
import json
import subprocess
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from pytest_evalarc.counting.audit import assess
from pytest_evalarc.errors import InfrastructureError, UsageError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.lab import PackLab
from pytest_evalarc.grading.pack import CandidateError
from pytest_evalarc.grading.submission import read_submission
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import PackRef, Task, TaskBrief
from pytest_evalarc.packs.support_routing import verifier
from pytest_evalarc.packs.support_routing.episode import INSTRUCTION
from pytest_evalarc.packs.support_routing.pack import SupportRouting
from pytest_evalarc.packs.support_routing.service import ARGUMENTS, TicketService
from pytest_evalarc.packs.support_routing.verifier import problems
from pytest_evalarc.runs.once import once
from tests.needs import needs, needs_bwrap
from tests.sharing import run_folder

PACK = SupportRouting()
CASES = tuple(PACK.info.cases)
MUTANTS = tuple(mutant.name for mutant in PACK.info.mutants)
DECLARED_SEEDS = (17, 41, 97)
OTHER_SEEDS = (3, 1009, 4294967311)
LANGUAGES = ("python", "javascript")
STATE_DIMENSIONS = ("routing", "notes", "closure", "scope")

# Target, distinct cases that fail in it, distinct cases that fail in any dimension, score.
MARGINS = {
    "claim-without-actions": ("routing", CASES, 4, 0.35),
    "wrong-ticket": ("scope", CASES, 4, 0.2),
    "wrong-queue": ("routing", CASES, 4, 0.7),
    "duplicate-note": ("notes", CASES, 4, 0.75),
    "close-unresolved": ("closure", ("route-open-ticket", "retry-before-commit"), 2, 0.9),
    "skip-retry": ("notes", ("retry-before-commit",), 2, 0.8125),
    "new-key-on-retry": ("notes", ("retry-after-commit",), 1, 0.9375),
}

UNAVAILABLE = {"ok": False, "error": {"code": "temporarily_unavailable", "retryable": True}}


def refused(code):
    return {"ok": False, "error": {"code": code, "retryable": False}}


def case_of(name, seed=17):
    return next(case for case in PACK.cases(seed) if case.id == name)


# The cases.


def test_the_same_seed_gives_the_same_cases_and_another_one_does_not():
    """Results of a seed are compared across runs and machines."""
    assert PACK.cases(17) == PACK.cases(17)
    for first, second in zip(PACK.cases(17), PACK.cases(41), strict=True):
        assert first.id == second.id
        assert first.content != second.content


def test_cases_come_as_they_are_declared():
    """Rows are matched with columns by name and place."""
    assert CASES == (
        "route-open-ticket",
        "close-resolved-ticket",
        "retry-before-commit",
        "retry-after-commit",
    )
    assert [(case.id, case.seed) for case in PACK.cases(97)] == [(name, 97) for name in CASES]


@pytest.mark.parametrize("seed", [*DECLARED_SEEDS, *OTHER_SEEDS])
def test_what_is_asked_is_the_same_for_every_seed(seed):
    """Margins hold for any seed only if a seed moves names around and nothing else."""
    shapes = {}
    for index, case in enumerate(PACK.cases(seed)):
        content = case.content
        target = content["tickets"][content["target"]]
        (other,) = (t for name, t in content["tickets"].items() if name != content["target"])
        shapes[case.id] = (target["resolved"], content["disturbance"])
        assert target["category"] != other["category"]
        assert target["resolved"] != other["resolved"]
        for ticket in (target, other):
            assert (ticket["queue"], ticket["status"], len(ticket["notes"])) == ("inbox", "open", 1)
        assert sorted(content["routing_rules"]) == ["account", "billing", "technical"]
        assert sorted(content["routing_rules"].values()) == [f"queue-{index}-{n}" for n in range(3)]
        assert content["target"] in content["note"]

    assert shapes == {
        "route-open-ticket": (False, None),
        "close-resolved-ticket": (True, None),
        "retry-before-commit": (False, {"tool": "assign_queue", "moment": "before_commit"}),
        "retry-after-commit": (True, {"tool": "add_note", "moment": "after_commit"}),
    }


def test_seeds_reach_every_category_queue_and_order_of_tickets():
    """A constant among them would let a candidate that knows it pass."""
    contents = [case.content for seed in range(40) for case in PACK.cases(seed)]

    categories = {c["tickets"][c["target"]]["category"] for c in contents}
    queues = {c["routing_rules"]["billing"][-1] for c in contents}
    places = {list(c["tickets"]).index(c["target"]) for c in contents}
    targets = {c["target"] for c in contents}

    assert categories == {"billing", "technical", "account"}
    assert queues == {"0", "1", "2"}
    assert places == {0, 1}
    assert len(targets) == len(contents)


def test_every_case_is_judged_in_all_five_dimensions_and_weights_sum_to_one():
    """A dimension without cases would cap every score below 1."""
    assert set(PACK.info.cases.values()) == {(*STATE_DIMENSIONS, "protocol")}
    assert PACK.info.weights == {
        "routing": 0.30,
        "notes": 0.25,
        "closure": 0.20,
        "scope": 0.15,
        "protocol": 0.10,
    }
    assert sum(PACK.info.weights.values()) == pytest.approx(1.0)
    assert {name: target for name, (target, *_) in MARGINS.items()} == {
        mutant.name: mutant.target for mutant in PACK.info.mutants
    }


# The service.


@pytest.fixture
def service():
    """Two tickets and two queues; nothing fails."""
    return TicketService(tickets(), frozenset({"inbox", "desk"}), None)


def tickets():
    return {
        name: {
            "category": "billing",
            "queue": "inbox",
            "resolved": False,
            "status": "open",
            "notes": ["first"],
        }
        for name in ("a", "b")
    }


def note(ticket_id="a", body="more", request_id="r"):
    return {"ticket_id": ticket_id, "body": body, "request_id": request_id}


def test_tools_do_what_they_say(service):
    """The whole state after one call of each is the contract, told by example."""
    assert service.call("assign_queue", {"ticket_id": "a", "queue": "desk"}).result == {"ok": True}
    assert service.call("add_note", note()).result == {"ok": True}
    assert service.call("close_ticket", {"ticket_id": "a"}).result == {"ok": True}

    changed = {"queue": "desk", "status": "closed", "notes": ["first", "more"]}
    assert service.tickets == {"a": {**tickets()["a"], **changed}, "b": tickets()["b"]}
    assert service.call("get_ticket", {"ticket_id": "a"}).result == {
        "ok": True,
        "ticket": service.tickets["a"],
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("reopen_ticket", {"ticket_id": "a"}, "invalid_arguments"),
        (5, {"ticket_id": "a"}, "invalid_arguments"),
        (None, None, "invalid_arguments"),
        (["get_ticket"], {"ticket_id": "a"}, "invalid_arguments"),
        ("get_ticket", ["a"], "invalid_arguments"),
        ("get_ticket", {}, "invalid_arguments"),
        ("get_ticket", {"ticket_id": "a", "more": "b"}, "invalid_arguments"),
        ("get_ticket", {"ticket_id": 1}, "invalid_arguments"),
        ("get_ticket", {"ticket_id": "a" * 513}, "invalid_arguments"),
        ("close_ticket", {"ticket_id": None}, "invalid_arguments"),
        ("assign_queue", {"ticket_id": "a"}, "invalid_arguments"),
        ("assign_queue", {"ticket_id": "a", "queue": "elsewhere"}, "unknown_queue"),
        ("assign_queue", {"ticket_id": "c", "queue": "elsewhere"}, "ticket_not_found"),
        ("get_ticket", {"ticket_id": "\U0001f3ab" * 512}, "ticket_not_found"),
        ("close_ticket", {"ticket_id": ""}, "ticket_not_found"),
        ("add_note", note("c", request_id=""), "ticket_not_found"),
        ("add_note", note(request_id=""), "invalid_request_id"),
        ("add_note", note(body="x" * 513), "invalid_arguments"),
        ("add_note", {"ticket_id": "a", "body": "more"}, "invalid_arguments"),
    ],
)
def test_a_wrong_call_is_refused_and_changes_nothing(service, tool, arguments, code):
    """Nothing that a candidate sends may break the service, or count as work."""
    outcome = service.call(tool, arguments)

    assert outcome == (refused(code), "tool_validation")
    assert service.tickets == tickets()


def test_a_note_is_known_by_its_ticket_and_request_id(service):
    """Only so can a candidate try again without a second note."""
    service.call("add_note", note())

    assert service.call("add_note", note()) == ({"ok": True, "replayed": True}, None)
    assert service.call("add_note", note(body="other")) == (
        refused("idempotency_conflict"),
        "tool_validation",
    )
    assert service.tickets["a"]["notes"] == ["first", "more"]

    assert service.call("add_note", note("b")).result == {"ok": True}
    assert service.call("add_note", note(request_id="s")).result == {"ok": True}
    assert service.tickets["a"]["notes"] == ["first", "more", "more"]
    assert service.tickets["b"]["notes"] == ["first", "more"]


def test_closing_is_never_refused(service):
    """Whether a ticket may be closed is the candidate's to know."""
    for _ in range(2):
        assert service.call("close_ticket", {"ticket_id": "a"}) == ({"ok": True}, None)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("assign_queue", {"ticket_id": "a", "queue": "desk"}),
        ("add_note", note()),
        ("close_ticket", {"ticket_id": "a"}),
    ],
)
@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_the_declared_failure_comes_once_before_or_after_the_write(tool, arguments, moment):
    """Both look alike from outside, which is why a retry must be safe."""
    disturbed = {"tool": tool, "moment": moment}
    service = TicketService(tickets(), frozenset({"inbox", "desk"}), disturbed)

    assert service.call(tool, arguments) == (UNAVAILABLE, "injected")
    assert (service.tickets != tickets()) == (moment == "after_commit")

    result, error_source = service.call(tool, arguments)
    replayed = tool == "add_note" and moment == "after_commit"
    assert result == ({"ok": True, "replayed": True} if replayed else {"ok": True})
    assert error_source is None
    assert service.tickets["a"] != tickets()["a"]
    assert len(service.tickets["a"]["notes"]) <= 2


def test_the_declared_failure_waits_for_a_valid_call_of_its_tool_on_any_ticket():
    """A wrong call must not use it up, or a candidate could fish for it without risk."""
    disturbed = {"tool": "add_note", "moment": "after_commit"}
    service = TicketService(tickets(), frozenset({"inbox", "desk"}), disturbed)

    assert service.call("add_note", note(request_id="")).error_source == "tool_validation"
    assert service.call("add_note", note("c")).error_source == "tool_validation"
    assert service.call("close_ticket", {"ticket_id": "a"}).error_source is None
    assert service.call("add_note", note("b")).error_source == "injected"
    assert service.call("add_note", note("a")).error_source is None


def test_what_the_service_hands_out_is_a_copy():
    """A state that a caller can change would no longer be the host's own."""
    begun = tickets()
    service = TicketService(begun, frozenset(), None)

    begun["a"]["notes"].append("slipped in")
    service.tickets["a"]["notes"].append("slipped in")
    service.call("get_ticket", {"ticket_id": "a"}).result["ticket"]["notes"].append("slipped in")

    assert service.tickets == tickets()


# The verifier.


def done(content):
    """The state that a case wants, written down from its content."""
    target = content["target"]
    ticket = content["tickets"][target]
    right = {
        "queue": content["routing_rules"][ticket["category"]],
        "notes": [*ticket["notes"], content["note"]],
        "status": "closed" if ticket["resolved"] else "open",
    }
    return {**content["tickets"], target: {**ticket, **right}}


@pytest.mark.parametrize("seed", DECLARED_SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_the_right_state_has_no_problem(name, seed):
    """Every case can be done."""
    content = case_of(name, seed).content

    assert problems(content, done(content)) == dict.fromkeys(STATE_DIMENSIONS, "")


def changed(content, whose, **values):
    """The right state but for some values of one ticket."""
    target = content["target"]
    (other,) = content["tickets"].keys() - {target}
    ticket_id = {"target": target, "other": other}[whose]
    state = done(content)
    return {**state, ticket_id: {**state[ticket_id], **values}}


def failing(content, state):
    return {dimension for dimension, problem in problems(content, state).items() if problem}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_state_fails_in_its_own_dimension_alone(name):
    """A score is a sum over dimensions, so one mistake must not be charged twice."""
    content = case_of(name).content
    target = content["target"]
    (other,) = content["tickets"].keys() - {target}
    before, note_ = content["tickets"][target], content["note"]
    (first,) = before["notes"]
    right, state = done(content)[target], done(content)
    flipped = "open" if right["status"] == "closed" else "closed"
    wrong_queues = {*content["routing_rules"].values(), "inbox", ""} - {right["queue"]}
    wrong_notes = (
        *([], [first], [note_], [note_, first], [first, note_, note_]),
        *([first, note_, "done"], [first, f"{note_} "], [first, note_.upper()]),
    )

    for queue in wrong_queues:
        assert failing(content, changed(content, "target", queue=queue)) == {"routing"}
    for notes in wrong_notes:
        assert failing(content, changed(content, "target", notes=notes)) == {"notes"}
    for status in (flipped, "", "CLOSED"):
        assert failing(content, changed(content, "target", status=status)) == {"closure"}
    out_of_scope = [
        changed(content, "target", category="elsewhere"),
        changed(content, "target", resolved=not before["resolved"]),
        *(
            changed(content, "other", **{key: value})
            for key, value in {
                "category": before["category"],
                "queue": right["queue"],
                "resolved": before["resolved"],
                "status": "closed",
                "notes": [],
            }.items()
        ),
        {**state, "T-new": right},
        {target: right},
    ]
    for wrong in out_of_scope:
        assert failing(content, wrong) == {"scope"}
    assert failing(content, {other: state[other]}) == set(STATE_DIMENSIONS)


def test_a_problem_says_what_must_be_and_what_is():
    """A person who reads a report must see what was wrong without running it again."""
    content = case_of("close-resolved-ticket").content
    state = changed(content, "target", queue="inbox", status="open")

    found = problems(content, state)

    queue = done(content)[content["target"]]["queue"]
    assert found["routing"] == f'the queue must be "{queue}", not "inbox"'
    assert found["closure"] == 'the status must be "closed", not "open"'


def test_the_verifier_does_not_know_the_service():
    """Judged by its own handlers, a service with a fault would find itself without one."""
    tree = ast.parse(Path(verifier.__file__).read_text("utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert {name for name in imported if "support_routing" in name} == {
        "pytest_evalarc.packs.support_routing.cases"
    }


# The desk.


@dataclass
class Scripted:
    """A candidate that says what it was told to say, whatever it hears."""

    replies: list
    at_end: Exception | None = None
    heard: list = field(default_factory=list)
    ended: list = field(default_factory=list)

    def ask(self, request):
        self.heard.append(request)
        reply = self.replies[len(self.heard) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def end(self, how):
        self.ended.append(how)
        if self.at_end:
            raise self.at_end


def played(case, *replies, at_end=None):
    session = Scripted([*replies], at_end)
    return PACK.run(case, lambda: session), session


def call(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def right_calls(case, *, again=()):
    """All of the work of a case; a tool named in `again` is called twice in a row."""
    content = case.content
    target = content["target"]
    ticket = content["tickets"][target]
    queue = content["routing_rules"][ticket["category"]]
    calls = [
        call("get_ticket", ticket_id=target),
        call("assign_queue", ticket_id=target, queue=queue),
        call("add_note", ticket_id=target, body=content["note"], request_id="n-1"),
        *([call("close_ticket", ticket_id=target)] if ticket["resolved"] else []),
    ]
    return [c for each in calls for c in ([each, each] if each["tool"] in again else [each])]


FINISH = {"finish": True}
NEEDS_RETRY = {"retry-before-commit": ("assign_queue",), "retry-after-commit": ("add_note",)}


@pytest.mark.parametrize("seed", DECLARED_SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_the_right_work_passes_in_every_dimension(name, seed):
    """The failures that come on their own are part of the task, and never a failure of it."""
    case = case_of(name, seed)

    verdict, session = played(case, *right_calls(case, again=NEEDS_RETRY.get(name, ())), FINISH)

    assert verdict.verdicts == dict.fromkeys(PACK.info.weights, True)
    assert (verdict.fault, verdict.detail, session.ended) == (None, "", ["eof"])


def test_a_candidate_hears_its_task_and_then_results():
    """These are the words of the contract."""
    case = case_of("close-resolved-ticket")
    content = case.content

    _, session = played(case, *right_calls(case), FINISH)

    start, seen, *later = session.heard
    assert start == {
        "type": "start",
        "task": start["task"],
        "tools": ["get_ticket", "assign_queue", "add_note", "close_ticket"],
        "remaining_actions": 12,
    }
    assert seen == {
        "type": "tool_result",
        "result": {"ok": True, "ticket": content["tickets"][content["target"]]},
        "remaining_actions": 11,
    }
    assert later == [
        {"type": "tool_result", "result": {"ok": True}, "remaining_actions": left}
        for left in (10, 9, 8)
    ]


def test_the_task_tells_what_is_needed_and_not_what_must_be_looked_up():
    """Category and resolution are for `get_ticket`; told at once, nobody would have to ask."""
    case = case_of("route-open-ticket")

    _, session = played(case, FINISH)

    task = session.heard[0]["task"]
    assert task == {
        "instruction": INSTRUCTION,
        "ticket_id": case.content["target"],
        "ticket_ids": list(case.content["tickets"]),
        "routing_rules": case.content["routing_rules"],
        "note": case.content["note"],
    }


def test_the_record_holds_calls_results_changes_receipts_and_both_states():
    """Whoever doubts a verdict reads this, so nothing that decided it may be missing."""
    case = case_of("retry-after-commit")
    content = case.content
    target = content["target"]
    before = content["tickets"][target]
    noted = {**before, "notes": [*before["notes"], content["note"]]}
    add = call("add_note", ticket_id=target, body=content["note"], request_id="n-1")
    wrong = call("assign_queue", ticket_id=target, queue="nowhere")

    verdict, _ = played(case, wrong, add, add, {"finish": True, "message": "done"})

    quiet = {"type": "tool_call", "changes": {}}
    assert list(verdict.trace) == [
        {"type": "initial_state", "tickets": content["tickets"]},
        {
            **quiet,
            "step": 1,
            "action": wrong,
            "result": refused("unknown_queue"),
            "status": "tool_error",
            "error_source": "tool_validation",
        },
        {
            **quiet,
            "step": 2,
            "action": add,
            "result": UNAVAILABLE,
            "status": "tool_error",
            "error_source": "injected",
            "changes": {target: {"before": before, "after": noted}},
        },
        {
            **quiet,
            "step": 3,
            "action": add,
            "result": {"ok": True, "replayed": True},
            "status": "ok",
            "error_source": None,
        },
        {"step": 4, "type": "finish", "message": "done"},
        {"type": "final_state", "tickets": {**content["tickets"], target: noted}},
    ]
    assert verdict.verdicts == {
        "routing": False,
        "notes": True,
        "closure": False,
        "scope": True,
        "protocol": True,
    }
    assert verdict.detail.startswith("routing: the queue must be ")
    assert "; closure: the status must be " in verdict.detail


MALFORMED = (
    None,
    [],
    "finish",
    12,
    {},
    {"finish": False},
    {"finish": 1},
    {"finish": "true"},
    {"finish": True, "message": 5},
    {"finish": True, "message": None},
    {"finish": True, "note": "done"},
    {"finish": True, "message": "done", "note": "done"},
    {"message": "done"},
    {"tool": "get_ticket"},
    {"arguments": {}},
    {"tool": "get_ticket", "arguments": {}, "finish": True},
    {"tool": "get_ticket", "arguments": {}, "id": 1},
)


@pytest.mark.parametrize("reply", MALFORMED, ids=json.dumps)
def test_a_malformed_action_ends_the_work_and_what_was_done_still_counts(reply):
    """Protocol is a dimension of its own, with its own weight."""
    case = case_of("close-resolved-ticket")

    verdict, session = played(case, *right_calls(case), reply)

    assert verdict.verdicts == {**dict.fromkeys(STATE_DIMENSIONS, True), "protocol": False}
    assert (verdict.fault.kind, session.ended) == ("protocol", [])
    assert [entry["type"] for entry in verdict.trace[-2:]] == ["agent_error", "final_state"]
    assert verdict.trace[-2] == {
        "type": "agent_error",
        "kind": "protocol",
        "detail": verdict.fault.detail,
    }


@pytest.mark.parametrize(
    ("name", "closure"), [("route-open-ticket", True), ("close-resolved-ticket", False)]
)
def test_a_candidate_that_never_speaks_is_judged_by_the_untouched_state(name, closure):
    """Nothing done is right where nothing was to be done, whatever became of the process."""
    fault = CandidateError("early_exit", "it ended with status 1 before it answered")

    verdict, _ = played(case_of(name), fault)

    assert verdict.fault is fault
    assert verdict.verdicts == {
        "routing": False,
        "notes": False,
        "closure": closure,
        "scope": True,
        "protocol": False,
    }


def test_a_session_that_cannot_be_had_in_time_is_the_candidates_fault_too():
    """The case's time may be used up before its process stands."""

    def open_session():
        raise CandidateError("timeout", "its case was over")

    verdict = PACK.run(case_of("route-open-ticket"), open_session)

    assert (verdict.fault.kind, verdict.verdicts["protocol"]) == ("timeout", False)
    assert [entry["type"] for entry in verdict.trace] == [
        "initial_state",
        "agent_error",
        "final_state",
    ]


def test_what_breaks_on_our_side_is_no_verdict():
    """Judged on, a broken sandbox would count against whoever was in it."""
    broken = InfrastructureError("sandbox", "it fell over")

    with pytest.raises(InfrastructureError):
        played(case_of("route-open-ticket"), broken)


def test_work_that_is_not_finished_within_twelve_actions_counts_but_breaks_the_protocol():
    """The twelfth call is still made; there is no reply left for finishing."""
    case = case_of("close-resolved-ticket")
    look = call("get_ticket", ticket_id=case.content["target"])

    verdict, session = played(case, *[look] * 8, *right_calls(case))

    assert verdict.verdicts == {**dict.fromkeys(STATE_DIMENSIONS, True), "protocol": False}
    assert verdict.fault.kind == "action_limit"
    assert [heard["remaining_actions"] for heard in session.heard] == list(range(12, 0, -1))
    assert [entry.get("step") for entry in verdict.trace] == [None, *range(1, 13), None, None]


def test_the_twelfth_action_may_finish():
    """The bound counts the last action, and is not one less."""
    case = case_of("close-resolved-ticket")
    look = call("get_ticket", ticket_id=case.content["target"])

    verdict, _ = played(case, *[look] * 7, *right_calls(case), FINISH)

    assert all(verdict.verdicts.values())


def test_a_process_that_ends_badly_after_finishing_breaks_the_protocol():
    """The record shows both that it finished and how it then failed."""
    case = case_of("route-open-ticket")
    at_end = CandidateError("exit_status", "it exited with status 4 when its input ended")

    verdict, _ = played(case, *right_calls(case), FINISH, at_end=at_end)

    assert verdict.verdicts == {**dict.fromkeys(STATE_DIMENSIONS, True), "protocol": False}
    assert [entry["type"] for entry in verdict.trace[-3:]] == [
        "finish",
        "agent_error",
        "final_state",
    ]


def test_work_on_the_other_ticket_fails_everywhere_but_in_what_was_not_to_be_done():
    """Nothing of it is the work that was asked for."""
    case = case_of("route-open-ticket")
    (other,) = case.content["tickets"].keys() - {case.content["target"]}
    calls = [
        {**each, "arguments": {**each["arguments"], "ticket_id": other}}
        for each in right_calls(case)
    ]

    verdict, _ = played(case, *calls, FINISH)

    assert verdict.verdicts == {
        "routing": False,
        "notes": False,
        "closure": True,
        "scope": False,
        "protocol": True,
    }
    assert f"scope: what was to be left alone changed in {other}" in verdict.detail


def notes_to_the_limit(case, character):
    target = case.content["target"]
    return [
        call("add_note", ticket_id=target, body=character * 512, request_id=f"{number}")
        for number in range(10)
    ]


@pytest.mark.parametrize("character", ["\U0001f3ab", "\ud800", "\x00", "\u202e", '"', "n"])
def test_no_notes_of_a_candidate_make_an_observation_too_long(character):
    """A line beyond the bound is the harness's failure, which a candidate could then buy."""
    case = case_of("route-open-ticket")
    look = call("get_ticket", ticket_id=case.content["target"])

    _, session = played(case, *notes_to_the_limit(case, character), look, FINISH)

    longest = session.heard[-1]
    assert len(longest["result"]["ticket"]["notes"]) == 11
    assert len(json.dumps(longest)) + 1 <= PACK.info.request_bytes


@pytest.mark.parametrize("character", ["\U0001f3ab", "\ud800", "\x1b", "\u202e", "n"])
def test_the_record_of_notes_is_bounded_and_safe_to_show(character):
    """It is stored and shown as it is, so no text in it may move a terminal or end a document."""
    case = case_of("route-open-ticket")

    verdict, _ = played(case, *notes_to_the_limit(case, character), FINISH)

    stored = dumps(list(verdict.trace)).decode()
    assert len(stored) < 1 << 20
    assert not {"\ud800", "\x1b", "\u202e"} & set(stored)
    assert verdict.verdicts["notes"] is False
    assert len(verdict.detail) < 2000


@pytest.mark.parametrize(
    "reply",
    [
        {"tool": "x" * 100_000, "arguments": {}},
        {"tool": ["get_ticket"] * 10_000, "arguments": {}},
        {"tool": "get_ticket", "arguments": "x" * 100_000},
        {"tool": "get_ticket", "arguments": {"ticket_id": "x" * 100_000}},
        {"tool": "get_ticket", "arguments": {"x" * 100_000: "a"}},
        {"tool": "get_ticket", "arguments": {str(number): "a" for number in range(10_000)}},
        {"tool": "get_ticket", "arguments": {"ticket_id": [[[[None] * 10_000]]]}},
        {"finish": True, "message": "x" * 100_000},
        {"surprise": "x" * 100_000},
    ],
    ids=lambda reply: json.dumps(reply)[:40],
)
def test_the_record_of_anything_else_that_is_said_is_cut(reply):
    """A candidate may print a mebibyte, and every result would carry it for good."""
    case = case_of("route-open-ticket")

    verdict, _ = played(case, reply, FINISH)

    assert len(dumps(list(verdict.trace))) < 10_000
    assert any("characters dropped" in json.dumps(e, ensure_ascii=False) for e in verdict.trace)


def test_arguments_that_a_tool_could_take_are_recorded_as_they_are():
    """Cut or spelt otherwise, the record could not be played again."""
    case = case_of("route-open-ticket")
    odd = call("add_note", ticket_id="x" * 512, body="\U0001f3ab" * 512, request_id="")

    verdict, _ = played(case, odd, {"tool": 7, "arguments": {"ticket_id": 5}}, FINISH)

    _, first, second, *_ = verdict.trace
    assert first["action"] == odd
    assert second["action"] == {"tool": "7", "arguments": '{"ticket_id": 5}'}


def test_a_case_can_be_run_again():
    """Cases are shared by threads and by controls, so no run may leave a mark on one."""
    case = case_of("retry-after-commit")
    replies = [*right_calls(case, again=("add_note",)), FINISH]

    first, _ = played(case, *replies)
    again, _ = played(case, *replies)

    assert first == again
    assert case == case_of("retry-after-commit")


# The controls.


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["reference", "starter", *MUTANTS])
def test_every_control_is_there_in_every_language(name, language):
    """An edit whose text is not there exactly once is refused, and would be so here."""
    files = PACK.control(name, language)

    assert list(files) == [{"python": "main.py", "javascript": "main.js"}[language]]
    assert files != PACK.control("reference", language) or name == "reference"


def test_an_unknown_control_and_language_are_explained():
    """Both are typed by a person."""
    with pytest.raises(UsageError, match="nearest: skip-retry"):
        PACK.control("skip_retry", "python")
    with pytest.raises(UsageError, match="known: javascript, python"):
        PACK.control("reference", "cobol")


def test_the_prompt_is_the_contract_of_every_language():
    """A candidate knows what stands in there and nothing else."""
    prompt = PACK.info.prompt

    codes = ("invalid_arguments", "ticket_not_found", "unknown_queue", "invalid_request_id")
    words = (*codes, "idempotency_conflict", "temporarily_unavailable", "replayed", "at most 12")
    assert [word for word in words if word not in prompt] == []
    assert [tool for tool in ARGUMENTS if f"`{tool}`" not in prompt] == []
    assert [entry for entry in ("`main.py`", "`main.js`") if entry not in prompt] == []


@pytest.fixture(scope="module")
def toolchains(tmp_path_factory):
    """What runs the candidates of a language, staged when it is first asked for."""

    def staged():
        folder = tmp_path_factory.mktemp("node")
        Node().stage(folder)
        return folder

    def make(language):
        toolchain = {"python": Python, "javascript": Node}[language]()
        return toolchain, toolchain.interpreter(staged)

    return make


def task(root, language):
    return Task(
        brief=TaskBrief(name="support-routing", prompt=PACK.info.prompt),
        kind="capability",
        root=root,
        toolchain=PACK.info.languages[language].toolchain,
        pack=PackRef(
            name="support-routing", seeds=(*DECLARED_SEEDS, *OTHER_SEEDS), language=language
        ),
        weights=dict(PACK.info.weights),
        limits=PACK.info.limits,
        sha256="0" * 64,
    )


def lab_of(folder, threads, toolchain, interpreter):
    return PackLab(
        sandbox=Bwrap(),
        toolchain=toolchain,
        interpreter=interpreter,
        pack=PACK,
        work=folder / "work",
        jobs=3,
        threads=threads,
    )


@dataclass(frozen=True)
class Controls:
    """Every control of one language, put to all cases of six seeds."""

    language: str
    gradings: dict

    def of(self, seeds):
        """The gradings as they would be with some of the seeds; a row knows its own."""
        return {
            name: grading.model_copy(
                update={"rows": tuple(row for row in grading.rows if row.seed in seeds)}
            )
            for name, grading in self.gradings.items()
        }

    def audit(self, seeds):
        plan = AuditPlan(
            schema_version=SCHEMA_VERSION,
            batch="b1",
            task=task(Path("/"), self.language).ref,
            mode="full",
            checks=dict(PACK.info.cases),
            weights=dict(PACK.info.weights),
            mutants=tuple(
                PlannedMutant(name=mutant.name, target_dimension=mutant.target)
                for mutant in PACK.info.mutants
            ),
            sandbox="bwrap",
        )
        return assess(plan, self.of(seeds))


@pytest.fixture(scope="module", params=["python", pytest.param("javascript", marks=needs("node"))])
def controls(request, tmp_path_factory, toolchains):
    folder = tmp_path_factory.mktemp(request.param)
    shared = run_folder(tmp_path_factory) / "support-routing-graded"

    def graded(control, lab):
        root = folder / control
        write_tree(root, PACK.control(control, request.param))
        return grade(task(folder, request.param), read_submission(root), lab)

    names = ("reference", "starter", *MUTANTS)
    with CaseThreads() as threads:
        lab = lab_of(folder, threads, *toolchains(request.param))
        return Controls(
            request.param,
            {
                name: once(
                    shared / f"{request.param}-{name}.json", Grading, partial(graded, name, lab)
                )
                for name in names
            },
        )


@pytest.fixture(params=[DECLARED_SEEDS, OTHER_SEEDS], ids=["declared-seeds", "other-seeds"])
def seeds(request):
    return request.param


@pytest.mark.slow
@needs_bwrap
class TestControls:
    """Real processes of every control, run once for each language, whichever worker asks."""

    def test_the_reference_passes_every_case_of_every_seed(self, controls):
        """Nothing that a mutant fails could be credited to its fault otherwise."""
        rows = controls.gradings["reference"].rows

        assert [(row.seed, row.check) for row in rows] == [
            (seed, case) for seed in (*DECLARED_SEEDS, *OTHER_SEEDS) for case in CASES
        ]
        assert {(row.status, row.detail, row.cause) for row in rows} == {("passed", "", None)}

    def test_the_reference_takes_no_more_calls_than_the_work_needs(self, controls):
        """It looks once, does each thing once, and repeats what failed."""
        calls = {
            row.check: [entry["type"] for entry in row.trace].count("tool_call")
            for row in controls.gradings["reference"].rows
        }

        assert calls == dict(zip(CASES, (3, 4, 4, 5), strict=True))

    def test_the_starter_speaks_the_protocol_and_does_none_of_the_work(self, controls, seeds):
        """It shows whoever begins with it how to end, and earns what doing nothing earns."""
        starter = controls.audit(seeds).starter.evaluation

        assert (starter.score, starter.status, starter.resolved) == (0.35, "failed", False)
        assert {(row.status, row.answered) for row in starter.cases} == {("failed", True)}

    @pytest.mark.parametrize("name", MUTANTS)
    def test_a_fault_is_caught_by_the_cases_that_can_see_it(self, controls, seeds, name):
        """Margins, detectors and scores are what follows from the cases, in any language."""
        (mutant,) = (m for m in controls.audit(seeds).mutants if m.name == name)

        target, cases, anywhere, score = MARGINS[name]
        assert (mutant.target_dimension, mutant.class_, mutant.failing_cases) == (
            target,
            "detected",
            cases,
        )
        assert (mutant.detection_margin, mutant.margin_any) == (len(cases), anywhere)
        assert mutant.score == pytest.approx(score, abs=1e-12)
        assert {row.status for row in mutant.evaluation.cases} <= {"passed", "failed"}

    def test_the_audit_hangs_on_two_cases(self, controls, seeds):
        """Exactly one pair keeps the score, and either of the pair is the sole detector of a fault.

        What is left out costs one of seven.
        """
        audit = controls.audit(seeds)

        assert (audit.mutation_score, audit.killed, audit.total, audit.passed) == (1.0, 7, 7, True)
        assert audit.detection.weakest_margin == 1
        assert audit.detection.single_case_detections == ("skip-retry", "new-key-on-retry")
        assert audit.detection.sole_detector_cases == ("retry-before-commit", "retry-after-commit")
        coverage = audit.coverage
        assert coverage.minimal_sets == (("retry-before-commit", "retry-after-commit"),)
        assert coverage.minimal_sets_complete
        assert coverage.leave_one_out == {
            "route-open-ticket": 1.0,
            "close-resolved-ticket": 1.0,
            "retry-before-commit": 6 / 7,
            "retry-after-commit": 6 / 7,
        }
        assert coverage.idle_cases == ()
        assert coverage.untargeted_dimensions == ("protocol",)

    def test_a_fault_is_told_by_the_state_it_left(self, controls):
        """A person who reads a report must see what was wrong without running it again."""
        rows = controls.gradings["new-key-on-retry"].rows
        (row, *_) = [row for row in rows if not row.passed]

        assert row.check == "retry-after-commit"
        assert row.detail.startswith("notes: the notes must be [")
        final = row.trace[-1]
        assert final["type"] == "final_state"
        assert sorted(len(ticket["notes"]) for ticket in final["tickets"].values()) == [1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", pytest.param("javascript", marks=needs("node"))])
def test_the_reference_keeps_its_last_action_for_finishing(tmp_path, toolchains, language):
    """A service that never recovers is no reason to break the protocol as well."""
    _, interpreter = toolchains(language)
    write_tree(tmp_path / "candidate", PACK.control("reference", language))
    (entry,) = (tmp_path / "candidate").iterdir()
    _, session = played(case_of("route-open-ticket"), FINISH)
    failures = [
        {"type": "tool_result", "result": UNAVAILABLE, "remaining_actions": left}
        for left in range(11, 0, -1)
    ]
    lines = "".join(f"{json.dumps(said)}\n" for said in (session.heard[0], *failures))

    done = subprocess.run(
        [interpreter.program, entry], input=lines, capture_output=True, text=True, check=True
    )

    *calls, last = map(json.loads, done.stdout.splitlines())
    assert [action["tool"] for action in calls] == ["get_ticket"] * 11
    assert last == {
        "finish": True,
        "message": "The ticket needs a person: get_ticket: no action is left for it.",
    }


@pytest.mark.slow
@needs_bwrap
def test_good_work_of_a_process_that_dies_is_an_agents_error_with_a_protocol_fault(
    tmp_path, toolchains
):
    """What the tickets say is graded, and what the process did is told beside it."""
    reference = PACK.control("reference", "python")["main.py"]
    root = tmp_path / "candidate"
    write_tree(root, {"main.py": reference + b"    sys.exit(3)\n"})

    with CaseThreads() as threads:
        lab = lab_of(tmp_path, threads, *toolchains("python"))
        grading = grade(task(tmp_path, "python"), read_submission(root), lab)

    verdicts = {**dict.fromkeys(STATE_DIMENSIONS, True), "protocol": False}
    assert [row.verdicts for row in grading.rows] == [verdicts] * len(grading.rows)
    assert {(row.status, row.cause.kind) for row in grading.rows} == {
        ("agent_error", "exit_status")
    }
    assert {tuple(e["type"] for e in row.trace[-3:]) for row in grading.rows} == {
        ("finish", "agent_error", "final_state")
    }
