"""Scripts for tasks on disk, rendered from what the task's author wrote.

Nothing of it is in any project: what a trial must not see is in the process of the test alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .scripts import Offers, Read, Says, Script, Skill, Turn, Write, turn


def solve(task: Path) -> Script:
    """Return a session that loads the task's skills, where offered, and writes its solution."""
    return Script((*_begun(task), _written(task, _solution(task))))


def half(task: Path, mutant: str | None = None) -> Script:
    """Return a session that does the same and leaves a fault.

    Args:
        task: The task's folder.
        mutant: Name of the declared mutant to write; None is the first.
    """
    return Script((*_begun(task), _written(task, _mutated(task, mutant))))


def taught(task: Path, skill: str | None = None) -> Script:
    """Return a session that solves the task where a skill is offered, and else leaves a fault.

    Args:
        task: The task's folder.
        skill: Name of that skill; None is the first that the task expects to be used.
    """
    offered = Offers(skill or _skills(task)[0])
    good = _written(task, _solution(task), when=offered)
    bad = _written(task, _mutated(task, None), unless=offered)
    return Script((*_begun(task), good, bad))


def by_task(tasks: Iterable[Path], make: Callable[[Path], Script]) -> Script:
    """Return one script for sessions of several tasks, each told by its prompt."""
    parts = (make(task).only(when=Says(_prompt(task))) for task in tasks)
    return sum(parts, Script(()))


def _prompt(task: Path) -> str:
    document = _document(task)
    text = document.get("prompt") or (task / document["prompt_file"]).read_text("utf-8")
    return text.strip().splitlines()[0]


def _begun(task: Path) -> tuple[Turn, ...]:
    """Return what comes before writing: the skills, and each file that will be overwritten."""
    starter = task / "starter"
    reads = [Read(path) for path in _solution(task) if (starter / path).exists()]
    skills = [turn(Skill(name)) for name in _skills(task)]
    return (*skills, turn(*reads))


def _written(task: Path, files: dict[str, str], **conditions: Any) -> Turn:
    return turn(*(Write(path, content) for path, content in files.items()), **conditions)


def _skills(task: Path) -> list[str]:
    return list(_document(task).get("expected", {}).get("used", ()))


def _solution(task: Path) -> dict[str, str]:
    return _files(task / "solution")


def _mutated(task: Path, name: str | None) -> dict[str, str]:
    """Return the files of the solution with the fault of a mutant in them."""
    mutants = _document(task)["mutants"]
    mutant = next(entry for entry in mutants if name in (None, entry["name"]))
    files = _solution(task)
    if "overlay" in mutant:
        files |= _files(task / mutant["overlay"])
    for edit in mutant.get("edits", ()):
        text = files[edit["file"]]
        if text.count(edit["find"]) != 1:
            raise ValueError(f"{task.name}, {mutant['name']}: no unique {edit['find']!r}")
        files[edit["file"]] = text.replace(edit["find"], edit["replace"])
    return files


def _files(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


def _document(task: Path) -> dict[str, Any]:
    return tomllib.loads((task / "task.toml").read_text("utf-8"))
