"""What decides a grading, as one digest: two that differ in anything have different keys."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.grading.judges import identity
from pytest_evalarc.grading.lab import FileLab, PackLab
from pytest_evalarc.grading.scope import Scope
from pytest_evalarc.grading.submission import Submission, starter_manifest
from pytest_evalarc.model.task import Task


def grading_key(
    task: Task,
    submission: Submission,
    lab: FileLab | PackLab,
    *,
    scope: Scope,
    facts: Mapping[str, JsonValue],
    turn: int,
) -> str | None:
    """Return the digest of all that decides a grading; None when not all of it is known.

    Args:
        task: The task. Its content hash is of when it was read, so what a grading reads of it is
            looked at again.
        submission: What was left.
        lab: What grades. A toolchain that does not say what its verdicts rest on has no key.
        scope: The checks and seeds that are asked for.
        facts: What the grading says of task and lab: digests of the grader and of the checks, the
            sandbox, and the runtime with its limits.
        turn: Which of several gradings of the same this is.

    Raises:
        OSError: A program or a file of the task is gone.
        EvalArcError: A folder cannot be read.
    """
    tools = _tools(lab)
    if tools is None:
        return None
    ingredients = {
        "turn": turn,
        "package": package_digest(),
        "submission": submission.sha256,
        "task": asdict(task),
        "task files": _task_files(task),
        "scope": [_sorted(scope.checks), _sorted(scope.seeds)],
        "facts": dict(facts),
        "tools": tools,
        "deny_read": sorted({str(path) for path in lab.deny_read}),
        "parts": [_code(part) for part in (lab.toolchain, lab.sandbox)],
        "host": platform.platform(),
    }
    text = json.dumps(ingredients, default=str, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@lru_cache
def package_digest() -> str:
    """Return the digest of this package, whose every file may have a say; once in a process."""
    package = Path(sys.modules["pytest_evalarc"].__file__ or "").parent
    return read_manifest(package, skip=is_cache).sha256


def _tools(lab: FileLab | PackLab) -> JsonValue:
    """Return what a submission is run with; None when nobody says what that rests on."""
    if isinstance(lab, PackLab):
        interpreter = lab.interpreter
        if interpreter.judges is None:
            return None
        return [interpreter.word, interpreter.version, identity(interpreter.judges)]
    if lab.tools.judges is None:
        return None
    return [lab.toolchain.name, dict(lab.tools.env), identity(lab.tools.judges)]


def _task_files(task: Task) -> JsonValue:
    """Return what is in the files of a task that a grading copies, as they are now."""
    if task.pack is not None:
        return None
    fixtures: JsonValue = {
        fixture.name: read_manifest(fixture.root, skip=is_cache).sha256 for fixture in task.fixtures
    }
    return [starter_manifest(task).sha256, fixtures]


def _code(part: object) -> JsonValue:
    """Return the class of what may be anybody's, with the digest of the file it stands in."""
    kind = type(part)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    content = Path(file).read_bytes() if file else b""
    return [kind.__module__, kind.__qualname__, hashlib.sha256(content).hexdigest()]


def _sorted(values: object) -> JsonValue:
    return None if values is None else sorted(values)  # type: ignore[call-overload]
