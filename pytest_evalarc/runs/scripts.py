"""What an embedded client plays in a trial. Hidden material goes from here to the player alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pytest_evalarc.clients.embedded.client import Embedded
from pytest_evalarc.clients.embedded.replay import recording
from pytest_evalarc.clients.protocol import Client, Plays, Script
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.manifest import Manifest, is_cache, read_manifest
from pytest_evalarc.grading.submission import LEFT_OUT, is_editable
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.trial import PlannedTrial
from pytest_evalarc.treatments.protocol import Staged


def script_for(
    client: Client,
    task: Task,
    entry: PlannedTrial,
    *,
    staged: Staged | None,
    settings: JsonObject,
    project: Path,
) -> Script | None:
    """Return what an embedded client plays; None for a real client.

    Args:
        client: The trial's client.
        task: The whole task, its solution included.
        entry: The planned trial.
        staged: What the treatment put in place; None in a baseline.
        settings: The client's settings.
        project: The root that a relative recording is named from.

    Raises:
        SetupError: There is nothing to play.
    """
    if not isinstance(client, Embedded):
        return None
    if client.plays is Plays.SOLUTION:
        return _solution(task, staged)
    if client.plays is Plays.RECORDING:
        return _recorded(task, entry, settings, project)
    return Script()


def _solution(task: Task, staged: Staged | None) -> Script:
    """Read the skills that the task expects to be used, then apply the reference."""
    reads: tuple[str, ...] = ()
    if staged is not None:
        offered = [skill for skill in task.expected.used if skill in staged.planned]
        reads = tuple(f"{staged.skill_folder}/{skill}/SKILL.md" for skill in offered)
    solution = read_manifest(task.solution, skip=is_cache)
    return Script(reads=reads, writes=_writes(task.solution, solution))


def _recorded(task: Task, entry: PlannedTrial, settings: JsonObject, project: Path) -> Script:
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
    starter = read_manifest(task.starter, skip=is_cache)
    links = _kept_links(found.tree.parent)
    gone = [
        path
        for path in starter.by_path
        if path not in left.by_path and path not in links and not is_editable(path, LEFT_OUT)
    ]
    return Script(
        removes=tuple(gone),
        writes=_writes(found.tree, left),
        links=links,
        transcript=found.transcript,
    )


def _writes(root: Path, manifest: Manifest) -> dict[str, tuple[bytes, int]]:
    return {
        entry.path: ((root / entry.path).read_bytes(), entry.mode & 0o777)
        for entry in manifest.files
        if not is_editable(entry.path, LEFT_OUT)
    }


def _kept_links(folder: Path) -> dict[str, str]:
    """Return the links that a kept submission names; they are never stored as links."""
    path = folder / "submission.json"
    if not os.path.lexists(path):
        return {}
    rows = json.loads(path.read_bytes())["entries"]
    return {row["path"]: row["target"] for row in rows if row["type"] == "symlink"}
