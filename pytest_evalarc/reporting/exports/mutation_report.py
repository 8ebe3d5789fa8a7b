"""Audits as a mutation testing report, which the viewers around Stryker read.

Format: mutation-testing-report-schema, version 2, of stryker-mutator/mutation-testing-elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc import __version__
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.audit import Audit, MutantAudit
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.task import Edit, Mutant, Task

_LANGUAGES = {"python": "python", "rust": "rust", "node": "javascript"}


def mutation_report_of(audits: Sequence[Audit], tasks: Mapping[str, Task]) -> bytes:
    """Return audits as the bytes of one report, whose score is theirs.

    A mutant that is not detected is `Survived`, whatever its class, which stands in the reason:
    their `RuntimeError` and `Timeout` would leave it out of the score, or count it as caught. A
    mutant whose place in the source is known is shown there; all others are lines of a list.

    Args:
        audits: Each of another task, and each with a score.
        tasks: By name, the tasks whose content hash is that of their audit; others may be absent.

    Raises:
        UsageError: An audit has no score, so a report would show one that is none.
    """
    for audit in audits:
        if audit.mutation_score is None:
            problem = f"has no mutation score: {audit.reason or 'it is not complete'}"
            raise UsageError(f"the audit of {audit.task.name}", problem, "mend it, and audit again")
    files: JsonObject = {}
    for audit in audits:
        files |= dict(_files(audit, tasks.get(audit.task.name)))
    return dumps(
        {
            "schemaVersion": "2",
            "thresholds": {"high": 100, "low": 80},
            "files": files,
            "testFiles": {path: tests for audit in audits for path, tests in _tests(audit)},
            "framework": {"name": "pytest-evalarc", "version": __version__},
        }
    )


def _files(audit: Audit, task: Task | None) -> Iterator[tuple[str, JsonValue]]:
    """Yield each file with mutants in it, by its path below the task."""
    declared = {mutant.name: mutant for mutant in task.mutants} if task else {}
    placed: dict[str, list[JsonValue]] = {}
    sources: dict[str, str] = {}
    listed: list[MutantAudit] = []
    for mutant in audit.mutants:
        edit = _first_edit(declared.get(mutant.name))
        source = _source(task, edit.file) if task and edit else None
        if task is None or edit is None or source is None:
            listed.append(mutant)
            continue
        path, text = source
        sources[path] = text
        location = _location(text, edit.find)
        more: JsonObject = {"replacement": edit.replace}
        placed.setdefault(path, []).append(_mutant(audit, mutant, location, more))
    language = _LANGUAGES.get(task.toolchain, "text") if task else "text"
    for path, mutants in placed.items():
        where = f"{audit.task.name}/{path}"
        yield where, {"language": language, "source": sources[path], "mutants": mutants}
    if listed:
        yield f"{audit.task.name}/mutants", _list(audit, listed)


def _first_edit(mutant: Mutant | None) -> Edit | None:
    """Return where a mutant is shown; one that is an overlay has no one place."""
    return mutant.edits[0] if mutant and mutant.edits else None


def _source(task: Task, file: str) -> tuple[str, str] | None:
    """Return a file of the reference with its path below the task; None for what is no text."""
    for folder in (task.solution, task.starter):
        path: Path = folder / file
        if path.is_file():
            try:
                return f"{folder.name}/{file}", path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                return None
    return None


def _list(audit: Audit, mutants: Sequence[MutantAudit]) -> JsonObject:
    """Return a list of mutants as a file: a line for each, which is its place."""
    lines = [f"{mutant.name}: a fault of {mutant.target_dimension}" for mutant in mutants]
    found: list[JsonValue] = [
        _mutant(audit, mutant, _span((number, 1), (number, len(line) + 1)), {})
        for number, (mutant, line) in enumerate(zip(mutants, lines, strict=True), start=1)
    ]
    return {"language": "text", "source": "\n".join(lines) + "\n", "mutants": found}


def _mutant(
    audit: Audit, mutant: MutantAudit, location: JsonObject, more: JsonObject
) -> JsonObject:
    covering = [check for check, names in audit.checks.items() if mutant.target_dimension in names]
    word = "" if mutant.class_ in ("detected", "survived") else f"{mutant.class_}: "
    killed: list[str] = list(mutant.failing_cases) if mutant.killed else []
    return {
        "id": f"{audit.task.name}/{mutant.name}",
        "mutatorName": mutant.target_dimension,
        "description": mutant.name,
        "location": location,
        "status": "Killed" if mutant.killed else "Survived",
        "statusReason": printable(word + mutant.reason),
        "coveredBy": [_test_id(audit, check) for check in covering],
        "killedBy": [_test_id(audit, check) for check in killed],
        **more,
    }


def _tests(audit: Audit) -> Iterator[tuple[str, JsonValue]]:
    tests: list[JsonValue] = [
        {"id": _test_id(audit, check), "name": check} for check in audit.checks
    ]
    yield f"{audit.task.name}/checks", {"tests": tests}


def _test_id(audit: Audit, check: str) -> str:
    return f"{audit.task.name}/{check}"


def _location(text: str, find: str) -> JsonObject:
    """Return where a text that occurs once begins, and where what follows it begins."""
    start = text.index(find)
    return _span(_position(text, start), _position(text, start + len(find)))


def _span(start: tuple[int, int], end: tuple[int, int]) -> JsonObject:
    return {
        "start": {"line": start[0], "column": start[1]},
        "end": {"line": end[0], "column": end[1]},
    }


def _position(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
