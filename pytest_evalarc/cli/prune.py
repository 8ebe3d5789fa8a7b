"""`pytest-evalarc prune`: remove what batches left behind, and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.runs.folders import default_eval_root, gradings_folder
from pytest_evalarc.runs.prune import (
    Found,
    OldGradings,
    old_gradings,
    old_results,
    unused_work,
    work_of,
)


def prune(
    *,
    root: Path | None,
    results: Path | None,
    keep: int | None,
    cache_mib: int | None,
    dry_run: bool,
) -> int:
    """Say what goes, remove it, and return the exit status.

    Args:
        root: The evaluation root whose unused working folders go; None is this user's own.
        results: A folder of results whose old batches go too.
        keep: How many batches of each task and client stay there.
        cache_mib: What the kept gradings may take, the oldest going first; None leaves them alone.
        dry_run: Whether nothing is removed.

    Raises:
        UsageError: An option is missing, or a folder is not one of ours.
    """
    eval_root = Path(os.path.realpath(root or default_eval_root()))
    old = _old(results, keep, eval_root)
    gradings = _gradings(cache_mib)
    work = unused_work(eval_root)
    for remark in (*work.remarks, *old.remarks, *gradings.remarks):
        print(f"left alone: {printable(remark)}")
    word = "would remove" if dry_run else "remove"
    for path in (*work.removable, *old.removable):
        print(f"{word} {printable(str(path))}", flush=True)
    if gradings.removable:
        count = len(gradings.removable)
        files = f"{count} file{'' if count == 1 else 's'}"
        print(f"{word} {files} of the cache of gradings ({gradings.freed_bytes / MIB:.1f} MiB)")
    if not (work.removable or old.removable or gradings.removable):
        print("nothing to remove")
    return 0 if dry_run else _removed(work, (*old.removable, *gradings.removable))


def _gradings(cache_mib: int | None) -> OldGradings:
    if cache_mib is None:
        return OldGradings((), 0, ())
    if cache_mib < 0:
        raise UsageError(f"--cache {cache_mib}", "is no size", "give 0 to remove all, or more")
    return old_gradings(gradings_folder(), most_bytes=cache_mib * MIB)


def _old(results: Path | None, keep: int | None, eval_root: Path) -> Found:
    if results is None and keep is None:
        return Found((), ())
    if results is None or keep is None:
        raise UsageError("prune", "needs --results and --keep together", "give both, or none")
    if keep < 1:
        raise UsageError(f"--keep {keep}", "is no number of batches", "give 1 or more")
    return old_results(Path(os.path.realpath(results)), keep=keep, eval_root=eval_root)


def _removed(work: Found, old: tuple[Path, ...]) -> int:
    """Remove what was found; what resists is told, and keeps nothing else from going."""
    status = 0
    for path in (*work.removable, *old):
        try:
            if path in work.removable:
                # Under its lock, should somebody have begun to use it just now.
                work_of(path).close_work()
            else:
                remove_tree(path)
        except OSError as error:
            problem = f"{path}: cannot be removed: {error.strerror or error}"
            print(f"pytest-evalarc: {printable(problem)}", file=sys.stderr)
            status = 1
    return status
