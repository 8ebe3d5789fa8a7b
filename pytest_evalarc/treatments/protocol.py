"""The seam of all treatments: what one puts in place, what it sees, what it decides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import UsageError
from pytest_evalarc.isolation.command import Command
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin, Task
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import Expectations, SymposiumRef, TreatmentRef


@dataclass(frozen=True, kw_only=True)
class Staged:
    """What a treatment put in place before the client started."""

    planned: Mapping[str, str]
    """Content digest by skill: all that the client is offered."""
    project: Path
    skill_folder: str
    """Where the skills are, as a POSIX path below the project."""
    reads: tuple[Path, ...] = ()
    """Further paths that the client must be able to read."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the client's environment."""
    links: Mapping[str, Path] = field(default_factory=dict)
    """Staged programs that the session finds on PATH, by name."""
    init: tuple[Command, ...] = ()
    """What is run inside the trial's sandbox before the client, in this order; each must exit
    with 0."""
    plugins: tuple[Path, ...] = ()
    """Plugin folders that the client is told to load."""
    offers: Offered = field(default_factory=Offered)
    """All that the client may list at its start because of this treatment."""
    symposium: SymposiumRef | None = None
    """The Symposium under evaluation."""

    @property
    def skill_dir(self) -> Path:
        """The folder that holds the skills."""
        return self.project / self.skill_folder

    @property
    def digest(self) -> str:
        """Digest over the name and content of every skill."""
        return hashlib.sha256(json.dumps(sorted(self.planned.items())).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was observed of a session, from which expectations are decided."""

    transcript: Transcript
    skill_folder: str = ""
    planned: Mapping[str, str] = field(default_factory=dict)
    """Content digest by skill, as it was put in place."""
    found: Mapping[str, str] = field(default_factory=dict)
    """Content digest by name, as the session left it; empty for what cannot be read as a skill."""
    config: tuple[str, ...] = ()
    """Watched configuration that the session changed, each with how, sorted."""

    def is_changed(self, skill: str) -> bool:
        """Whether the session left a skill otherwise than it found it."""
        return self.planned.get(skill) != self.found.get(skill)

    @property
    def config_changes(self) -> tuple[str, ...]:
        """Configuration, then skills, that the session altered, removed or added."""
        names = sorted(self.planned.keys() | self.found.keys())
        skills = (
            f"{self.skill_folder}/{name}: {self._change(name)}"
            for name in names
            if self.is_changed(name)
        )
        return (*self.config, *skills)

    def _change(self, skill: str) -> str:
        if skill not in self.planned:
            return "added"
        return "altered" if skill in self.found else "removed"


class Treatment(Protocol):
    """What the treated configuration has and its baseline lacks."""

    @property
    def name(self) -> str:
        """The treatment's name, as `skills`."""
        ...

    def supports(self, needs: Needs, *, embedded: bool) -> str | None:
        """Return why a client cannot be treated, as a sentence; None when it can."""
        ...

    def missing(self) -> str | None:
        """Return why it cannot be put in place on this host, as a sentence; None when it can."""
        ...

    @property
    def version(self) -> str | None:
        """What tells the programs of one treatment from another's; None when it has none."""
        ...

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the treatment's programs, which no baseline may call."""
        ...

    def with_program(self, program: Path) -> Treatment:
        """Return this treatment with another program of the host's.

        Raises:
            UsageError: It has none.
        """
        ...

    def fill(self, folder: Path) -> None:
        """Put the treatment's programs into an empty folder that no baseline can read."""
        ...

    def prelaunch(
        self, layout: RunLayout, needs: Needs, *, treated: bool, env: Mapping[str, str]
    ) -> None:
        """Prove of a fresh trial that nothing of a treatment reaches it yet.

        Called in every configuration, before anything is staged.

        Args:
            layout: The trial's folders.
            needs: What the client looks for, and where.
            treated: Whether the treatment is put in place afterwards.
            env: The environment of the session to come, without the client's credentials.

        Raises:
            SetupError: Something is already there; names it.
        """
        ...

    def stage(
        self,
        task: Task,
        needs: Needs,
        layout: RunLayout,
        *,
        env: Mapping[str, str],
        tools: Path | None = None,
        noise: Sequence[Plugin] = (),
    ) -> Staged:
        """Put the treatment in place.

        Args:
            task: The task whose plugins are offered.
            needs: Where the client looks for them.
            layout: The trial's folders.
            env: The environment of the session to come, without the client's credentials.
            tools: The folder that `fill` filled; None for a treatment without programs.
            noise: Plugins that are offered beside the task's own.

        Raises:
            SetupError: A plugin cannot be read or placed, or something is already there.
        """
        ...

    def verify(self, staged: Staged) -> None:
        """Prove that the client will find what was planned, and nothing else.

        Called when everything of `init` has been run.

        Raises:
            SetupError: Something is missing, differs or is there beside it.
        """
        ...

    def collect(
        self,
        staged: Staged | None,
        layout: RunLayout,
        transcript: Transcript,
        *,
        config: tuple[str, ...] = (),
    ) -> Evidence:
        """Return what the session left.

        Args:
            staged: What was put in place; None in the baseline.
            layout: The trial's folders; nothing writes to them any more.
            transcript: What the client said.
            config: Watched configuration that the session changed.
        """
        ...

    def decide(self, expected: Expected, evidence: Evidence) -> Expectations:
        """Return each expectation's verdict, with what it rests on; looks at nothing else."""
        ...

    def ref(self, staged: Staged) -> TreatmentRef:
        """Return how results name what was put in place."""
        ...


class TreatmentBase:
    """What a treatment answers that brings files alone; a convenience, not a duty."""

    name: str
    version: str | None = None
    programs: tuple[str, ...] = ()

    def with_program(self, program: Path) -> Treatment:
        """Refuse the program.

        Raises:
            UsageError: Always: nothing would run it.
        """
        problem = f"is for the treatment symposium, and this is {self.name}"
        raise UsageError(f"--evalarc-symposium {program}", problem, "take the option out")

    def missing(self) -> str | None:
        """Return None: nothing is needed of the host."""
        return None

    def fill(self, folder: Path) -> None:
        """Leave the folder empty."""
