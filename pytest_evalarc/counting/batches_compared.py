"""What changed between measurements of tasks: batches, audits and what was imported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pytest_evalarc.counting.differences import differences, shown
from pytest_evalarc.counting.intervals import newcombe_difference
from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.across import FIELDS
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.comparison import BatchComparison, Change, ComparedRow, Tally
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.model.measured import Measured, MeasuredRow

_DECIMALS = 8
_UNJUDGED = "judged: "
"""How the reason of a row begins that its tallies give, and no condition."""
_Key: TypeAlias = tuple[str, str, str | None]
_RowKey: TypeAlias = tuple[str | None, str, str]


class _Mismatch(NamedTuple):
    """Why two measurements are not compared."""

    field: str
    told: str

    def __str__(self) -> str:
        return f"{self.field}: {self.told}"


_AS_THEY_ARE: Mapping[str, str] = {}


def compare_batches(
    baseline: Sequence[Measured],
    current: Sequence[Measured],
    *,
    across: Collection[str] = (),
    only_current: bool = False,
) -> BatchComparison:
    """Return what became better and worse, row by row.

    A measurement of one side is compared with that of the same task and client on the other. An
    audit judges a task's checks, and so compares across versions of the task: there, a mutant is
    compared when it is the same fault by digest.

    Args:
        baseline: What is compared with; at most one measurement of each task and client.
        current: What it is compared with that.
        across: Conditions that may differ, each a word of `FIELDS`. With `client`, different
            clients are compared with each other; with `treatment`, the configurations with one
            treatment with those of the other, by the names of the current side.
        only_current: Leave out what the current side did not measure at all, rather than call it
            removed: what is accepted in a repository is more than one run measures.

    Returns:
        Rows in the order of the current side, then what is in the baseline alone.

    Raises:
        UsageError: A side has two measurements of one task and client.
    """
    by_client = "client" not in across
    before = _by_key(baseline, "the baseline", by_client=by_client)
    after = _by_key(current, "the current side", by_client=by_client)
    keys = [key for key in dict.fromkeys((*after, *before)) if key in after or not only_current]
    rows = tuple(
        row for key in keys for row in _pair(before.get(key), after.get(key), across=across)
    )
    return _counted(
        rows,
        baseline=tuple(_told(found) for key, found in before.items() if key in keys),
        current=tuple(map(_told, after.values())),
        across=across,
    )


def compared_again(document: BatchComparison) -> BatchComparison:
    """Return a comparison as the tallies of its rows give it.

    Why a row is incomparable is believed where its tallies do not show it: what the two
    measurements differ in is in neither of them.
    """
    rows = tuple(map(_judged, document.rows))
    return _counted(
        rows, baseline=document.baseline, current=document.current, across=document.across
    )


def _counted(
    rows: tuple[ComparedRow, ...],
    *,
    baseline: tuple[str, ...],
    current: tuple[str, ...],
    across: Collection[str],
) -> BatchComparison:
    counts = {change: sum(row.change is change for row in rows) for change in Change}
    return BatchComparison(
        schema_version=SCHEMA_VERSION,
        baseline=baseline,
        current=current,
        across=tuple(name for name in FIELDS if name in across),
        changes=counts,
        rows=rows,
        interpretation=_interpret(counts),
    )


def _by_key(found: Iterable[Measured], side: str, *, by_client: bool) -> Mapping[_Key, Measured]:
    measured: dict[_Key, Measured] = {}
    for one in found:
        kind = "audit" if one.kind == "audit" else "trials"
        key = (kind, one.task, one.client if by_client else None)
        if key in measured:
            where, other = _told(one), _told(measured[key])
            hint = "name one of them"
            raise UsageError(where, f"stands beside {other} in {side}", hint)
        measured[key] = one
    return measured


def _told(measured: Measured) -> str:
    return f"{measured.task}/{measured.client or 'audit'}/{measured.batch}"


def _pair(
    before: Measured | None, after: Measured | None, *, across: Collection[str]
) -> Iterator[ComparedRow]:
    """Yield the rows of one task and client."""
    renamed = _renamed(before, after) if "treatment" in across else {}
    one, two = _rows(before, renamed=renamed), _rows(after)
    known = after or before
    mismatch = _differs(before, after, across=across) if before and after else None
    for key in dict.fromkeys((*two, *one)):
        yield _compared(known, one.get(key), two.get(key), mismatch=mismatch)


def _renamed(before: Measured | None, after: Measured | None) -> Mapping[str, str]:
    """Return what the baseline's configurations are called by the current side's treatment."""
    one = before.conditions.treatment if before else None
    two = after.conditions.treatment if after else None
    if one is None or two is None:
        return {}
    return {f"{side}-{one}": f"{side}-{two}" for side in ("with", "without")}


def _rows(
    measured: Measured | None, *, renamed: Mapping[str, str] = _AS_THEY_ARE
) -> Mapping[_RowKey, MeasuredRow]:
    rows = measured.rows if measured else ()
    return {
        (renamed.get(row.configuration or "", row.configuration), row.part, row.name): row
        for row in rows
    }


def _differs(before: Measured, after: Measured, *, across: Collection[str]) -> _Mismatch | None:
    """Return why two measurements are not compared; None where they were made alike."""
    sides = (("the baseline", before), ("the current side", after))
    for name, side in sides:
        if side.selection == "partial":
            return _Mismatch("selection", f"is partial in {name}, whose rates are not compared")
    if "isolation" not in across:
        for name, side in sides:
            level = side.conditions.isolation
            if level != "enforced" and side.kind != "imported":
                told = f"is {shown(level)} in {name}, and only enforced is compared"
                return _Mismatch("isolation", told)
    allowed = {field for word in across for field in FIELDS[word]}
    if after.kind == "audit":
        allowed.add("task")
    plain = [side.conditions.model_dump(mode="json", exclude=allowed) for _, side in sides]
    for field, first, second in differences(*plain):
        told = f"is {shown(first)} in the baseline and {shown(second)} now"
        return _Mismatch(field, told)
    return None


def _compared(
    known: Measured | None,
    before: MeasuredRow | None,
    after: MeasuredRow | None,
    *,
    mismatch: _Mismatch | None,
) -> ComparedRow:
    row = after or before
    assert known is not None and row is not None, "a row comes from one side at least"
    # A task that changed may have gained and lost checks; under any other mismatch a row that is
    # not there says nothing, as in a batch that was cut off.
    if mismatch is not None and mismatch.field == "task" and (before is None or after is None):
        mismatch = None
    tallies = (_tally(before), _tally(after))
    reason = str(mismatch) if mismatch else _unjudged(*tallies) or _other_fault(before, after)
    return _judged(
        ComparedRow(
            task=known.task,
            client=known.client,
            configuration=row.configuration,
            part=row.part,
            name=row.name,
            change=Change.INCOMPARABLE,
            before=tallies[0],
            after=tallies[1],
            reason=reason,
        )
    )


def _judged(row: ComparedRow) -> ComparedRow:
    """Return a row with what its tallies and its reason give."""
    reason = row.reason
    if reason is None or reason.startswith(_UNJUDGED):
        reason = _unjudged(row.before, row.after)
    change = Change.INCOMPARABLE if reason else _change(row.before, row.after)
    sure = None if reason or row.part == "control" else _difference(row.before, row.after)
    return row.model_copy(update={"change": change, "difference_ci95": sure, "reason": reason})


def _unjudged(before: Tally | None, after: Tally | None) -> str | None:
    if before is None or after is None:
        return None
    for name, tally in (("the baseline", before), ("the current side", after)):
        if tally.judged == 0:
            return f"{_UNJUDGED}is 0 in {name}, so nothing is known"
    return None


def _other_fault(before: MeasuredRow | None, after: MeasuredRow | None) -> str | None:
    """Return why a mutant that both sides have is not compared, where it is not the same fault."""
    if before is None or after is None or before.fault_sha256 == after.fault_sha256:
        return None
    faults = (shown(before.fault_sha256), shown(after.fault_sha256))
    return f"fault_sha256: is {faults[0]} in the baseline and {faults[1]} now"


def _change(before: Tally | None, after: Tally | None) -> Change:
    if before is None:
        return Change.NEWLY_COVERED
    if after is None:
        return Change.REMOVED
    # Products, since fractions of equal value may differ as floats.
    fell = after.passed * before.judged - before.passed * after.judged
    if fell < 0:
        return Change.LESS_RELIABLE if after.passed else Change.REGRESSED
    if fell > 0:
        return Change.IMPROVED
    return _by_margin(before.margin, after.margin)


def _by_margin(before: int | None, after: int | None) -> Change:
    if before is None or after is None or before == after:
        return Change.UNCHANGED
    return Change.LESS_RELIABLE if after < before else Change.IMPROVED


def _tally(row: MeasuredRow | None) -> Tally | None:
    if row is None:
        return None
    return Tally(passed=row.passed, judged=row.judged, margin=row.margin)


def _difference(before: Tally | None, after: Tally | None) -> Interval | None:
    """Return how sure the difference of two rates is."""
    if before is None or after is None:
        return None
    found = newcombe_difference(after.passed, after.judged, before.passed, before.judged)
    return found.rounded(_DECIMALS)


def _interpret(counts: Mapping[Change, int]) -> str:
    told = ", ".join(
        f"{count} {change.value.replace('_', ' ')}" for change, count in counts.items() if count
    )
    return (
        f"Of the rows: {told or 'none'}. A rate over few trials moves by chance: its difference is "
        "told apart from none only where the interval beside it leaves out 0, and no improvement "
        "makes up for a regression."
    )
