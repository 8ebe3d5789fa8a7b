"""`pytest-evalarc prune`: remove what batches left behind, and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.runs.folders import default_eval_root
from pytest_evalarc.runs.prune import Found, old_results, unused_work, work_of


def prune(*, root: Path | None, results: Path | None, keep: int | None, dry_run: bool) -> int:
    """Say what goes, remove it, and return the exit status.

    Args:
        root: The evaluation root whose unused working folders go; None is this user's own.
        results: A folder of results whose old batches go too.
        keep: How many batches of each task and client stay there.
        dry_run: Whether nothing is removed.

    Raises:
        UsageError: An option is missing, or a folder is not one of ours.
    """
    eval_root = Path(os.path.realpath(root or default_eval_root()))
    old = _old(results, keep, eval_root)
    work = unused_work(eval_root)
    for remark in (*work.remarks, *old.remarks):
        print(f"left alone: {printable(remark)}")
    word = "would remove" if dry_run else "remove"
    for path in (*work.removable, *old.removable):
        print(f"{word} {printable(str(path))}", flush=True)
    if not (work.removable or old.removable):
        print("nothing to remove")
    return 0 if dry_run else _removed(work, old)


def _old(results: Path | None, keep: int | None, eval_root: Path) -> Found:
    if results is None and keep is None:
        return Found((), ())
    if results is None or keep is None:
        raise UsageError("prune", "needs --results and --keep together", "give both, or none")
    if keep < 1:
        raise UsageError(f"--keep {keep}", "is no number of batches", "give 1 or more")
    return old_results(Path(os.path.realpath(results)), keep=keep, eval_root=eval_root)


def _removed(work: Found, old: Found) -> int:
    """Remove what was found; what resists is told, and keeps nothing else from going."""
    status = 0
    for path in (*work.removable, *old.removable):
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
