"""The pack durable-kv: its cases against a dictionary, its references, its declared faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.pack import Case, CaseVerdict, Session
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.packs.controls import Controls, two_languages
from pytest_evalarc.packs.durable_kv.cases import DIMENSIONS, Script, cases
from pytest_evalarc.packs.durable_kv.faults import FAULTS
from pytest_evalarc.packs.durable_kv.oracle import Oracle

FOLDER = Path(__file__).parent
SHOWN = 300
"""Characters of a reply that a detail quotes."""

CONTROLS = Controls(
    folder=FOLDER / "candidates",
    faults=FAULTS,
)


class DurableKv:
    """A key-value service that must remember what it acknowledged, across restarts and kills."""

    info = PackInfo(
        name="durable-kv",
        version="0.1.0",
        domain="coding",
        code=FOLDER,
        prompt=(FOLDER / "TASK.md").read_text("utf-8"),
        weights={
            "basic": 0.25,
            "validation": 0.15,
            "transactions": 0.20,
            "compare_swap": 0.15,
            "persistence": 0.15,
            "crash_recovery": 0.10,
        },
        cases=DIMENSIONS,
        mutants=[fault.mutant for fault in FAULTS],
        languages=two_languages(python=("{state}/store.db",), javascript=("{state}/store.json",)),
    )

    def cases(self, seed: int) -> Sequence[Case]:
        """Return the cases of a seed, in declared order."""
        return cases(seed)

    def run(self, case: Case, open_session: Callable[[], Session]) -> CaseVerdict:
        """Compare every reply with the oracle's; the first difference decides."""
        (dimension,) = self.info.cases[case.id]
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
        """Return the files of a control; see `Controls.files`."""
        return CONTROLS.files(name, language)


def _difference(number: int, request: JsonValue, expected: JsonValue, reply: JsonValue) -> str:
    asked, wanted, got = (
        printable(canonical(value), limit=SHOWN) for value in (request, expected, reply)
    )
    return f"session {number}: {asked} must give {wanted}, not {got}"
