"""The shards of one batch, as they lie in their folders of results: all of them, and alike."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pytest_evalarc.counting.shards import own_trials, shard_of_task
from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.audit import AuditPlan
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.planned import PlannedTrial, Shard
from pytest_evalarc.model.shard import ShardDoc
from pytest_evalarc.model.task import TaskRef
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.reporting.batch import plan_kind
from pytest_evalarc.runs.folders import SHARD_SUFFIX, shard_path
from pytest_evalarc.runs.resume import difference
from pytest_evalarc.runs.shards import kept_shard

M = TypeVar("M", bound=Model)

GO_ON = "start that shard again with the same command, and it goes on"
_ONE_BATCH = "merge the shards of one batch, run in one way"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A folder of results that holds one shard."""

    results: Path
    shard: Shard


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """A plan of trials, and where each shard of it lies."""

    place: Path
    """Below every folder of results, as `<task>/<client>/<batch>`."""
    plan: PlanDoc
    owners: dict[str, Path]
    """The folder that each trial's own must lie in, by `PlannedTrial.folder`."""
    folders: tuple[Path, ...]
    """Of the shards, by number."""


@dataclass(frozen=True, kw_only=True)
class WholeAudit:
    """An audit, which lies in one shard as a whole."""

    place: Path
    folder: Path
    plan: AuditPlan


@dataclass(frozen=True, kw_only=True)
class Split:
    """A batch whose shards are all there and were planned alike."""

    batch: str
    plans: tuple[SplitPlan, ...]
    audits: tuple[WholeAudit, ...]


def read_split(given: Sequence[Path], batch: str | None) -> Split:
    """Return the batch that folders of results hold the shards of.

    Args:
        given: One folder of results for each shard, in any order.
        batch: Its name; None where the folders hold shards of one batch alone.

    Raises:
        UsageError: A folder holds no shard, or it is not clear of which batch.
        DocumentError: A shard is missing or there twice, a plan differs, or something lies in
            another shard than its own. Names the folder, and the field where there is one.
    """
    name = _batch_of(given, batch)
    parts = _parts(given, name)
    plans: dict[Path, dict[int, Path]] = {}
    audits: list[WholeAudit] = []
    for part in parts:
        for path in sorted(part.results.glob(f"*/*/{name}/plan.json")):
            place = path.parent.relative_to(part.results)
            _require_shard(path.parent, part.shard)
            match plan_kind(path.parent):
                case "trials":
                    plans.setdefault(place, {})[part.shard.number] = path.parent
                case "audit":
                    audits.append(_audit(place, path.parent, part.shard))
                case "candidate":
                    problem = "is a candidate, which no shard holds"
                    raise DocumentError(str(path.parent), problem, "move it away")
    split = Split(
        batch=name,
        plans=tuple(_plan(place, plans[place], parts) for place in sorted(plans)),
        audits=tuple(sorted(audits, key=lambda audit: audit.place)),
    )
    _require_same_tasks(split)
    if not split.plans and not split.audits:
        raise UsageError(str(given[0]), f"holds neither trials nor audits of batch {name}", GO_ON)
    return split


def _batch_of(given: Sequence[Path], batch: str | None) -> str:
    found: set[str] = set()
    for folder in given:
        names = {
            path.name.removesuffix(SHARD_SUFFIX) for path in folder.glob(f"[!.]*{SHARD_SUFFIX}")
        }
        if not names if batch is None else batch not in names:
            what = "no shard" if batch is None else f"no shard of batch {batch}"
            hint = "name the folders of results of sessions with --evalarc-shard"
            raise UsageError(str(folder), f"holds {what}", hint)
        found |= names
    if batch is None and len(found) > 1:
        told = printable(", ".join(sorted(found)), limit=400)
        raise UsageError("merge", f"there are shards of several batches: {told}", "give --batch")
    return batch or found.pop()


def _parts(given: Sequence[Path], batch: str) -> tuple[Part, ...]:
    """Return the shards by number: each is there once, and none is missing."""
    parts: dict[int, Part] = {}
    of = 0
    for folder in given:
        path = shard_path(folder, batch)
        document = read_model(path, ShardDoc)
        shard = document.shard
        if document.batch != batch:
            raise DocumentError(f"{path}: batch", f"is {document.batch}", "it was moved here")
        if of not in (0, shard.of):
            problem = f"is {shard.of}, and {of} in {given[0]}"
            raise DocumentError(f"{path}: shard.of", problem, _ONE_BATCH)
        if shard.number in parts:
            problem = f"is {shard.number}, and so it is in {parts[shard.number].results}"
            raise DocumentError(f"{path}: shard.number", problem, "name each shard once")
        of = shard.of
        parts[shard.number] = Part(results=folder, shard=shard)
    missing = [str(number) for number in range(1, of + 1) if number not in parts]
    if missing:
        told = ", ".join(missing[:10]) + (" …" if len(missing) > 10 else "")
        is_one = len(missing) == 1
        found = (
            f"shard {told} of {of} is missing" if is_one else f"shards {told} of {of} are missing"
        )
        raise DocumentError("merge", found, "name the folder of every shard")
    return tuple(parts[number] for number in sorted(parts))


def _require_shard(folder: Path, shard: Shard) -> None:
    found = kept_shard(folder)
    if found != shard:
        told = "is not there" if found is None else f"is {found}"
        problem = f"{told}, and its folder of results holds shard {shard}"
        raise DocumentError(f"{folder}/shard.json: shard", problem, "it was moved here, or edited")


def _plan(place: Path, folders: dict[int, Path], parts: Sequence[Part]) -> SplitPlan:
    for part in parts:
        if part.shard.number not in folders:
            problem = f"is not there, and shard {min(folders)} has it"
            raise DocumentError(str(part.results / place / "plan.json"), problem, GO_ON)
    ordered = tuple(folders[part.shard.number] for part in parts)
    plan = _same([folder / "plan.json" for folder in ordered], PlanDoc)
    _require_place(ordered[0] / "plan.json", place, plan.task.name, plan.client, plan.batch)
    owners = {
        trial.folder: folders[part.shard.number]
        for part in parts
        for trial in own_trials(plan.trials, part.shard, task=plan.task.name, client=plan.client)
    }
    found = SplitPlan(place=place, plan=plan, owners=owners, folders=ordered)
    for folder, part in zip(ordered, parts, strict=True):
        _require_own(found, folder, part.shard)
    return found


def _require_own(split: SplitPlan, folder: Path, shard: Shard) -> None:
    """Refuse a trial that another shard has, or that the plan has not: it would count twice."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.startswith("trial-"))
    for name in names:
        owner = split.owners.get(name)
        if owner == folder:
            continue
        told = f"shard {split.folders.index(owner) + 1}" if owner else "no shard of this plan"
        problem = f"belongs to {told}, and lies in shard {shard}"
        raise DocumentError(printable(f"{folder}/{name}", limit=400), problem, "move it away")


def _audit(place: Path, folder: Path, shard: Shard) -> WholeAudit:
    plan = read_model(folder / "plan.json", AuditPlan)
    _require_place(folder / "plan.json", place, plan.task.name, "audit", plan.batch)
    owner = shard_of_task(plan.task.name, shard.of)
    if owner != shard.number:
        problem = f"belongs to shard {owner}, and lies in shard {shard}"
        raise DocumentError(str(folder), problem, "move it away")
    return WholeAudit(place=place, folder=folder, plan=plan)


def _require_place(path: Path, place: Path, *names: str) -> None:
    if place.parts != names:
        problem = f"is of {'/'.join(names)}"
        raise DocumentError(str(path), problem, "it was moved here: move it back, or away")


def _require_same_tasks(split: Split) -> None:
    """Refuse trials and audits of one task in two states, as of two checkouts."""
    seen: dict[str, tuple[Path, TaskRef]] = {}
    plans = [(found.folders[0] / "plan.json", found.plan.task) for found in split.plans]
    for path, task in (
        *plans,
        *((audit.folder / "plan.json", audit.plan.task) for audit in split.audits),
    ):
        other, first = seen.setdefault(task.name, (path, task))
        field = difference(first, task)
        if field is not None:
            problem = f"is another one than in {other}"
            raise DocumentError(f"{path}: task.{field}", problem, _ONE_BATCH)


def _same(paths: Iterable[Path], model: type[M]) -> M:
    """Return the document that lies in several places; the same bytes are the same document."""
    first, *others = paths
    document, data = read_model(first, model), first.read_bytes()
    for path in others:
        if path.read_bytes() != data:
            field = difference(document, read_model(path, model))
            if field is not None:
                problem = f"is another one than in {first}"
                raise DocumentError(f"{path}: {field}", problem, _ONE_BATCH)
    return document


def same_documents(paths: Sequence[Path], model: type[M]) -> Path | None:
    """Return the first of the places where a document may lie that holds it; None without any.

    Raises:
        DocumentError: It cannot be read, or two of them differ; names the field.
    """
    there = [path for path in paths if path.exists()]
    if there:
        _same(there, model)
    return there[0] if there else None


def trial_of(split: SplitPlan, entry: PlannedTrial) -> Path:
    """Return the folder of a trial, in the shard that it belongs to."""
    return split.owners[entry.folder] / entry.folder
