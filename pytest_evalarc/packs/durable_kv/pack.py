"""The pack durable-kv: its cases against a dictionary, its references, its declared faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.pack import Case, CaseVerdict, PackInfo, Session
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.task import Edit, Mutant
from pytest_evalarc.packs.controls import read_control
from pytest_evalarc.packs.durable_kv.cases import DIMENSIONS, Script, cases
from pytest_evalarc.packs.durable_kv.oracle import Oracle

CANDIDATES = Path(__file__).parent / "candidates"
SHOWN = 300
"""Characters of a reply that a detail quotes."""


def _mutant(name: str, target: str, description: str, *edits: tuple[str, str]) -> Mutant:
    return Mutant(
        name=name,
        target=target,
        description=description,
        edits=tuple(
            Edit(file="main.py", find=find, replace=replacement) for find, replacement in edits
        ),
    )


MUTANTS = (
    _mutant(
        "memory-only",
        "persistence",
        "Keeps everything in memory, so that a restart forgets it.",
        ("sqlite3.connect(path)", 'sqlite3.connect(":memory:")'),
    ),
    _mutant(
        "cas-always-wins",
        "compare_swap",
        "Swaps whatever value is there.",
        ("swapped = current == canonical(expected)", "swapped = True"),
    ),
    _mutant(
        "boolean-equals-one",
        "compare_swap",
        "Compares by the language's equality, in which true is 1.",
        (
            "swapped = current == canonical(expected)",
            "swapped = current is not None and json.loads(current) == expected",
        ),
    ),
    _mutant(
        "commit-on-exit",
        "crash_recovery",
        "Commits at a clean exit alone, so that a kill forgets what was acknowledged.",
        ("        database.commit()\n", ""),
        ("    database.close()\n", "    database.commit()\n    database.close()\n"),
    ),
)


class DurableKv:
    """A key-value service that must remember what it acknowledged, across restarts and kills.

    The pack grows to its full list of cases. Until then the weights are the shares of the
    dimensions that its cases judge, scaled to a sum of 1.
    """

    info = PackInfo(
        name="durable-kv",
        version="0.1.0",
        domain="coding",
        weights={"compare_swap": 0.375, "persistence": 0.375, "crash_recovery": 0.25},
        cases=DIMENSIONS,
        mutants=MUTANTS,
        command=("{python}", "-I", "-B", "{workspace}/main.py", "{state}/store.db"),
    )

    def cases(self, seed: int) -> Sequence[Case]:
        """Return the cases of a seed, in declared order."""
        return cases(seed)

    def run(self, case: Case, open_session: Callable[[], Session]) -> CaseVerdict:
        """Compare every reply with the oracle's; the first difference decides."""
        (dimension,) = DIMENSIONS[case.id]
        oracle = Oracle()
        for number, script in enumerate(cast("list[Script]", case.content["sessions"]), start=1):
            session = open_session()
            for request in script["requests"]:
                expected, reply = oracle.answer(request), session.ask(request)
                if canonical(reply) != canonical(expected):
                    detail = _difference(number, request, expected, reply)
                    return CaseVerdict(verdicts={dimension: False}, detail=detail)
            session.end(script["end"])
        return CaseVerdict(verdicts={dimension: True})

    def control(self, name: str, language: str) -> Mapping[str, bytes]:
        """Return the files of a control; see `read_control`."""
        return read_control(CANDIDATES, name, language, MUTANTS)


def _difference(number: int, request: JsonValue, expected: JsonValue, reply: JsonValue) -> str:
    asked, wanted, got = (
        printable(canonical(value), limit=SHOWN) for value in (request, expected, reply)
    )
    return f"session {number}: {asked} must give {wanted}, not {got}"
