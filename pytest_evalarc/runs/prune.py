"""What may be removed: working folders that nobody uses, and results that are too old."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.atomic import is_begun
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.cache import entry_path
from pytest_evalarc.model.audit import AuditPlan
from pytest_evalarc.model.candidate import CandidatePlan
from pytest_evalarc.model.plain import NAME_PATTERN
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.runs.folders import Folders, require_own, shard_path, summary_path

PLANS: tuple[type[PlanDoc | AuditPlan | CandidatePlan], ...] = (PlanDoc, AuditPlan, CandidatePlan)


class Found(NamedTuple):
    """What may go, and a sentence for each thing that is left alone."""

    removable: tuple[Path, ...]
    remarks: tuple[str, ...]


def unused_work(eval_root: Path) -> Found:
    """Return the working folders of batches that no live process uses.

    Raises:
        UsageError: The root is not this user's own, or nothing in it is a batch.
    """
    if not eval_root.exists():
        return Found((), ())
    require_own(eval_root)
    paths = sorted(path for path in eval_root.iterdir() if not path.name.startswith("."))
    ours = [path for path in paths if _is_work(path)]
    if paths and not ours:
        hint = "name an evaluation root with --root"
        raise UsageError(str(eval_root), "holds no working folder of a batch", hint)
    used = {path for path in ours if work_of(path).is_in_use}
    return Found(
        tuple(path for path in ours if path not in used),
        (
            *(f"{path}: is in use" for path in ours if path in used),
            *(f"{path}: is no working folder of a batch" for path in paths if path not in ours),
        ),
    )


def work_of(path: Path) -> Folders:
    """Return the folders of the batch that a working folder is of; its results are not known."""
    return Folders(eval_root=path.parent, results=path.parent, batch=path.name)


def _is_work(path: Path) -> bool:
    """Whether a folder is one of ours: who uses it stands in it."""
    users = path / "users"
    return (
        re.fullmatch(NAME_PATTERN, path.name) is not None
        and _is_folder(path)
        and _is_folder(users)
        and all(user.name.isdigit() and user.is_file() for user in users.iterdir())
    )


def old_results(results: Path, *, keep: int, eval_root: Path) -> Found:
    """Return the batches of each task and client that are not among the newest.

    What lies beside the folders of a batch goes with the first of them: it is of all.

    Args:
        results: The folder of results.
        keep: How many of each task and client stay. What `latest` leads to and what is in use
            stays too.
        eval_root: Where a batch under way has its working folder.

    Raises:
        UsageError: Nothing there is a batch.
    """
    if not _is_folder(results):
        raise UsageError(f"--results {results}", "is no folder", "name a folder of results")
    remarks: list[str] = []
    removable: list[Path] = []
    seen = 0
    for client in sorted(results.glob("*/*")):
        if not (_is_folder(client.parent) and _is_folder(client)):
            continue
        folders = sorted(path for path in client.iterdir() if _is_folder(path))
        batches = [path for path in folders if _is_batch(path)]
        remarks += [f"{path}: holds no plan of ours" for path in folders if path not in batches]
        seen += len(batches)
        for path in _old(batches, keep):
            if Folders(eval_root=eval_root, results=results, batch=path.name).is_in_use:
                remarks.append(f"{path}: is in use")
            else:
                removable.append(path)
    if not seen:
        raise UsageError(f"--results {results}", "holds no batch", "name a folder of results")
    beside = {
        place(results, path.name) for path in removable for place in (summary_path, shard_path)
    }
    removable += sorted(path for path in beside if path.is_file())
    return Found(tuple(removable), tuple(remarks))


class OldGradings(NamedTuple):
    """What goes of the kept gradings, what that frees, and a sentence for what is left alone."""

    removable: tuple[Path, ...]
    freed_bytes: int
    remarks: tuple[str, ...]


def old_gradings(folder: Path, *, most_bytes: int) -> OldGradings:
    """Return the oldest gradings of a cache, as many as it has too many.

    Args:
        folder: The cache; one that is not there holds nothing.
        most_bytes: What the gradings that stay may take together; at least 0.

    Raises:
        UsageError: The folder is not this user's own.
    """
    if not os.path.lexists(folder):
        return OldGradings((), 0, ())
    require_own(folder, hint="name another place with XDG_CACHE_HOME")
    paths = [path for path in sorted(folder.glob("*/*")) if path.is_symlink() or path.is_file()]
    kinds = {path: _kind(folder, path) for path in paths}
    entries = [(path.lstat(), path) for path in paths if kinds[path] == "entry"]
    entries.sort(key=lambda entry: (entry[0].st_mtime_ns, entry[1]), reverse=True)
    totals = accumulate(status.st_size for status, _ in entries)
    old = [entry for entry, total in zip(entries, totals, strict=True) if total > most_bytes]
    begun = (path for path in paths if kinds[path] == "begun")
    remarks = tuple(f"{path}: is no kept grading" for path in paths if kinds[path] == "foreign")
    return OldGradings(
        removable=(*begun, *(path for _, path in old)),
        freed_bytes=sum(status.st_size for status, _ in old),
        remarks=remarks,
    )


def _kind(folder: Path, path: Path) -> Literal["entry", "begun", "foreign"]:
    """Return whether a file is a kept grading, one that a process died over, or neither."""
    if path.is_symlink():
        return "foreign"
    if re.fullmatch(r"[0-9a-f]{64}\.json", path.name) and path == entry_path(folder, path.stem):
        return "entry"
    return "begun" if is_begun(path.name) else "foreign"


def _old(batches: Iterable[Path], keep: int) -> Iterator[Path]:
    """Yield the batches of one task and client beyond the newest, which `latest` never is."""
    newest_first = sorted(batches, key=_planned, reverse=True)
    for path in newest_first[keep:]:
        latest = path.with_name("latest")
        if not (latest.is_symlink() and latest.readlink() == Path(path.name)):
            yield path


def _planned(batch: Path) -> tuple[int, str]:
    """Return when a batch was planned: its plan is written once, before all else."""
    return (batch / "plan.json").lstat().st_mtime_ns, batch.name


def _is_batch(path: Path) -> bool:
    """Whether a folder holds a plan that says it is of this very place."""
    for model in PLANS:
        try:
            plan = read_model(path / "plan.json", model)
        except DocumentError:
            continue
        return (plan.task.name, plan.batch) == (path.parents[1].name, path.name)
    return False


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
