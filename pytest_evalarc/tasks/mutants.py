"""Declared faults: what each changes in the reference submission, and whether it does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pytest_evalarc.errors import nearest
from pytest_evalarc.files.manifest import Entry, EntryType, Manifest
from pytest_evalarc.files.text import in_line
from pytest_evalarc.model.task import Edit, Mutant, Task
from pytest_evalarc.tasks.fields import Table, described, twins
from pytest_evalarc.tasks.keys import EDIT, MUTANT
from pytest_evalarc.tasks.names import is_reserved_item
from pytest_evalarc.tasks.problems import shown_path
from pytest_evalarc.tasks.trees import clashes, normalised, outside, read_tree, relative_flaw


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The reference submission of a task that may not be valid yet: solution over starter."""

    starter: Path
    solution: Path
    manifests: tuple[Manifest, Manifest]
    """Of starter and solution."""

    @property
    def merged(self) -> Manifest:
        """Its paths; digests are those of the files that win."""
        starter, solution = self.manifests
        return Manifest(tuple({**starter.by_path, **solution.by_path}.values()))

    def content(self, path: str) -> bytes | None:
        """Return the bytes of one of its files, or None."""
        starter, solution = self.manifests
        for folder, manifest in ((self.solution, solution), (self.starter, starter)):
            entry = manifest.by_path.get(path)
            if entry is not None and entry.type is EntryType.FILE:
                return (folder / path).read_bytes()
        return None


def apply_edits(content: bytes, edits: Sequence[Edit]) -> bytes:
    """Return a file of the reference with all edits of one mutant in it.

    Every anchor is looked up in the reference itself, so the order of edits means nothing.

    Args:
        content: The file as it is in the reference.
        edits: The edits of this file.

    Raises:
        ValueError: An anchor does not occur exactly once, or two edits overlap.
    """
    spans = []
    for edit in edits:
        find = edit.find.encode()
        if (count := _occurrences(content, find)) != 1:
            raise ValueError(f"occurs {count} times in {edit.file}, not exactly once")
        start = content.index(find)
        spans.append((start, start + len(find), edit.replace.encode()))
    spans.sort()
    if any(end > start for (_, end, _), (start, _, _) in pairwise(spans)):
        raise ValueError(f"overlaps another edit of {edits[0].file}")
    for start, end, replacement in reversed(spans):
        content = content[:start] + replacement + content[end:]
    return content


def edited_files(task: Task, mutant: Mutant) -> dict[str, bytes]:
    """Return the content that a mutant's edits give the files they touch, by path.

    Args:
        task: A valid task with a solution.
        mutant: One of its mutants; one with an overlay has no edits.
    """
    files: dict[str, bytes] = {}
    for path, edits in _by_file(mutant.edits).items():
        ours = task.solution / path
        source = ours if ours.is_file() else task.starter / path
        files[path] = apply_edits(source.read_bytes(), edits)
    return files


def read_mutants(
    top: Table,
    *,
    folder: Path,
    root: Path,
    reference: Reference | None,
    editable: Collection[str],
    dimensions: Collection[str] | None,
) -> tuple[Mutant, ...]:
    """Return the mutants that a task declares, each proved to change the reference.

    Args:
        top: The task's task.toml.
        folder: The task's folder.
        root: The project root.
        reference: What they change; None when it is not there, which was told.
        editable: Normalised paths that a mutant must stay inside.
        dimensions: What a mutant may target; None when that is not settled.
    """
    found = []
    for table in top.tables("mutants"):
        table.refuse_unknown(MUTANT)
        reader = _Reader(table, folder, root, reference, tuple(editable))
        mutant = reader.read(dimensions)
        if mutant is not None:
            found.append(mutant)
    for twin, name in twins(mutant.name for mutant in found):
        top.tell("mutants", f"has {described(name)} beside {described(twin)}", "rename one")
    return tuple(found)


@dataclass(frozen=True)
class _Reader:
    table: Table
    folder: Path
    root: Path
    reference: Reference | None
    editable: tuple[str, ...]

    def read(self, dimensions: Collection[str] | None) -> Mutant | None:
        table = self.table
        name = table.name("name", "") if table.require("name", "name the fault") else ""
        if is_reserved_item(name):
            table.tell("name", f"is {described(name)}, which is reserved", "choose another name")
        target = table.name("target", "") if table.require("target", "name a dimension") else ""
        if target and dimensions is not None and target not in dimensions:
            problem = f"is {described(target)}, which is no dimension of the task"
            table.tell("target", problem, nearest(target, tuple(dimensions)))
        description = table.text("description", empty=True)
        if ("edits" in table) == ("overlay" in table):
            problem = "stand beside an overlay" if "edits" in table else "are missing"
            table.tell("edits", problem, "write either edits or an overlay")
            return None
        edits = self._edits()
        overlay = self._overlay() if "overlay" in table else None
        if not name or not target or not (edits or overlay):
            return None
        return Mutant(
            name=name, target=target, description=description, edits=edits, overlay=overlay
        )

    def _edits(self) -> tuple[Edit, ...]:
        edits = []
        for table in self.table.tables("edits"):
            table.refuse_unknown(EDIT)
            needed = [table.require(name, "add it") for name in EDIT]
            file = table.text("file")
            find = table.text("find", empty=True)
            replace = table.text("replace", empty=True)
            if not all(needed) or not file:
                continue
            if not find:
                table.tell("find", "is empty", "name a text that occurs exactly once")
                continue
            edit = Edit(file=normalised(file), find=find, replace=replace)
            if self._is_fitting(table, file, edit):
                edits.append(edit)
        if self.table.data.get("edits") == []:
            self.table.tell("edits", "is empty, so it changes nothing", "add an edit")
        self._check_change(edits)
        return tuple(edits)

    def _is_fitting(self, table: Table, file: str, edit: Edit) -> bool:
        if flaw := relative_flaw(file):
            table.tell("file", f"is {described(file)}, which {flaw}", "name a file of the project")
            return False
        self._tell_outside(table, "file", [edit.file])
        if self.reference is None:
            return False
        content = self.reference.content(edit.file)
        if content is None:
            files = tuple(entry.path for entry in self.reference.merged.files)
            problem = f"is {described(file)}, which is no file of the reference"
            table.tell("file", problem, nearest(edit.file, files))
            return False
        if (count := _occurrences(content, edit.find.encode())) != 1:
            problem = f"occurs {count} times in {edit.file}, not exactly once"
            hint = "copy the text from there" if count == 0 else "take in more of the text around"
            table.tell("find", problem, hint)
            return False
        return True

    def _check_change(self, edits: Sequence[Edit]) -> None:
        if self.reference is None or not edits:
            return
        changes = False
        for file, group in _by_file(edits).items():
            content = self.reference.content(file) or b""
            try:
                changes |= apply_edits(content, group) != content
            except ValueError as error:
                self.table.tell("edits", str(error), "make one edit of the two")
                return
        if not changes:
            self.table.tell("edits", "leave the reference as it is", "change its behaviour")

    def _overlay(self) -> str | None:
        overlay = self.table.text("overlay")
        if not overlay:
            return None
        path = self.folder / normalised(overlay)
        flaw = relative_flaw(overlay)
        if not flaw and (path.is_symlink() or not path.is_dir()):
            flaw = "is no folder of the task"
        if not flaw and not path.resolve().is_relative_to(self.folder.resolve()):
            flaw = "leads out of the task"
        if flaw:
            self.table.tell("overlay", f"is {described(overlay)}, which {flaw}", "name a folder")
            return None
        manifest = read_tree(path, self.table.problems, caches=False)
        self._check_overlay(path, manifest)
        return normalised(overlay)

    def _check_overlay(self, path: Path, manifest: Manifest) -> None:
        self._tell_outside(self.table, "overlay", [entry.path for entry in manifest.files])
        if not manifest.files:
            problem = f"{shown_path(path, self.root)} holds no file"
            self.table.tell("overlay", problem, "add the files that the fault changes")
        elif self.reference is not None:
            merged = self.reference.merged
            for file in clashes(merged, manifest):
                problem = f"has {in_line(file)} where the reference has another kind of path"
                self.table.tell("overlay", problem, "rename it")
            if all(_is_same(entry, merged.by_path.get(entry.path)) for entry in manifest.files):
                self.table.tell("overlay", "leaves the reference as it is", "change its behaviour")

    def _tell_outside(self, table: Table, key: str, files: Sequence[str]) -> None:
        for file in outside(files, self.editable):
            problem = f"changes {in_line(file)}, which is outside `editable`"
            table.tell(key, problem, "stay inside, as a submission has to")


def _by_file(edits: Sequence[Edit]) -> Mapping[str, list[Edit]]:
    groups: dict[str, list[Edit]] = {}
    for edit in edits:
        groups.setdefault(edit.file, []).append(edit)
    return groups


def _is_same(entry: Entry, other: Entry | None) -> bool:
    return (
        other is not None
        and entry.sha256 == other.sha256
        and entry.is_executable == other.is_executable
    )


def _occurrences(content: bytes, text: bytes) -> int:
    """Count the places where a text starts, overlapping ones too."""
    count = 0
    at = content.find(text)
    while at >= 0:
        count += 1
        at = content.find(text, at + 1)
    return count
