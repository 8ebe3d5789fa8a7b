"""`checks/`, `[checks.<id>]` and `weights`: what a submission is judged by."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.errors import nearest
from pytest_evalarc.files.manifest import EntryType
from pytest_evalarc.files.text import in_line
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import MOST_SECONDS, Check
from pytest_evalarc.tasks.checkfiles import CheckFiles
from pytest_evalarc.tasks.fields import NAME_HINT, Table, described, twins
from pytest_evalarc.tasks.keys import CHECK
from pytest_evalarc.tasks.names import is_reserved_item
from pytest_evalarc.tasks.problems import Problems
from pytest_evalarc.tasks.trees import read_tree

_SUM_TOLERANCE = 1e-9


class Checks(NamedTuple):
    """The hidden checks of a task."""

    rows: tuple[Check, ...]
    """One for each file of `checks/`, sorted by id."""
    is_settled: bool
    """Whether their dimensions are what the author means; if not, that was told."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """All dimensions, in the order of the checks."""
        return tuple(dict.fromkeys(name for check in self.rows for name in check.dimensions))


def read_checks(top: Table, folder: Path, kind: CheckFiles, *, deadline_s: float) -> Checks:
    """Return the hidden checks of a task.

    Args:
        top: The task's task.toml.
        folder: The task's folder.
        kind: How the task's toolchain keeps its checks.
        deadline_s: What bounds a check that names no deadline.
    """
    files = _files(folder / "checks", kind, top.problems)
    tables = top.table("checks")
    is_settled = True
    for name, table in tables.data.items():
        dimension = table.get("dimension", name) if isinstance(table, dict) else None
        is_settled &= name in files and isinstance(dimension, str) and is_name(dimension)
        if name not in files:
            hint = nearest(name, tuple(files)) or "add its file to checks/"
            tables.tell(name, "has no file in checks/", hint)
    rows = tuple(
        _check(tables.table(name), name, file, deadline_s) for name, file in sorted(files.items())
    )
    return Checks(rows, is_settled)


def read_weights(top: Table, checks: Checks) -> dict[str, float]:
    """Return the share of each dimension, equal by default; empty without dimensions.

    Args:
        top: The task's task.toml.
        checks: The task's checks, which give the dimensions.
    """
    dimensions = checks.dimensions
    table = top.table("weights")
    if "weights" not in top:
        return dict.fromkeys(dimensions, 1 / len(dimensions)) if dimensions else {}
    weights = {name: table.number(name, math.nan) for name in table.data}
    missing = [name for name in dimensions if name not in weights] if checks.is_settled else []
    for name in missing:
        top.tell("weights", f"has no weight for the dimension {described(name)}", "add one")
    for name in weights:
        if checks.is_settled and name not in dimensions:
            table.tell(name, "is no dimension of a check", nearest(name, dimensions))
    total = math.fsum(weights.values())
    # A weight that does not fit is NaN here, and then no sum is told beside it.
    if not missing and abs(total - 1) > _SUM_TOLERANCE:
        top.tell("weights", f"sum to {total:.12g}, not to 1", "change them so that they do")
    return weights


def _check(table: Table, name: str, file: str, deadline_s: float) -> Check:
    table.refuse_unknown(CHECK)
    return Check(
        id=name,
        dimensions=(table.name("dimension", name),),
        deadline_s=table.number("deadline", deadline_s, most=MOST_SECONDS),
        file=f"checks/{file}",
        description=table.text("description", empty=True),
    )


def _files(folder: Path, kind: CheckFiles, problems: Problems) -> dict[str, str]:
    """Return file name by check id; a file that is no check is told and left out."""
    files: dict[str, str] = {}
    if not folder.is_dir():
        return files
    for entry in read_tree(folder, problems, caches=False).entries:
        path = folder / entry.path
        if entry.type is EntryType.DIR:
            problems.at_path(path, "is a folder; checks/ holds one file per check", "move it out")
        if entry.type is not EntryType.FILE or "/" in entry.path:
            continue
        name = kind.id_of(entry.path)
        if name is None:
            problems.at_path(path, "is no check", f"a check's file is `<id>{kind.suffix}`")
        elif not is_name(name):
            problem = f"would be the check {described(name)}, which is no name"
            problems.at_path(path, problem, NAME_HINT)
        elif name in files:
            problems.at_path(path, f"is the check {name}, as {files[name]} is", "rename one")
        else:
            if is_reserved_item(name):
                problem = f"would be the check {described(name)}, which is reserved"
                problems.at_path(path, problem, "choose another name")
            files[name] = entry.path
            if flaw := kind.flaw(path.read_bytes()):
                problem = in_line(flaw.problem, limit=400)
                problems.at_path(path, problem, flaw.hint, line=flaw.line)
    for twin, name in twins(files):
        if files[twin].casefold() != files[name].casefold():
            problems.at_path(folder / files[name], f"collides with {files[twin]}", "rename one")
    return files
