"""An audit as a table: declared faults by cases, and what each case is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pytest_evalarc.model.audit import Audit, MutantAudit
from pytest_evalarc.model.grading import CheckRow

Mark = Literal["caught", "elsewhere", "crashed", "passed", "not run", "invalid"]


@dataclass(frozen=True, kw_only=True)
class HeatRow:
    """One declared fault, with what each case saw of it."""

    mutant: MutantAudit
    marks: tuple[Mark, ...]
    """In the order of the audit's checks."""


@dataclass(frozen=True, kw_only=True)
class Heat:
    """The table of an audit."""

    cases: tuple[str, ...]
    rows: tuple[HeatRow, ...]


def heat(audit: Audit) -> Heat:
    """Return which case caught which declared fault."""
    cases = tuple(audit.checks)
    return Heat(
        cases=cases,
        rows=tuple(
            HeatRow(mutant=mutant, marks=tuple(_marks(mutant, cases))) for mutant in audit.mutants
        ),
    )


def _marks(mutant: MutantAudit, cases: tuple[str, ...]) -> Iterator[Mark]:
    seen = mutant.evaluation.cases if mutant.evaluation else ()
    for case in cases:
        rows = [row for row in seen if row.check == case]
        yield "caught" if case in mutant.failing_cases else _mark(rows)


def _mark(rows: list[CheckRow]) -> Mark:
    """Return what a case saw that did not catch the fault in its target dimension."""
    statuses = {row.status for row in rows}
    if "environment_error" in statuses:
        return "invalid"
    if "failed" in statuses:
        return "elsewhere"
    if "agent_error" in statuses:
        return "crashed"
    return "passed" if statuses == {"passed"} else "not run"
