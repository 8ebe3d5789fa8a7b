"""A batch under way in this process: what is staged and proven once, and the lab to grade in."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.errors import InfrastructureError, SetupError, UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.lab import FileLab
from pytest_evalarc.grading.toolchain import Toolchain
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.preflight import preflight
from pytest_evalarc.model.base import SCHEMA_VERSION, Model
from pytest_evalarc.model.isolation import PreflightDoc
from pytest_evalarc.model.task import Task
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.request import Request
from pytest_evalarc.treatments.protocol import Treatment

USER_DATA_ROOTS = ("/home", "/root", "/mnt", "/media", "/Users", "/Volumes")


class StagedDoc(Model):
    """Says that something is staged, and in which version."""

    schema_version: str
    name: str
    version: str


def sandbox_name(request: Request) -> str:
    """Return the sandbox of graded code and embedded clients.

    Raises:
        UsageError: `local` without `--evalarc-trust-local`.
    """
    if request.sandbox == "auto":
        return "local" if request.trust_local else "bwrap"
    if request.sandbox == "local" and not request.trust_local:
        raise UsageError(
            "--evalarc-sandbox local",
            "would run submissions without any boundary",
            "add --evalarc-trust-local if you trust them",
        )
    return request.sandbox


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a batch is built from; `runs` is handed concrete things and knows none by name."""

    toolchain: Callable[[str], Toolchain]
    client: Callable[[str], Client]
    treatment: Callable[[str], Treatment]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One process's hold on a batch. Everything that is done once is behind a lock on disk."""

    request: Request
    parts: Parts
    boundary: Sandbox
    """The sandbox of graded code and embedded clients, not proven yet."""
    cancelled: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def folders(self) -> Folders:
        """Where everything is."""
        return Folders(
            eval_root=self.request.eval_root,
            results=self.request.results,
            batch=self.request.batch,
        )

    @cached_property
    def sandbox(self) -> Sandbox:
        """The sandbox, proven from inside; the proof is made once per batch.

        Raises:
            InfrastructureError: It does not start, or does not hold what it promises.
        """
        self.folders.open_work()
        sandbox = self.boundary
        if sandbox.name == "local":
            return sandbox
        proof = once(
            self.folders.work / f"preflight-{sandbox.name}.json",
            PreflightDoc,
            lambda: self._prove(sandbox),
        )
        if proof.broken:
            broken = "; ".join(f"{barrier.name}: {barrier.detail}" for barrier in proof.broken)
            raise InfrastructureError(
                f"sandbox {sandbox.name}",
                f"it does not hold what it promises ({broken})",
                "use another sandbox, or trust the submission with --evalarc-trust-local",
            )
        return sandbox

    def _prove(self, sandbox: Sandbox) -> PreflightDoc:
        folder = self.folders.work / "preflight"
        remove_tree(folder)
        folder.mkdir()
        try:
            return preflight(sandbox, folder)
        finally:
            remove_tree(folder)

    def lab(self, task: Task) -> FileLab:
        """Return the lab that grades a task's submissions, its tools staged.

        Raises:
            SetupError: The task's toolchain is not there.
            InfrastructureError: The sandbox cannot be used.
        """
        toolchain = self.parts.toolchain(task.toolchain or "")
        missing = toolchain.missing()
        if missing is not None:
            raise SetupError(f"task {task.name}: toolchain {toolchain.name}", missing)
        sandbox = self.sandbox
        work = self.folders.work / "grading"
        work.mkdir(exist_ok=True)
        return FileLab(
            sandbox=sandbox,
            toolchain=toolchain,
            tools=toolchain.tools(self.stage(toolchain.name, toolchain.version, toolchain.stage)),
            work=work,
            deny_read=self.deny_read,
            jobs=self.request.jobs,
            cancelled=self.cancelled,
        )

    def stage(self, name: str, version: str, fill: Callable[[Path], None]) -> Path:
        """Fill `tools/common/<name>` once per batch and return it.

        Raises:
            InfrastructureError: The batch began with another version.
        """
        folder = self.folders.tools / name

        def produce() -> StagedDoc:
            # What a process that died has begun is of no use.
            remove_tree(folder)
            folder.mkdir(parents=True)
            fill(folder)
            return StagedDoc(schema_version=SCHEMA_VERSION, name=name, version=version)

        staged = once(self.folders.work / "tools" / f"{name}.json", StagedDoc, produce)
        if staged.version != version:
            raise InfrastructureError(
                str(folder),
                f"holds {name} {printable(staged.version)}, and this is {version}",
                "go on with the version that the batch began with, or name another batch",
            )
        return folder

    def client_program(self, label: str, client: Client) -> Path:
        """Return the folder that holds what the sessions of a label run from, staged.

        Raises:
            InfrastructureError: The batch began with another version or program of the client.
        """
        version = " ".join(fact for fact in (client.version, client.sha256()) if fact)
        return self.stage(f"client-{label}", version, client.stage)

    @cached_property
    def deny_read(self) -> tuple[Path, ...]:
        """What no process of a trial or a grading may read, whatever surrounds it."""
        package = Path(sys.modules["pytest_evalarc"].__file__ or "").parent
        environment = (Path(sys.prefix),) if sys.prefix != sys.base_prefix else ()
        return (
            *(Path(root) for root in USER_DATA_ROOTS),
            *self.request.deny_read,
            self.folders.eval_root,
            self.folders.results,
            self.request.project,
            # A folder of tasks can lie elsewhere, with plugins and fixtures beside it.
            self.request.tasks,
            self.request.tasks.parent / "plugins",
            self.request.tasks.parent / "fixtures",
            package,
            *environment,
        )
