"""A submission as it was left: what it is, kept beside its manifest, and copied for grading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.errors import InfrastructureError, SubmissionError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.manifest import Entry, EntryType, Manifest, Skip, is_cache, read_manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree, write_tree
from pytest_evalarc.grading.kept import kept_manifest, manifest_document, spelled
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.model.controls import STARTER
from pytest_evalarc.model.task import Task
from pytest_evalarc.tasks.mutants import edited_files

LEFT_OUT = (".agents/skills", ".claude/skills")
"""Folders of the treatment's own: what it puts there is no edit of the agent."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A project folder that nothing writes to any more, with its manifest."""

    root: Path
    manifest: Manifest

    @property
    def sha256(self) -> str:
        """Digest of what was submitted."""
        return self.manifest.sha256


def read_submission(root: Path, *, skip: Skip | None = None) -> Submission:
    """Return the project folder as a submission.

    Args:
        root: The folder.
        skip: Says of a relative path that it, and all below it, is no part of the submission.

    Raises:
        SubmissionError: It is larger than a submission may be, or cannot be read.
    """
    return Submission(root=root, manifest=read_manifest(root, skip=skip))


def keep(submission: Submission, folder: Path) -> Submission:
    """Keep a submission exactly as left: contents below `submission/`, everything in a manifest.

    Links and special files stand in the manifest alone, so that nothing stored leads anywhere.
    """
    copy_tree(submission.root, submission.manifest, folder / "submission")
    write_atomic(folder / "submission.json", manifest_document(submission.manifest))
    return Submission(root=folder / "submission", manifest=submission.manifest)


def read_kept(folder: Path) -> Submission:
    """Return a submission that `keep` stored, links and special files listed as they were.

    Raises:
        DocumentError: The manifest that was kept cannot be read.
        SubmissionError: What is stored is not what was kept.
    """
    manifest = kept_manifest(folder / "submission.json")
    copied = Manifest(tuple(entry for entry in manifest.entries if _is_copied(entry)))
    if read_manifest(folder / "submission").sha256 != copied.sha256:
        raise SubmissionError(str(folder), "its files are not those that were kept")
    return Submission(root=folder / "submission", manifest=manifest)


def _is_copied(entry: Entry) -> bool:
    return entry.type in (EntryType.FILE, EntryType.DIR)


def is_editable(path: str, editable: tuple[str, ...]) -> bool:
    """Whether a project path is, or lies below, one that is taken from a submission."""
    return any(path == root or path.startswith(f"{root}/") for root in editable)


def edits_outside(task: Task, submission: Submission, starter: Manifest) -> tuple[str, ...]:
    """Return the paths outside `editable` that differ from the starter, sorted and printable."""

    def minded(entry: Entry) -> bool:
        return not (
            entry.type is EntryType.DIR
            or is_editable(entry.path, task.editable)
            or is_cache(entry.path)
            or is_editable(entry.path, LEFT_OUT)
        )

    def facts(entries: Mapping[str, Entry]) -> dict[str, tuple[object, ...]]:
        return {
            path: (entry.type, entry.is_executable, entry.sha256, entry.target)
            for path, entry in entries.items()
            if minded(entry)
        }

    before, after = facts(starter.by_path), facts(submission.manifest.by_path)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return tuple(printable(spelled(path), limit=400) for path in sorted(changed))


@dataclass(frozen=True, kw_only=True)
class GradingCopy:
    """A fresh starter with the editable paths of a submission, beside fresh fixtures."""

    root: Path
    manifest: Manifest
    """Of the project."""

    @property
    def project(self) -> Path:
        """The project to grade."""
        return self.root / "project"

    @property
    def fixtures(self) -> Path:
        """The task's fixtures, beside the project as in a trial."""
        return self.root / "fixtures"

    @property
    def build(self) -> Path:
        """Where a compiler may write; the project itself is never written to."""
        return self.root / "build"


def refuse_links(task: Task, submission: Submission) -> None:
    """Refuse a submission that holds anything but files and folders under an editable path.

    What tools leave behind, as the links in `node_modules`, is never graded, so it may stay.

    Raises:
        SubmissionError: Names the first such path, and what it is.
    """
    for entry in submission.manifest.entries:
        if _is_copied(entry) or is_cache(entry.path):
            continue
        # A link in place of a folder above an editable path redirects what lies below it too.
        above = any(root.startswith(f"{entry.path}/") for root in task.editable)
        if above or is_editable(entry.path, task.editable):
            kind = "a symbolic link" if entry.type is EntryType.SYMLINK else "a special file"
            raise SubmissionError(
                printable(spelled(entry.path), limit=400),
                f"is {kind}, and only files and folders are graded",
            )


def make_copy(task: Task, submission: Submission, root: Path) -> GradingCopy:
    """Build the grading copy of a submission that holds no link where it counts.

    Within `editable` the submission replaces the starter exactly: what it deleted stays deleted.

    Raises:
        SubmissionError: It changed while it was copied.
        InfrastructureError: The copy cannot be written.
    """
    project = root / "project"
    starter = starter_manifest(task)
    with _ours():
        copy_tree(
            task.starter, starter, project, select=lambda path: not is_editable(path, task.editable)
        )
        copy_fixtures(task, root / "fixtures")
    copy_tree(
        submission.root,
        submission.manifest,
        project,
        select=lambda path: is_editable(path, task.editable) and not is_cache(path),
    )
    return GradingCopy(root=root, manifest=read_manifest(project))


def starter_manifest(task: Task) -> Manifest:
    """Return what is in the starter of a task.

    Raises:
        InfrastructureError: It cannot be read.
    """
    with _ours():
        return read_manifest(task.starter, skip=is_cache)


@contextmanager
def _ours() -> Iterator[None]:
    """Read and copy what is the task's own: what goes wrong there is no submission's fault."""
    try:
        yield
    except SubmissionError as error:
        raise InfrastructureError(error.where, error.problem, error.hint) from error


def copy_fixtures(task: Task, folder: Path) -> None:
    """Copy the fixtures of a task into a folder, each below its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for fixture in task.fixtures:
        manifest = read_manifest(fixture.root, skip=is_cache)
        copy_tree(fixture.root, manifest, folder / fixture.name)


def make_control(
    task: Task, control: str, project: Path, *, pack: Pack | None = None
) -> Submission:
    """Build a control's project: the starter, the reference, or a mutant of the reference.

    Args:
        task: The task that declares it.
        control: `starter`, `reference`, or a mutant's name.
        project: A folder that is not there yet.
        pack: The task's pack; None for a file task.

    Raises:
        SubmissionError: The control cannot be built; validation would have said so.
    """
    if task.pack is not None and pack is not None:
        write_tree(project, pack.control(control, task.pack.language))
        return read_submission(project)
    copy_tree(task.starter, starter_manifest(task), project)
    if control != STARTER:
        solution = read_manifest(task.solution, skip=is_cache)
        copy_tree(task.solution, solution, project, replace=True)
    mutant = next((mutant for mutant in task.mutants if mutant.name == control), None)
    if mutant is not None and mutant.overlay is not None:
        overlay = task.root / mutant.overlay
        copy_tree(overlay, read_manifest(overlay, skip=is_cache), project, replace=True)
    elif mutant is not None:
        write_tree(project, edited_files(task, mutant), replace=True)
    return read_submission(project)
