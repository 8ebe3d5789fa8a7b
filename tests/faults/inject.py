"""A session that goes wrong at one of its system calls, is resumed, and is looked at afterwards.

The faults come from a library that is preloaded into the session, and so from below everything
that Python does: a file object, `os` and `subprocess` all end in the same few functions of the C
library. A wrapper in Python would miss what is written by its own interpreter's C code, as every
file object's content is.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.isolation.limits import GROUP_PREFIX, hierarchy
from pytest_evalarc.reporting.verify import documents_in, verify
from tests.plugin.project import Project

SHIM = Path(__file__).with_name("shim.c")
CHANGES = ("create", "write", "fsync", "rename", "link", "unlink", "mkdir", "fork")
"""The kinds of calls between which a process can die with a difference."""
TRIALS = 2
RUN = (
    *("evals", "--evalarc-batch=night", "--evalarc-client=good", f"--evalarc-trials={TRIALS}"),
    *("-q", "-m", "evalarc_trial", "-p", "no:cacheprovider"),
)
PLANNED = {
    f"trial-{number}-{configuration}"
    for number in range(1, TRIALS + 1)
    for configuration in ("without-skills", "with-skills")
}
LEFTOVER = re.compile(r"\..*\.(tmp|begun)|\.latest-\d+")
"""Names of what is there only while something is being written."""


class Call(NamedTuple):
    """A system call that counted."""

    number: int
    pid: int
    kind: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong, and where."""

    at: int
    """The number of the call among those of its kinds, from 1."""
    kinds: tuple[str, ...] = CHANGES
    error: int | None = None
    """The errno that the call returns; None is a process that is killed before it."""
    lasting: bool = False
    """Whether every later call of these kinds returns it too, as on a full disk."""
    workers: int = 0
    """How many processes of pytest-xdist run the session."""

    def __str__(self) -> str:
        what = "SIGKILL" if self.error is None else errno.errorcode[self.error]
        further = " and all that follow" if self.lasting else ""
        return f"{what} at {'/'.join(self.kinds)} call {self.at}{further}"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A session that has ended."""

    status: int
    output: str
    calls: tuple[Call, ...] = ()
    fired: int = 0
    """How many calls went wrong."""


@dataclass(kw_only=True)
class Outcome:
    """What became of a fault."""

    fault: Fault
    fired: int
    status: int
    """Of the session that it was injected into."""
    broken: list[str] = field(default_factory=list)
    """Which promises were broken, each as a sentence."""


def compiler() -> str | None:
    """Return the C compiler of this machine, or None."""
    return shutil.which("cc")


def build(folder: Path) -> Path:
    """Return the library that injects faults, compiled."""
    library = folder / "shim.so"
    argv = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", library, SHIM]
    subprocess.run([*argv, "-ldl"], check=True, capture_output=True)
    return library


class Faulty(Project):
    """A project whose sessions can go wrong at a call."""

    def __init__(self, folder: Path, library: Path) -> None:
        super().__init__(folder / "project", folder / "trials")
        self._library = library
        self._folder = folder
        self._more: dict[str, str] = {}

    @property
    def env(self) -> dict[str, str]:
        """The environment of the sessions, with what the library is asked."""
        return {**super().env, **self._more}

    @property
    def batch(self) -> Path:
        """The folder of the batch's results."""
        return self.results / "hello/good/night"

    def session(self, fault: Fault | None = None, *more: str) -> Seen:
        """Run the batch, or go on with it, and let it go wrong where that is asked."""
        state, log = self._folder / "state", self._folder / "calls"
        state.write_bytes(bytes(16))
        log.write_bytes(b"")
        self._more = self._asked(fault or Fault(at=0), state, log)
        workers = ("-n", str(fault.workers)) if fault and fault.workers else ()
        process = self.start(*RUN, *workers, *more)
        output, _ = process.communicate(timeout=300)
        self._more = {}
        return Seen(
            status=process.returncode,
            output=output,
            calls=tuple(_calls(log.read_text("utf-8", "replace"))),
            fired=int.from_bytes(state.read_bytes()[8:], "little"),
        )

    def _asked(self, fault: Fault, state: Path, log: Path) -> dict[str, str]:
        asked = {
            "LD_PRELOAD": self._library,
            "FAULT_UNDER": f"{self.results}:{self.eval_root}",
            "FAULT_STATE": state,
            "FAULT_LOG": log,
            "FAULT_KINDS": ",".join(fault.kinds),
            "FAULT_AT": fault.at,
            "FAULT_LASTING": int(fault.lasting),
        }
        if fault.error is not None:
            asked["FAULT_ERRNO"] = fault.error
        return {name: str(value) for name, value in asked.items()}

    def kept(self) -> dict[str, str]:
        """Return the digest of every file of the trials that have a result, by path."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for result in self.batch.glob("*/result.json")
            for path in result.parent.rglob("*")
            if path.is_file() and not LEFTOVER.fullmatch(path.name)
        }


def inject(project: Faulty, fault: Fault) -> Outcome:
    """Let a session of a fresh project go wrong, go on with its batch, and look at both."""
    seen = project.session(fault)
    outcome = Outcome(fault=fault, fired=seen.fired, status=seen.status)
    outcome.broken += after_the_fault(project, fault, seen)
    kept = project.kept()
    resumed = project.session()
    outcome.broken += after_resuming(project, kept, seen, resumed)
    return outcome


def after_the_fault(project: Faulty, fault: Fault, seen: Seen) -> Iterator[str]:
    """Yield what must not be so once a session has gone wrong."""
    if left := project.survivors():
        yield f"processes are left: {left}"
    if below := mounts_below(project.eval_root):
        yield f"mounts are left: {below}"
    if held := held_locks(project):
        yield f"locks are held: {held}"
    if not seen.fired:
        return
    if fault.error is not None:
        yield from _untold(project, fault, seen)
    elif not fault.workers and seen.status != -9:
        yield f"the killed session ended with {seen.status}"


def _untold(project: Faulty, fault: Fault, seen: Seen) -> Iterator[str]:
    """Yield how a session fails to say what went wrong; a fault may also do no harm at all."""
    if "Traceback (most recent call last)" in seen.output or "INTERNALERROR" in seen.output:
        yield f"there is a traceback: {seen.output[-3000:]}"
    assert fault.error is not None
    reason = os.strerror(fault.error)
    results = project.trial_results()
    if seen.status == 0:
        # A grading that broke is a measurement that is missing, and can be taken again.
        untold = [
            name
            for name, result in results.items()
            if result["outcome"] != "succeeded"
            and not (
                result["outcome"] == "excluded_grading" and reason in result["cause"]["detail"]
            )
        ]
        if untold or set(results) != PLANNED:
            yield f"the session succeeded with {sorted(results)}, of which {untold} did not"
        yield from _uncounted(project)
        return
    told = seen.output + json.dumps(results)
    if seen.status < 0 or reason not in told:
        yield f"nobody says {reason!r}, status {seen.status}: {seen.output[-3000:]}"


def after_resuming(
    project: Faulty, kept: dict[str, str], seen: Seen, resumed: Seen
) -> Iterator[str]:
    """Yield what must not be so once the batch has been gone on with."""
    if resumed.status not in (0, 1) or "Traceback (most recent" in resumed.output:
        yield f"going on ended with {resumed.status}: {resumed.output[-3000:]}"
    now = project.kept()
    if changed := sorted(path for path, digest in kept.items() if now.get(path) != digest):
        yield f"what was finished has changed: {changed}"
    results = project.trial_results()
    if set(results) != PLANNED:
        yield f"the trials are {sorted(results)}"
    yield from _unexplained(results)
    starts = project.starts()
    if len(set(starts)) != len(starts):
        yield f"a client was started twice: {starts}"
    yield from _uncounted(project)
    left = [path for path in project.results.rglob(".*") if LEFTOVER.fullmatch(path.name)]
    if left or project.eval_root.exists():
        at_work = sorted(map(str, project.eval_root.rglob("*")))
        yield f"unfinished files are left: {sorted(map(str, left))} {at_work}"
    if left := project.survivors():
        yield f"processes are left: {left}"
    if groups := groups_of({call.pid for call in (*seen.calls, *resumed.calls)}):
        yield f"control groups are left: {groups}"
    whole = {"trajectory.json", "transcript.jsonl", "submission.json", "response.txt"}
    for name, result in results.items():
        if result["outcome"] == "succeeded":
            missing = whole - {path.name for path in (project.batch / name).iterdir()}
            if missing:
                yield f"{name} lacks {sorted(missing)}"


def _unexplained(results: dict[str, dict]) -> Iterator[str]:
    for name, result in results.items():
        if result["outcome"] != "succeeded" and not (result["cause"] or {}).get("detail"):
            yield f"{name} is {result['outcome']} without a cause"


def _uncounted(project: Faulty) -> Iterator[str]:
    """Yield how the benchmark is not what its trials say."""
    try:
        for path in documents_in(project.results):
            yield from (f"{path}: {disagreement}" for disagreement in verify(path))
    except EvalArcError as error:
        yield f"verify: {error}"
        return
    counted = json.loads((project.batch / "benchmark.json").read_bytes())["configurations"]
    if sum(each["planned"] for each in counted.values()) != len(PLANNED):
        yield f"the counts are {counted}"


def mounts_below(folder: Path) -> list[str]:
    """Return where something is mounted below a folder."""
    lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    return [point for point in (line.split()[4] for line in lines) if point.startswith(f"{folder}")]


def held_locks(project: Project) -> list[str]:
    """Return the lock files that somebody holds."""
    held = []
    for folder in (project.results, project.eval_root):
        for path in folder.rglob("*.lock"):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    held.append(str(path))
    return held


def groups_of(pids: set[int]) -> list[str]:
    """Return the control groups that processes have made."""
    place = hierarchy()
    parents = set(place.parents.values()) if place else set()
    return [
        str(folder)
        for parent in parents
        for folder in parent.glob(f"{GROUP_PREFIX}*")
        if int(folder.name.removeprefix(GROUP_PREFIX).partition("-")[0]) in pids
    ]


def _calls(log: str) -> Iterator[Call]:
    for line in log.splitlines():
        number, pid, kind, path = line.split(" ", 3)
        yield Call(int(number), int(pid), kind, path)


def numbered(calls: Sequence[Call], kind: str, name: str) -> list[int]:
    """Return the numbers of the calls of a kind whose path ends with a name, in order."""
    return sorted(call.number for call in calls if call.kind == kind and call.path.endswith(name))
