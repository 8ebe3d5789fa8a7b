"""A session that is killed, or whose calls fail, at the system calls that tell most."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.__main__ import document
from tests.faults.inject import CHANGES, Call, Fault, Faulty, Outcome, Seen, inject
from tests.faults.plan import every, telling
from tests.needs import needs, needs_bwrap

NAMES = (
    *("first-call", "last-call", "latest", "last-fork", "evidence", "submission"),
    *("last-mark-removed", "trajectory"),
    *("before-plan", "after-plan", "before-first-mark", "after-first-mark"),
    *("before-first-result", "after-first-result", "before-last-result", "after-last-result"),
    *("before-benchmark", "after-benchmark", "before-summary", "after-summary"),
    *("full-before-all", "full-in-the-session", "full-at-the-submission"),
    *("no-rename-of-the-plan", "no-rename-of-a-result", "no-rename-of-the-benchmark"),
    *("no-rename-of-the-submission", "no-rename-in-the-removal"),
    *("no-sync", "no-descriptor", "no-process", "no-process-at-all"),
)
injects = (needs("cc"), needs_bwrap, pytest.mark.slow)
CALLS = [
    Call(number, 1, kind, path)
    for number, (kind, path) in enumerate(
        [("mkdir", "/r"), ("create", "/r/a"), ("write", "/r/a"), ("fsync", "/r/a"), ("fork", "")], 1
    )
]


def marked(name: str) -> pytest.param:
    return pytest.param(name, marks=injects)


@pytest.mark.parametrize("name", [marked(name) for name in NAMES])
def test_a_fault_loses_nothing_and_the_batch_can_be_gone_on_with(
    name: str, faulty: Faulty, undisturbed: Seen
) -> None:
    """What was finished stays to the byte, nothing is run twice, and nothing is left."""
    outcome = inject(faulty, telling(undisturbed.calls)[name])

    assert outcome.broken == []
    assert outcome.fired > 0


@pytest.mark.needs("cc")
@needs_bwrap
@pytest.mark.slow
def test_the_named_faults_are_all_there_are(undisturbed: Seen) -> None:
    """One that is added and not named here would never be injected."""
    assert sorted(telling(undisturbed.calls)) == sorted(NAMES)


@pytest.mark.needs("cc")
@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("name", ["before-first-result", "after-first-mark"])
def test_a_worker_that_is_killed_loses_its_trial_alone(
    name: str, faulty: Faulty, undisturbed: Seen
) -> None:
    """The controller starts another worker, and the lost trial is counted as cancelled."""
    fault = telling(undisturbed.calls)[name]

    outcome = inject(faulty, replace(fault, workers=2))

    assert outcome.broken == []
    assert outcome.fired == 1


def test_every_call_is_killed_before_and_fails_in_each_way_it_can() -> None:
    """The long form leaves none out."""
    faults = list(every(CALLS))

    assert [fault.at for fault in faults if fault.error is None] == [1, 2, 3, 4, 5]
    assert [(fault.kinds, fault.at, fault.error) for fault in faults if fault.error] == [
        *((("create", "write", "mkdir"), number, errno.ENOSPC) for number in (1, 2, 3)),
        (("write",), 1, errno.EIO),
        (("fsync",), 1, errno.EIO),
        (("create",), 1, errno.EMFILE),
        (("fork",), 1, errno.EAGAIN),
    ]


def test_what_became_of_the_faults_is_counted() -> None:
    """A fault that was never reached has held no promise."""
    outcomes = [
        Outcome(fault=Fault(at=1), fired=1, status=-9),
        Outcome(fault=Fault(at=2), fired=1, status=-9, broken=["a process is left"]),
        Outcome(fault=Fault(at=9, kinds=("write",), error=errno.EIO), fired=0, status=0),
    ]

    told = document(CALLS, outcomes)

    assert json.loads(json.dumps(told)) == {
        "schema_version": "1",
        "calls": {"create": 1, "fork": 1, "fsync": 1, "mkdir": 1, "write": 1},
        "injected": 2,
        "not_reached": 1,
        "by_fault": {"SIGKILL before a call": 2},
        "held": 1,
        "broken": [
            {"fault": f"SIGKILL at {'/'.join(CHANGES)} call 2", "problems": ["a process is left"]}
        ],
    }


@pytest.mark.needs("cc")
@pytest.mark.slow
def test_the_library_really_fails_the_call_that_is_asked(faulty: Faulty, tmp_path: Path) -> None:
    """Faults that never come would let every promise hold."""
    seen = faulty.session(Fault(at=1, kinds=("mkdir",), error=errno.ENOSPC, lasting=True))

    assert seen.fired > 0
    assert [call.number for call in seen.calls] == list(range(1, len(seen.calls) + 1))
    assert {call.kind for call in seen.calls} == {"mkdir"}
    assert "No space left on device" in seen.output
    assert not faulty.results.exists()
