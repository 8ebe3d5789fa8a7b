"""A task folder of Harbor: instruction.md, task.toml, environment/, tests/ and solution/.

Format: harborframework.com, tasks; older files write `memory = "2G"` for `memory_mb = 2048`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_evalarc.errors import UsageError
from pytest_evalarc.reporting.imports.parts import (
    HARBOR,
    Parts,
    positive,
    read_text,
    shown,
)
from pytest_evalarc.tasks.load import TASK_FILE
from pytest_evalarc.tasks.toml import read_toml

_ADVICE = {
    "environment": "put into starter/ what its image holds; tasks here build none",
    "solution": "write its outcome, as files, into solution/",
    "tests": "write a hidden check for each of its tests in checks/",
}
_READ = {
    "agent": ("timeout_sec",),
    "verifier": ("timeout_sec",),
    "environment": ("memory_mb", "memory", "cpus", "build_timeout_sec"),
    "solution": (),
}
"""By table: keys that are carried over, or are about building an image."""

_MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


def read_harbor(folder: Path) -> Parts:
    """Return what a task of Harbor says.

    Raises:
        DocumentError: A file cannot be read.
        TaskError: Its task.toml is no TOML.
        UsageError: It has several steps.
    """
    path = folder / TASK_FILE
    data: Mapping[str, object] = {}
    if path.is_file():
        data = read_toml(path, where=str(path)).data
    if data.get("steps"):
        problem = "has several steps, and a task here has one prompt"
        raise UsageError(str(folder), problem, "make a folder of each step, with its instruction")
    parts = Parts(prompt=_without_canary(read_text(folder / HARBOR)))
    tables = {name: _table(data, name) for name in ("task", "metadata", *_READ)}
    parts.agent_s = positive(tables["agent"].get("timeout_sec"))
    parts.grading_s = positive(tables["verifier"].get("timeout_sec"))
    parts.memory_mib = _memory_mib(tables["environment"])
    parts.cpus = positive(tables["environment"].get("cpus"))
    parts.take_tags(tables["metadata"].get("tags"))
    parts.take_tags(tables["task"].get("keywords"))
    if parts.memory_mib is None and "memory" in tables["environment"]:
        told = shown(str(tables["environment"]["memory"]))
        parts.left_out.append(f"{TASK_FILE}: environment.memory {told}, which is no amount")
    for name in _READ:
        parts.left_out.extend(_unread(name, tables[name]))
    for entry in sorted(folder.iterdir()):
        if entry.name not in (HARBOR, TASK_FILE):
            more = _ADVICE.get(entry.name, "nothing here has a place for it")
            parts.left_out.append(f"{shown(entry.name)}: {more}")
    return parts


def _without_canary(text: str) -> str:
    """Return an instruction without the comments at its start that mark it as test data."""
    lines = text.splitlines(keepends=True)
    while lines and (not lines[0].strip() or _is_canary(lines[0])):
        lines.pop(0)
    return "".join(lines)


def _is_canary(line: str) -> bool:
    return line.lstrip().startswith(("<!--", "#")) and "canary" in line.casefold()


def _table(data: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _memory_mib(environment: Mapping[str, object]) -> int | None:
    found = positive(environment.get("memory_mb"))
    if found is not None:
        return max(1, int(found))
    text = environment.get("memory")
    told = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt])(?:i?b)?", str(text).strip().lower())
    return max(1, round(float(told[1]) * _MIB[told[2]])) if told else None


def _unread(name: str, table: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each key that has a value and no word here."""
    for key, value in table.items():
        if key not in _READ[name] and value not in ({}, [], "", 0, None):
            yield f"{TASK_FILE}: {name}.{shown(key)}, for which a task has no word"
