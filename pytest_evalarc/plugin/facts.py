"""What must be the same on every host of a batch, or its trials are not of one plan."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc.errors import EvalArcError, TaskProblems, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.runs.plan import labelled_client

if TYPE_CHECKING:
    from pytest_evalarc.isolation.command import Sandbox
    from pytest_evalarc.plugin.session import EvalSession

PACKAGE = "pytest-evalarc"
NONE = "none"
_TASK = "task "

Facts = Mapping[str, str]
"""Each fact by what it is of, as `pytest` or `task settings-durability`; the first that differs
is told, so what explains others comes before them."""


def first_difference(own: Facts, theirs: Facts, *, host: str) -> UsageError | None:
    """Return the first fact in which a host differs, as a sentence; None when there is none.

    Args:
        own: Of the controller.
        theirs: Of the host; a fact that only one of the two has differs.
        host: How the host is called.
    """
    for name in dict.fromkeys((*own, *theirs)):
        here, there = own.get(name, NONE), theirs.get(name, NONE)
        if here != there:
            shown = printable(there, limit=400)
            problem = f"has {printable(name, limit=200)} {shown}, and the controller has {here}"
            return UsageError(f"host {host}", problem, "make both the same")
    return None


def facts_of(evals: EvalSession, tasks: Iterable[str]) -> dict[str, str]:
    """Return what this process would run some tasks with.

    Args:
        evals: The process's evals.
        tasks: Names of the tasks' folders.
    """
    names = sorted(tasks)
    return {
        PACKAGE: metadata.version(PACKAGE),
        "pytest": pytest.__version__,
        "python": platform.python_version(),
        # A task that differs explains what is needed for it.
        **{f"{_TASK}{name}": _digest(evals, name) for name in names},
        **_program_facts(evals, names),
    }


def tasks_in(facts: Facts) -> list[str]:
    """Return the names of the tasks that facts are of."""
    return [name.removeprefix(_TASK) for name in facts if name.startswith(_TASK)]


def _program_facts(evals: EvalSession, names: Iterable[str]) -> dict[str, str]:
    """Return the version of each program that trials and gradings of the tasks need."""
    facts: dict[str, str] = {}
    sandboxes = [evals.default_sandbox]
    for name in names:
        path = evals.request.tasks / name / "task.toml"
        try:
            task = evals.task(path.parent)
        except EvalArcError:
            continue
        toolchain = evals.registry.toolchains.get(task.toolchain)
        version = NONE if toolchain.missing() else toolchain.version
        facts[f"toolchain {task.toolchain}"] = version
        sandboxes.append(evals.sandbox_of(task))
        for label in evals.clients_for(path):
            client = labelled_client(label, evals.registry.clients.get)
            facts[f"client {label.label}"] = client.missing() or client.version or NONE
            sandboxes.append(evals.session_sandbox(label))
            treatment = evals.treatment(evals.plan(task, label))
            if treatment is not None:
                facts[f"treatment {treatment.name}"] = treatment.version or NONE
    return {**{f"sandbox {box.name}": _version(box) for box in sandboxes}, **facts}


def _version(sandbox: Sandbox) -> str:
    from pytest_evalarc.model.task import Limits

    try:
        record = sandbox.record(Limits())
    except EvalArcError as error:
        return str(error)
    return f"{record.version or ''} {record.image_id or ''} ({record.level})".strip()


def _digest(evals: EvalSession, name: str) -> str:
    """Return the digest over all that makes a task."""
    try:
        return evals.task(evals.request.tasks / name).ref.content_hash
    except TaskProblems:
        return "not valid"
    except (EvalArcError, OSError):
        return NONE
