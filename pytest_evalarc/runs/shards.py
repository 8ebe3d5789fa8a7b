"""Which shard of a batch lies in a folder of results: written before anything of it runs."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.model.shard import ShardDoc
from pytest_evalarc.runs.folders import Folders, shard_path
from pytest_evalarc.runs.once import once

OPTION = "--evalarc-shard"
NAME = "shard.json"
"""Beside a plan: which part of it lies there."""


def kept_shard(folder: Path) -> Shard | None:
    """Return which shard of its plan lies in a folder; None where the plan was not split.

    Raises:
        DocumentError: What says so cannot be read.
    """
    path = folder / NAME
    return read_model(path, ShardDoc).shard if path.exists() else None


def keep_shard(path: Path, batch: str, shard: Shard) -> None:
    """Write which shard lies in a place, or see that it is this one.

    Raises:
        UsageError: Another shard lies there.
        DocumentError: What is there cannot be read, or nothing can be written.
    """
    document = ShardDoc(schema_version=SCHEMA_VERSION, batch=batch, shard=shard)
    kept = once(path, ShardDoc, lambda: document)
    if kept.shard != shard:
        problem = f"{path.parent} holds shard {kept.shard} of batch {batch}"
        hint = "give each shard a folder of its own with --evalarc-results"
        raise UsageError(f"{OPTION} {shard}", problem, hint)


def open_shard(folders: Folders, shard: Shard) -> None:
    """Say of a folder of results which shard of a batch it holds, before anything of it is planned.

    A shard that no trial falls to says it too, so that a missing one can be told from it.

    Raises:
        UsageError: The folder holds another shard of the batch, or the batch as a whole.
        DocumentError: What is there cannot be read, or nothing can be written.
    """
    path = shard_path(folders.results, folders.batch)
    if not path.exists() and any(folders.results.glob(f"*/*/{folders.batch}/plan.json")):
        problem = f"{folders.results} holds batch {folders.batch} as a whole"
        hint = "name another batch, or another folder with --evalarc-results"
        raise UsageError(f"{OPTION} {shard}", problem, hint)
    folders.make_results()
    keep_shard(path, folders.batch, shard)


def refuse_shard(folders: Folders) -> None:
    """Refuse to go on with one shard of a batch as if it were the whole.

    Raises:
        UsageError: The folder of results holds a shard of the batch.
        DocumentError: What says so cannot be read.
    """
    path = shard_path(folders.results, folders.batch)
    if path.exists():
        kept = read_model(path, ShardDoc).shard
        problem = f"{folders.results} holds shard {kept} of it alone"
        hint = f"add {OPTION}={kept}, or merge the shards first"
        raise UsageError(f"--evalarc-batch {folders.batch}", problem, hint)
