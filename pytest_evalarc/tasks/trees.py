"""The folders of a task: what may be in one, and where it may reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_evalarc.errors import SubmissionError
from pytest_evalarc.files.manifest import EntryType, Manifest, is_cache, read_manifest
from pytest_evalarc.files.text import in_line
from pytest_evalarc.tasks.names import path_twins
from pytest_evalarc.tasks.problems import Problems

_HISTORIES = {
    ".git": "git",
    ".hg": "Mercurial",
    ".svn": "Subversion",
    ".jj": "Jujutsu",
    ".bzr": "Bazaar",
    "_darcs": "Darcs",
    ".pijul": "Pijul",
}
"""Where each tool keeps what a folder held before, in any case: some file systems know none."""

_HINT = "remove it, as a history can hold the answer"


def read_tree(folder: Path, problems: Problems, *, caches: bool) -> Manifest:
    """Return what is in a folder of a task; empty, with the problem told, if it cannot be read.

    Links, special files, histories and paths that some file system cannot tell apart are told.

    Args:
        folder: The folder, which exists.
        problems: Where its problems are told.
        caches: Whether what tools leave behind is a part of it, as it is where all is copied.
    """
    try:
        manifest = read_manifest(folder, skip=_inside_history if caches else _inside_cache)
    except SubmissionError as error:
        problems.at_path(folder, error.problem, error.hint)
        return Manifest(())
    for entry in manifest.entries:
        path = folder / entry.path
        if (tool := _history(path.name)) is not None:
            problems.at_path(path, f"is a {tool} repository, which no task may hold", _HINT)
        elif entry.type is EntryType.SYMLINK:
            target = in_line(entry.target or "", limit=200)
            problems.at_path(path, f"is a symbolic link to {target}", "put the file itself there")
        elif entry.type is EntryType.SPECIAL:
            problems.at_path(path, "is neither a file nor a folder", "remove it")
    for bare in _bare_repositories(manifest):
        problems.at_path(folder / bare, "is a bare git repository, which no task may hold", _HINT)
    for bundle in _bundles(folder, manifest):
        problems.at_path(folder / bundle, "is a git bundle, which no task may hold", _HINT)
    for twin, other in path_twins(manifest.by_path):
        hint = "rename one: some file systems cannot tell them apart"
        problems.at_path(folder / other, f"collides with {in_line(twin)}", hint)
    return manifest


def relative_flaw(path: str) -> str | None:
    """Return why a path of task.toml is not relative, POSIX style and inside, or None."""
    if "\\" in path or "\0" in path:
        return "has a backslash or a NUL in it"
    if path.startswith("/") or path[1:2] == ":":
        return "is absolute"
    if ".." in path.split("/"):
        return "has `..` in it"
    return None


def normalised(path: str) -> str:
    """Return a relative path without `.` and doubled or trailing slashes; `.` for nothing else."""
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


def covers(folder: str, path: str) -> bool:
    """Whether a normalised path is equal to, or lies below, another."""
    return folder in (".", path) or path.startswith(f"{folder}/")


def outside(paths: Iterable[str], editable: Iterable[str]) -> Iterator[str]:
    """Yield the paths that no editable path covers."""
    allowed = tuple(editable)
    return (path for path in paths if not any(covers(folder, path) for folder in allowed))


def clashes(base: Manifest, over: Manifest) -> Iterator[str]:
    """Yield the files of a tree that cannot be copied over another: a folder is in the way.

    A file that the base needs to be a folder, and one whose own folder is a file there.
    """
    for entry in over.files:
        there = base.by_path.get(entry.path)
        above = (str(parent) for parent in Path(entry.path).parents)
        files_above = (base.by_path.get(path) for path in above)
        if (there is not None and there.type is EntryType.DIR) or any(
            found is not None and found.type is EntryType.FILE for found in files_above
        ):
            yield entry.path


def _history(name: str) -> str | None:
    """Return the tool that keeps a history under this name, or None."""
    return _HISTORIES.get(name.casefold())


def _bare_repositories(manifest: Manifest) -> Iterator[str]:
    """Yield the folders that git takes for a repository, whatever they are called."""
    paths = manifest.by_path
    for path in paths:
        folder, _, name = path.rpartition("/")
        inside = f"{folder}/" if folder else ""
        is_bare = name == "HEAD" and {f"{inside}objects", f"{inside}refs"} <= paths.keys()
        if is_bare and _history(folder.rpartition("/")[2]) is None:
            yield folder or "."


def _bundles(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield the files that hold a history whole, as `git bundle` writes them."""
    for entry in manifest.files:
        if entry.path.casefold().endswith(".bundle"):
            with (folder / entry.path).open("rb") as file:
                if file.read(16).endswith(b" git bundle\n"):
                    yield entry.path


def _inside_history(path: str) -> bool:
    return any(_history(part) for part in path.split("/")[:-1])


def _inside_cache(path: str) -> bool:
    is_history = _history(path.rpartition("/")[2]) is not None
    return _inside_history(path) or (is_cache(path) and not is_history)
