"""Results of other programs as measurements: a Harbor job, an Inspect log, a JUnit file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.measured import Measured, MeasuredConditions, MeasuredRow, Part

CONFIGURATION = "baseline"
"""They tell of no treatment."""
_OUT_OF_TIME = "AgentTimeoutError"
"""Harbor's word for an agent that used its time up, which is the agent's failure."""
_INSPECT_VERDICTS: Mapping[object, bool] = {"C": True, "I": False, "P": False, "N": False}
"""What Inspect's scorers say: correct, incorrect, partly correct, no answer."""


class Attempt(NamedTuple):
    """One try at one thing; `passed` is None where nobody can tell."""

    part: Part
    name: str
    passed: bool | None


def read_foreign(path: Path) -> tuple[Measured, ...]:
    """Return what another program measured; nothing for what is none of the known forms.

    Args:
        path: A Harbor job's folder, an Inspect log in JSON, or a JUnit file.

    Raises:
        DocumentError: It begins like one of them, and cannot be read as that.
    """
    if path.is_dir():
        return _harbor(path)
    if path.suffix == ".xml":
        return (_junit(path),)
    if path.suffix == ".json":
        document = loads(_bytes(path), where=str(path))
        if isinstance(document, dict) and {"eval", "status"} <= document.keys():
            return (_inspect(document, path),)
    return ()


def _measured(
    attempts: Iterable[Attempt],
    *,
    task: str,
    client: str,
    batch: str,
    conditions: MeasuredConditions,
    is_partial: bool = False,
) -> Measured:
    tallies: dict[tuple[Part, str], list[int]] = {}
    for part, name, passed in attempts:
        tally = tallies.setdefault((part, name), [0, 0])
        if passed is not None:
            tally[0] += passed
            tally[1] += 1
    return Measured(
        schema_version=SCHEMA_VERSION,
        kind="imported",
        task=task,
        client=client,
        batch=batch,
        selection="partial" if is_partial else "complete",
        conditions=conditions,
        rows=tuple(
            MeasuredRow(
                configuration=CONFIGURATION, part=part, name=name, passed=passed, judged=judged
            )
            for (part, name), (passed, judged) in tallies.items()
        ),
    )


# Harbor.


def _harbor(folder: Path) -> tuple[Measured, ...]:
    """Return a measurement for each task and agent of a job; trials lie in folders of their own."""
    trials: dict[tuple[str, str], list[Mapping[str, JsonValue]]] = {}
    for path in sorted(folder.glob("*/result.json")):
        document = loads(_bytes(path), where=str(path))
        if (
            not isinstance(document, dict)
            or not {"task_name", "verifier_result"} <= document.keys()
        ):
            continue
        task, agent = document["task_name"], _table(document, "agent_info").get("name")
        if not isinstance(task, str):
            problem = "is no text"
            raise DocumentError(f"{path}: task_name", problem, "name a Harbor job's folder")
        trials.setdefault((task, str(agent or "harbor")), []).append(document)
    return tuple(
        _measured(
            (Attempt("success", "success", _rewarded(trial)) for trial in found),
            task=task,
            client=agent,
            batch=folder.name,
            conditions=_harbor_conditions(found),
        )
        for (task, agent), found in trials.items()
    )


def _harbor_conditions(trials: Iterable[Mapping[str, JsonValue]]) -> MeasuredConditions:
    found = list(trials)
    agents = [_table(trial, "agent_info") for trial in found]
    return MeasuredConditions(
        task=_joined(trial.get("task_checksum") for trial in found),
        client_version=_joined(agent.get("version") for agent in agents),
        model=_joined(_table(agent, "model_info").get("name") for agent in agents),
    )


def _rewarded(trial: Mapping[str, JsonValue]) -> bool | None:
    rewards = _table(_table(trial, "verifier_result"), "rewards")
    reward = rewards.get(
        "reward", next(iter(rewards.values()), None) if len(rewards) == 1 else None
    )
    if isinstance(reward, (int, float)):
        return reward >= 1
    exception = _table(trial, "exception_info").get("exception_type")
    return False if exception == _OUT_OF_TIME else None


# Inspect.


def _inspect(document: Mapping[str, JsonValue], path: Path) -> Measured:
    facts = _table(document, "eval")
    task, samples = facts.get("task"), document.get("samples")
    if not isinstance(task, str) or not isinstance(samples, list):
        problem = "holds no task or no samples, as a log of the header alone"
        raise DocumentError(str(path), problem, "write the log with its samples")
    attempts = [
        attempt
        for sample in samples
        if isinstance(sample, dict)
        for attempt in _sample_attempts(sample)
    ]
    version, model = facts.get("task_version"), facts.get("model")
    return _measured(
        attempts,
        task=task,
        client="inspect",
        batch=path.stem,
        conditions=MeasuredConditions(
            task=None if version is None else f"version {version}",
            model=model if isinstance(model, str) else None,
        ),
        is_partial=document.get("status") != "success",
    )


def _sample_attempts(sample: Mapping[str, JsonValue]) -> Iterable[Attempt]:
    """Yield a sample's verdict by each scorer; one that broke was not judged."""
    name, scores = str(sample.get("id")), _table(sample, "scores")
    if not scores:
        yield Attempt("check", name, None)
    for scorer, score in scores.items():
        shown = name if len(scores) == 1 else f"{name}.{scorer}"
        value = score.get("value") if isinstance(score, dict) else None
        yield Attempt("check", shown, _inspect_verdict(value))


def _inspect_verdict(value: JsonValue) -> bool | None:
    if isinstance(value, (bool, int, float)):
        return value >= 1
    return _INSPECT_VERDICTS.get(value) if isinstance(value, str) else None


# JUnit.


def _junit(path: Path) -> Measured:
    data = _bytes(path)
    # What entities expand to has no bound, and no test report declares any.
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise DocumentError(str(path), "declares a document type", "name a plain JUnit file")
    try:
        root = ET.fromstring(data)
    except ET.ParseError as error:
        raise DocumentError(str(path), f"is no XML: {error}", "restore the file") from error
    if root.tag not in ("testsuites", "testsuite"):
        raise DocumentError(str(path), f"begins with <{root.tag}>", "name a JUnit file")
    suite = root if root.tag == "testsuite" else root.find("testsuite")
    name = suite.get("name") if suite is not None else None
    return _measured(
        (_junit_attempt(case) for case in root.iter("testcase")),
        task=name or path.stem,
        client="junit",
        batch=path.stem,
        conditions=MeasuredConditions(),
    )


def _junit_attempt(case: ET.Element) -> Attempt:
    owner, name = case.get("classname"), case.get("name") or ""
    shown = f"{owner}::{name}" if owner else name
    if case.find("skipped") is not None:
        return Attempt("check", shown, None)
    is_red = case.find("failure") is not None or case.find("error") is not None
    return Attempt("check", shown, not is_red)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, "name a file of results") from error


def _table(document: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    """Return an object below a key; an empty one for what is none."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _joined(values: Iterable[object]) -> str | None:
    """Return the different values, as `a + b`; None where there is none."""
    return " + ".join(sorted({str(value) for value in values if value is not None})) or None
