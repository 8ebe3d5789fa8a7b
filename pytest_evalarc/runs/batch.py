"""A batch under way in this process: what is staged and proven once, and the lab to grade in."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.errors import InfrastructureError, SetupError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.cache import GradingCache
from pytest_evalarc.grading.lab import FileLab, PackLab
from pytest_evalarc.grading.pack import Pack
from pytest_evalarc.grading.threads import CaseThreads
from pytest_evalarc.grading.toolchain import Toolchain, Tools
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.engine_program import place
from pytest_evalarc.isolation.host import find_bwrap
from pytest_evalarc.isolation.preflight import BARRIERS, preflight
from pytest_evalarc.model.base import SCHEMA_VERSION, Model
from pytest_evalarc.model.isolation import PreflightDoc
from pytest_evalarc.model.task import Limits, Task
from pytest_evalarc.runs.folders import Folders, gradings_folder, open_gradings
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.request import Request

if TYPE_CHECKING:
    from pytest_evalarc.clients.protocol import Client
    from pytest_evalarc.treatments.protocol import Treatment

UNBOUND = ("local", "exploratory")
"""Sandboxes that promise nothing, so nothing of them can be proven."""
USER_DATA_ROOTS = ("/home", "/root", "/mnt", "/media", "/Users", "/Volumes")


class StagedDoc(Model):
    """Says that something is staged, and in which version."""

    schema_version: str
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a batch is built from; `runs` is handed concrete things and knows none by name."""

    toolchain: Callable[[str], Toolchain]
    client: Callable[[str], Client]
    treatment: Callable[[str], Treatment]
    pack: Callable[[str], Pack]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One process's hold on a batch. Everything that is done once is behind a lock on disk."""

    request: Request
    parts: Parts
    boundary: Sandbox
    """The sandbox of checks and embedded clients, not proven yet."""
    candidates: Sandbox | None = None
    """The sandbox of packs' candidates, not proven yet; None is the same."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    threads: CaseThreads = field(default_factory=CaseThreads)
    """What the cases of packs run on; to be closed by whoever made the batch."""

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
        """The sandbox of checks and embedded clients, proven.

        Raises:
            InfrastructureError: It does not start, or does not hold what it promises.
        """
        return self.proven(self.boundary)

    def proven(self, sandbox: Sandbox) -> Sandbox:
        """Return a sandbox that was proven from inside.

        The proof is made once per batch, and again where it would be another one's: for another
        program or image, as another user, on another machine or after a restart of it.

        Raises:
            InfrastructureError: It does not start, or does not hold what it promises.
        """
        self.folders.open_work()
        if sandbox.name in UNBOUND:
            return sandbox
        name = f"preflight-{sandbox.name}-{_proven_by(sandbox)}"
        proof = once(
            self.folders.work / f"{name}.json",
            PreflightDoc,
            lambda: self._prove(sandbox, self.folders.work / name),
        )
        if proof.broken:
            broken = "; ".join(f"{barrier.name}: {barrier.detail}" for barrier in proof.broken)
            raise InfrastructureError(
                f"sandbox {sandbox.name}",
                f"it does not hold what it promises ({broken})",
                "use another sandbox, or trust the submission with --evalarc-trust-local",
            )
        return sandbox

    def _prove(self, sandbox: Sandbox, folder: Path) -> PreflightDoc:
        remove_tree(folder)
        folder.mkdir()
        try:
            return preflight(sandbox, folder)
        finally:
            remove_tree(folder)

    def lab(self, task: Task) -> FileLab | PackLab:
        """Return the lab that grades a task's submissions, what they run with staged.

        Raises:
            SetupError: The task's toolchain is not there.
            InfrastructureError: The sandbox cannot be used.
        """
        toolchain = self._toolchain(task)
        sandbox = self.sandbox if task.pack is None else self._pack_sandbox
        work = self.folders.work / "grading"
        work.mkdir(exist_ok=True)
        if task.pack is None:
            return FileLab(
                sandbox=sandbox,
                toolchain=toolchain,
                tools=self.tools(task),
                work=work,
                deny_read=self.deny_read,
                jobs=self.request.jobs,
                cancelled=self.cancelled,
                cache=self.cache,
            )
        pack = self.parts.pack(task.pack.name)
        return PackLab(
            sandbox=sandbox,
            toolchain=toolchain,
            pack=pack,
            interpreter=toolchain.interpreter(lambda: self._staged(toolchain)),
            work=work,
            deny_read=(*self.deny_read, pack.info.code),
            # A candidate waits for its host half of the time, so one more keeps the cores busy.
            jobs=self.request.jobs + 1,
            cancelled=self.cancelled,
            cache=self.cache,
            threads=self.threads,
        )

    @cached_property
    def cache(self) -> GradingCache | None:
        """The gradings that may stand for later ones; None when none may.

        Raises:
            UsageError: Their folder is not this user's own, or cannot be made.
        """
        # What runs without a boundary of ours may write anywhere in the user's folders.
        unbound = self.request.exploratory or self.request.trust_local
        if self.request.cache is None or unbound:
            return None
        open_gradings(self.request.cache)
        return GradingCache(folder=self.request.cache)

    @cached_property
    def _pack_sandbox(self) -> Sandbox:
        return self.proven(self.candidates) if self.candidates is not None else self.sandbox

    def tools(self, task: Task) -> Tools:
        """Return what the sessions and checks of a task find on PATH, staged.

        Raises:
            SetupError: The task's toolchain is not there.
            InfrastructureError: The batch began with another version.
        """
        toolchain = self._toolchain(task)
        return toolchain.tools(self._staged(toolchain))

    def _toolchain(self, task: Task) -> Toolchain:
        toolchain = self.parts.toolchain(task.toolchain)
        missing = toolchain.missing()
        if missing is not None:
            raise SetupError(f"task {task.name}: toolchain {toolchain.name}", missing)
        return toolchain

    def _staged(self, toolchain: Toolchain) -> Path:
        return self.stage(toolchain.name, toolchain.version, toolchain.stage)

    def stage(
        self, name: str, version: str, fill: Callable[[Path], None], *, folder: Path | None = None
    ) -> Path:
        """Fill `tools/common/<name>`, or another folder, once per batch and return it.

        Raises:
            InfrastructureError: The batch began with another version.
        """
        folder = folder or self.folders.tools / name

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
        name = f"client-{label}"
        if client.missing() is not None and self.is_staged(name):
            # Agents update themselves while a batch runs; it goes on with what it began with.
            return self.folders.tools / name
        version = " ".join(fact for fact in (client.version, client.sha256()) if fact)
        return self.stage(name, version, client.stage)

    def is_client_staged(self, label: str) -> bool:
        """Return whether the sessions of a label can run whatever becomes of its program."""
        return self.is_staged(f"client-{label}")

    def is_staged(self, name: str) -> bool:
        """Return whether something is staged whole."""
        return (self.folders.work / "tools" / f"{name}.json").exists()

    def treatment_tools(self, treatment: Treatment) -> Path | None:
        """Return the folder of a treatment's programs, staged; None for one that has none.

        It is no part of `tools/common`: what may read it is a treated trial, and no baseline.

        Raises:
            InfrastructureError: The batch began with another version of them.
        """
        if treatment.version is None:
            return None
        folder = self.folders.tools.with_name(treatment.name)
        name = f"treatment-{treatment.name}"
        return self.stage(name, treatment.version, treatment.fill, folder=folder)

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
            # What earlier gradings say of hidden checks is hidden too, be it used now or not.
            self.request.cache or gradings_folder(),
            self.request.project,
            # A folder of tasks can lie elsewhere, with plugins and fixtures beside it.
            self.request.tasks,
            self.request.tasks.parent / "plugins",
            self.request.tasks.parent / "fixtures",
            package,
            *environment,
        )


def _proven_by(sandbox: Sandbox) -> str:
    """Return a word for all that a proof of a sandbox holds for."""
    record, bubblewrap = sandbox.record(Limits()), find_bwrap()
    facts = (
        *(record.version, record.sha256, record.image_id),
        # The sandbox srt rests on it.
        bubblewrap.sha256 if bubblewrap is not None else None,
        *(place(), os.geteuid(), *BARRIERS),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
