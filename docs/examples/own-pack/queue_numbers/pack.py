"""The pack queue-numbers: cases from a seed, an oracle in memory, three declared faults."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, cast

from pydantic import JsonValue

from pytest_evalarc.grading.pack import Case, CaseVerdict, Session
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.pack import Language, PackInfo
from pytest_evalarc.packs.controls import Controls, Fault

FOLDER = Path(__file__).parent
REFUSED: JsonObject = {"ok": False}

# The cases: sessions of requests, each ended by `eof` or by `kill`.

End = Literal["eof", "kill"]


class Script(TypedDict):
    """One session of a case."""

    requests: list[JsonValue]
    end: End


def script(*requests: JsonValue, end: End = "eof") -> JsonObject:
    """Return a session as data, for a case's content."""
    return {"requests": list(requests), "end": end}


def take(queue: JsonValue) -> JsonObject:
    """Return the request for the next number of a queue."""
    return {"op": "take", "queue": queue}


def last(queue: JsonValue) -> JsonObject:
    """Return the request for the last number that was taken from a queue."""
    return {"op": "last", "queue": queue}


def scripts(seed: int) -> dict[str, list[JsonValue]]:
    """Return the sessions of each case; a seed varies the queues and what is asked of them."""
    draw = random.Random(seed)
    first, second = (f"queue-{draw.getrandbits(32):08x}" for _ in range(2))
    mixed = [draw.choice([take, last])(draw.choice([first, second, "窓口"])) for _ in range(40)]
    bad: list[JsonValue] = [None, [], {"op": "give", "queue": first}, {"op": "take"}, take(7)]
    return {
        "queues-count-apart": [
            script(take(first), take(second), take(first), last(second), last("never used")),
        ],
        "many-requests": [script(take(first), take(second), *mixed)],
        "bad-requests": [script(take(first), *bad, last(""), last(first))],
        "restart": [script(take(first), take(first)), script(last(first), take(first))],
        "kill": [
            script(take(first), take(second), end="kill"),
            script(take(first), last(second)),
        ],
    }


DIMENSIONS = {
    "queues-count-apart": ("counting",),
    "many-requests": ("counting",),
    "bad-requests": ("refusals",),
    "restart": ("durability",),
    "kill": ("durability",),
}


class Oracle:
    """What the program must answer, from memory: on the host nothing restarts."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def answer(self, request: JsonValue) -> JsonObject:
        """Return the one right reply to a request."""
        match request:
            case {"op": "take" | "last" as op, "queue": str(queue)} if queue:
                self._given[queue] += op == "take"
                return {"ok": True, "number": self._given[queue]}
        return REFUSED


# The candidates: the reference and the starter lie in folders, each fault is an edit of the first.

FAULTS = (
    Fault(
        name="one-counter",
        target="counting",
        description="Counts all queues together.",
        edits={"python": [("numbers.get(queue, 0) + 1", "max(numbers.values(), default=0) + 1")]},
    ),
    Fault(
        name="saved-at-exit",
        target="durability",
        description="Writes the numbers when its input ends, so that a kill loses them.",
        edits={
            "python": [
                (
                    "    save(numbers, path)\n    print(json.dumps(reply), flush=True)\n",
                    "    print(json.dumps(reply), flush=True)\nsave(numbers, path)\n",
                )
            ]
        },
    ),
    Fault(
        name="empty-name-taken",
        target="refusals",
        description="Takes the empty string for the name of a queue.",
        edits={"python": [('isinstance(value, str) and value != ""', "isinstance(value, str)")]},
    ),
)

CONTROLS = Controls(folder=FOLDER / "candidates", entry={"python": "main.py"}, faults=FAULTS)


class QueueNumbers:
    """A dispenser of numbers that must count each queue by itself and forget nothing."""

    info = PackInfo(
        name="queue-numbers",
        version="0.1.0",
        domain="coding",
        code=FOLDER,
        prompt=(FOLDER / "TASK.md").read_text("utf-8"),
        weights={"counting": 0.5, "refusals": 0.2, "durability": 0.3},
        cases=DIMENSIONS,
        mutants=[fault.mutant for fault in FAULTS],
        languages={
            "python": Language(
                toolchain="python",
                command=(
                    *("{python}", "-I", "-S", "-B"),
                    *("{workspace}/main.py", "{state}/numbers.json"),
                ),
            )
        },
    )

    def cases(self, seed: int) -> Sequence[Case]:
        """Return the cases of a seed, in declared order."""
        return [
            Case(id=name, seed=seed, content={"sessions": sessions})
            for name, sessions in scripts(seed).items()
        ]

    def run(self, case: Case, open_session: Callable[[], Session]) -> CaseVerdict:
        """Compare every reply with the oracle's; the first wrong one decides."""
        (dimension,) = DIMENSIONS[case.id]
        oracle = Oracle()
        for played in cast("list[Script]", case.content["sessions"]):
            session = open_session()
            for request in played["requests"]:
                right, reply = oracle.answer(request), session.ask(request)
                if canonical(reply) != canonical(right):
                    detail = f"{canonical(request)} must give {canonical(right)}"
                    return CaseVerdict(verdicts={dimension: False}, detail=detail)
            session.end(played["end"])
        return CaseVerdict(verdicts={dimension: True})

    def control(self, name: str, language: str) -> Mapping[str, bytes]:
        """Return the files of the reference, the starter or a fault."""
        return CONTROLS.files(name, language)
