"""What a submission is built with, taken from and judged by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.model.task import Check, Deadlines, Expected, Mutant, PackRef
from pytest_evalarc.tasks.checkfiles import CheckFiles, check_files
from pytest_evalarc.tasks.checks import read_checks, read_weights
from pytest_evalarc.tasks.fields import Table, described, twins
from pytest_evalarc.tasks.keys import OF_THE_PACK
from pytest_evalarc.tasks.mutants import Reference, read_mutants
from pytest_evalarc.tasks.problems import Problems
from pytest_evalarc.tasks.trees import (
    clashes,
    covers,
    normalised,
    outside,
    read_tree,
    relative_flaw,
)


class Graded(NamedTuple):
    """How a task's submissions are graded."""

    toolchain: str = ""
    editable: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    weights: Mapping[str, float] = {}
    mutants: tuple[Mutant, ...] = ()
    has_solution: bool = False


def graded_by_pack(
    top: Table, folder: Path, pack: PackRef, info: PackInfo | None, *, deadlines: Deadlines
) -> Graded:
    """Return how a pack task is judged: by its pack, so nothing else may say it.

    Args:
        top: The task's task.toml.
        folder: The task's folder.
        pack: What `[pack]` says.
        info: The pack; None when there is none of that name, which was told.
        deadlines: Of the task; `check` bounds each case.
    """
    for name in OF_THE_PACK:
        if name in top:
            top.tell(name, "stands beside [pack], which brings its own", "remove one of them")
    for name in ("checks", "starter", "solution"):
        if (folder / name).exists():
            top.problems.at_path(folder / name, "stands beside [pack]", "remove one of them")
    if info is None or pack.language not in info.languages:
        return Graded()
    return Graded(
        toolchain=info.languages[pack.language].toolchain,
        checks=tuple(
            Check(id=case, dimensions=dimensions, deadline_s=deadlines.check)
            for case, dimensions in info.cases.items()
        ),
        weights=info.weights,
        mutants=tuple(info.mutants),
        has_solution=True,
    )


def read_graded(
    top: Table,
    folder: Path,
    *,
    root: Path,
    toolchains: Collection[str],
    deadlines: Deadlines,
    expected: Expected,
) -> Graded:
    """Return how a file task is judged.

    Args:
        top: The task's task.toml.
        folder: The task's folder.
        root: The project root.
        toolchains: The names that `toolchain` may have.
        deadlines: Of the task; one bounds checks that name none.
        expected: Of the task; with nothing expected, something must be checked.
    """
    toolchain = ""
    if top.require("toolchain", f"write one of {', '.join(toolchains)}"):
        toolchain = top.choice("toolchain", toolchains) or ""
    kind = check_files(toolchain)
    checks = read_checks(top, folder, kind, deadline_s=deadlines.check)
    if not checks.rows and expected.is_empty:
        hint = "add one file per hidden test; only a task with [expected] may do without"
        top.problems.at_path(folder / "checks", "holds no check", hint)
    for twin, name in twins(checks.dimensions):
        problem = f"has the dimensions {described(twin)} and {described(name)}"
        top.tell("checks", problem, "names that differ by case alone are one")
    editable = _read_editable(top)
    _check_places(top, editable, kind)
    _check_build(top, editable, kind.build_paths(folder / "starter"))
    has_solution = (folder / "solution").is_dir()
    if "editable" not in top and (checks.rows or has_solution):
        top.tell("editable", "is missing, so nothing of a submission is taken", "list its paths")
    if "mutants" in top and not has_solution:
        problem = "stand without solution/, so there is no reference to change"
        top.tell("mutants", problem, "add solution/")
    bounds = _bounds(top, editable)
    reference = _read_reference(top.problems, folder, bounds)
    return Graded(
        toolchain=toolchain,
        editable=editable,
        checks=checks.rows,
        weights=read_weights(top, checks),
        mutants=read_mutants(
            top,
            folder=folder,
            root=root,
            reference=reference,
            editable=bounds,
            dimensions=checks.dimensions if checks.is_settled else None,
        ),
        has_solution=reference is not None,
    )


def _read_editable(top: Table) -> tuple[str, ...]:
    paths: list[str] = []
    for path in top.texts("editable"):
        if flaw := relative_flaw(path):
            problem = f"names {described(path)}, which {flaw}"
            top.tell("editable", problem, "name paths inside the project")
        else:
            paths.append(normalised(path))
    return tuple(paths)


def _bounds(top: Table, editable: tuple[str, ...]) -> tuple[str, ...]:
    """Return where files of the reference may lie: anywhere, if that was told to be unclear."""
    value = top.data.get("editable")
    is_clear = isinstance(value, list) and len(value) == len(editable)
    return editable if is_clear else (".",)


def _check_places(top: Table, editable: Iterable[str], kind: CheckFiles) -> None:
    for path in editable:
        for place in kind.places:
            if covers(path, place) or covers(place, path):
                problem = f"names {described(path)}, which covers {place}/, where checks are put"
                top.tell("editable", problem, "name narrower paths")


def _check_build(top: Table, editable: Iterable[str], build_paths: Iterable[str]) -> None:
    decisive = tuple(build_paths)
    for path in editable:
        for place in decisive:
            if covers(path, place) or covers(place, path):
                problem = f"names {described(path)}, so it decides what a build runs: {place}"
                top.tell("editable", problem, "name paths of sources alone")
                break


def _read_reference(
    problems: Problems, folder: Path, editable: Collection[str]
) -> Reference | None:
    starter, solution = folder / "starter", folder / "solution"
    if not starter.is_dir():
        problems.at_path(starter, "is missing", "add the project that a trial starts from")
        return None
    base = read_tree(starter, problems, caches=True)
    if not solution.is_dir():
        return None
    over = read_tree(solution, problems, caches=False)
    if not over.files:
        problems.at_path(solution, "holds no file", "add the reference's files, or remove it")
    for path in outside((entry.path for entry in over.files), editable):
        hint = "stay inside, as a submission has to, or widen `editable`"
        problems.at_path(solution / path, "is outside `editable`", hint)
    for path in clashes(base, over):
        problem = "stands where the starter has another kind of path"
        problems.at_path(solution / path, problem, "rename one")
    return Reference(starter=starter, solution=solution, manifests=(base, over))
