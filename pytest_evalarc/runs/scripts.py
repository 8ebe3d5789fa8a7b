"""What an embedded client plays in a trial. Hidden material goes from here to the player alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evalarc.clients.embedded.client import Embedded
from pytest_evalarc.clients.embedded.replay import recording
from pytest_evalarc.clients.protocol import Client, Plays, Script
from pytest_evalarc.errors import DocumentError, SetupError, nearest
from pytest_evalarc.files.manifest import EntryType, Manifest, is_cache, read_manifest
from pytest_evalarc.files.strict import loads
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.submission import LEFT_OUT, is_editable
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.controls import REFERENCE, STARTER
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Task
from pytest_evalarc.treatments.protocol import Staged


def script_for(
    client: Client,
    task: Task,
    entry: PlannedTrial,
    *,
    staged: Staged | None,
    settings: JsonObject,
    project: Path,
    pack: Pack | None = None,
) -> Script | None:
    """Return what an embedded client plays; None for a real client.

    Args:
        client: The trial's client.
        task: The whole task, its solution included.
        entry: The planned trial.
        staged: What the treatment put in place; None in a baseline.
        settings: The client's settings.
        project: The root that a relative recording is named from.
        pack: The task's pack; None for a file task.

    Raises:
        SetupError: There is nothing to play, or the client takes no such setting.
    """
    if not isinstance(client, Embedded):
        return None
    for name in settings:
        if name not in client.settings:
            hint = nearest(name, client.settings) or "it takes none"
            raise SetupError(f"client {client.name}", f"takes no setting {name!r}", hint)
    if client.plays is Plays.SOLUTION:
        return _solution(task, pack, staged)
    if client.plays is Plays.RECORDING:
        return _recorded(task, pack, entry, settings, project)
    return Script()


def _solution(task: Task, pack: Pack | None, staged: Staged | None) -> Script:
    """Read the skills that the task expects to be used, then apply the reference."""
    reads: tuple[str, ...] = ()
    if staged is not None:
        offered = [skill for skill in task.expected.used if skill in staged.planned]
        reads = tuple(f"{staged.skill_folder}/{skill}/SKILL.md" for skill in offered)
    if task.pack is not None and pack is not None:
        files = pack.control(REFERENCE, task.pack.language)
        return Script(reads=reads, writes={path: (files[path], 0o644) for path in files})
    solution = read_manifest(task.solution, skip=is_cache)
    return Script(reads=reads, writes=_writes(task.solution, solution))


def _recorded(
    task: Task, pack: Pack | None, entry: PlannedTrial, settings: JsonObject, project: Path
) -> Script:
    """Make the project what the recorded session left, and print its stream."""
    named = settings.get("recording")
    if not isinstance(named, str) or not named:
        raise SetupError(
            "client replay",
            "has no setting recording",
            "add --evalarc-model-setting recording=FOLDER, a kept trial or batch",
        )
    found = recording(project / named, entry.configuration, entry.trial)
    left = read_manifest(found.tree, skip=is_cache)
    links = _kept_links(found.tree.parent)
    return Script(
        removes=tuple(_removed(_starter(task, pack), left, kept=links)),
        writes=_writes(found.tree, left),
        links=links,
        transcript=found.transcript,
    )


def _starter(task: Task, pack: Pack | None) -> dict[str, EntryType]:
    """Return what stands where when a session begins."""
    if task.pack is None or pack is None:
        starter = read_manifest(task.starter, skip=is_cache)
        return {path: entry.type for path, entry in starter.by_path.items()}
    files = pack.control(STARTER, task.pack.language)
    folders = {str(above) for path in files for above in PurePosixPath(path).parents} - {"."}
    return dict.fromkeys(sorted(folders), EntryType.DIR) | dict.fromkeys(files, EntryType.FILE)


def _writes(root: Path, manifest: Manifest) -> dict[str, tuple[bytes, int]]:
    return {
        entry.path: ((root / entry.path).read_bytes(), entry.mode & 0o777)
        for entry in manifest.files
        if not is_editable(entry.path, LEFT_OUT)
    }


def _removed(
    starter: Mapping[str, EntryType], left: Manifest, *, kept: Mapping[str, str]
) -> Iterator[str]:
    """Yield what the session removed, or made into another kind of thing; outermost paths alone.

    Args:
        starter: What the session found, a folder before what is in it.
        left: The files and folders that it left.
        kept: The links that it left.
    """
    gone: set[str] = set()
    for path, kind in starter.items():
        if path in kept or is_editable(path, LEFT_OUT):
            continue
        if path in left.by_path and left.by_path[path].type is kind:
            continue
        # Whoever removes a folder removes what is in it, and a folder comes before that.
        is_inside = any(str(parent) in gone for parent in PurePosixPath(path).parents)
        gone.add(path)
        if not is_inside:
            yield path


def _kept_links(folder: Path) -> dict[str, str]:
    """Return the links that a kept submission names; they are never stored as links.

    Raises:
        DocumentError: Its manifest is damaged.
    """
    path = folder / "submission.json"
    if not os.path.lexists(path):
        return {}
    try:
        document = loads(path.read_bytes(), where=str(path))
        return dict(_links_in(document))
    except (KeyError, TypeError, OSError) as error:
        raise DocumentError(str(path), "is no manifest of a kept submission") from error


def _links_in(document: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - what was read is checked here.
    for row in document["entries"]:
        if row["type"] == EntryType.SYMLINK:
            yield row["path"], row["target"]
