"""Which faults are injected: all of them, or the few that tell most."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from tests.faults.inject import CHANGES, Call, Fault, numbered

ERRORS = (
    # A full disk stays full, and refuses names as it refuses content.
    (("create", "write", "mkdir"), errno.ENOSPC, True),
    (("write",), errno.EIO, False),
    (("fsync",), errno.EIO, False),
    (("rename",), errno.EIO, False),
    (("create",), errno.EMFILE, False),
    (("fork",), errno.EAGAIN, True),
)
"""Kinds of calls, what they return, and whether every later one returns it too."""


def every(calls: Sequence[Call]) -> Iterator[Fault]:
    """Yield a kill before each call of an undisturbed session, and each error at each call."""
    counted = [call for call in calls if call.kind in CHANGES]
    for number in range(1, len(counted) + 1):
        yield Fault(at=number)
    for kinds, error, lasting in ERRORS:
        for number in range(1, sum(call.kind in kinds for call in calls) + 1):
            yield Fault(at=number, kinds=kinds, error=error, lasting=lasting)


def telling(calls: Sequence[Call]) -> dict[str, Fault]:
    """Return the few faults of an undisturbed session that tell most, by what they hit.

    A process is killed before a document takes its place and right after it has, since between
    the two lies all that resuming rests on.
    """
    changes = [call for call in calls if call.kind in CHANGES]
    marks = numbered(changes, "rename", ".result.json.begun")
    results = numbered(changes, "rename", "/result.json")
    forks = numbered(changes, "fork", "")
    documents = {
        "plan": numbered(changes, "rename", "/plan.json")[0],
        "first-mark": marks[0],
        "first-result": results[0],
        "last-result": results[-1],
        "benchmark": numbered(changes, "rename", "/benchmark.json")[0],
        "summary": numbered(changes, "rename", ".summary.json")[0],
    }
    killed = {
        "first-call": 1,
        "last-call": len(changes),
        "latest": numbered(changes, "rename", "/latest")[0],
        "last-fork": forks[-1],
        "evidence": numbered(changes, "write", "/transcript.jsonl")[-1],
        "submission": numbered(changes, "mkdir", "/submission/src")[-1],
        "last-mark-removed": numbered(changes, "unlink", ".result.json.begun")[-1],
        "trajectory": numbered(changes, "rename", "/trajectory.json")[-1],
    }
    for name, number in documents.items():
        killed |= {f"before-{name}": number, f"after-{name}": number + 1}
    return {name: _before(changes, number) for name, number in killed.items()} | _failing(calls)


def _before(changes: Sequence[Call], number: int) -> Fault:
    """Return the kill before a call, found among those of its own kind.

    A stream comes in one piece or in two, so the number of all calls before it is not the same in
    every session.
    """
    kind = changes[number - 1].kind
    same = sum(call.kind == kind for call in changes[:number])
    return Fault(at=same, kinds=(kind,))


def _failing(calls: Sequence[Call]) -> dict[str, Fault]:
    """Return one call that fails in each of the ways there are, in the midst of the session."""

    def at(
        kinds: tuple[str, ...], name: str, error: int, *, lasting: bool = False, last: bool = False
    ) -> Fault:
        counted = [call for call in calls if call.kind in kinds]
        numbers = [i for i, call in enumerate(counted, 1) if call.path.endswith(name)]
        return Fault(at=numbers[-int(last)], kinds=kinds, error=error, lasting=lasting)

    full = ("create", "write", "mkdir")
    return {
        "full-before-all": Fault(at=1, kinds=full, error=errno.ENOSPC, lasting=True),
        "full-in-the-session": at(full, "/transcript.jsonl", errno.ENOSPC, lasting=True),
        "full-at-the-submission": at(full, "/submission", errno.ENOSPC, lasting=True),
        "no-rename-of-the-plan": at(("rename",), "/plan.json", errno.EIO),
        "no-rename-of-a-result": at(("rename",), "/result.json", errno.EIO),
        "no-rename-of-the-benchmark": at(("rename",), "/benchmark.json", errno.EIO),
        "no-rename-in-the-removal": at(("rename",), "-0", errno.EIO, last=True),
        "no-rename-of-the-submission": at(("rename",), "/submission.json", errno.EIO),
        "no-sync": at(("fsync",), "/night", errno.EIO),
        "no-descriptor": at(("create",), "/transcript.jsonl", errno.EMFILE),
        "no-process-at-all": Fault(at=1, kinds=("fork",), error=errno.EAGAIN, lasting=True),
        "no-process": Fault(at=5, kinds=("fork",), error=errno.EAGAIN, lasting=True),
    }
