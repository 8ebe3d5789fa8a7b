"""The seam of all treatments: what one puts in place, what it sees, what it decides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin, Task
from pytest_evalarc.model.transcript import Transcript
from pytest_evalarc.model.trial import Expectations, TreatmentRef


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

    def is_changed(self, skill: str) -> bool:
        """Whether the session left a skill otherwise than it found it."""
        return self.planned.get(skill) != self.found.get(skill)

    @property
    def config_changes(self) -> tuple[str, ...]:
        """Skills that the session altered, removed or added, each with that word, sorted."""
        names = sorted(self.planned.keys() | self.found.keys())
        return tuple(
            f"{self.skill_folder}/{name}: {self._change(name)}"
            for name in names
            if self.is_changed(name)
        )

    def _change(self, skill: str) -> str:
        if skill not in self.planned:
            return "added"
        return "altered" if skill in self.found else "removed"

    @property
    def unplanned(self) -> tuple[str, ...]:
        """Skills that the client says it offers and that nobody put there: another arm's, maybe."""
        listed = self.transcript.listed_skills or ()
        return tuple(skill for skill in listed if skill not in self.planned)


class Treatment(Protocol):
    """What the treated configuration has and its baseline lacks."""

    @property
    def name(self) -> str:
        """The treatment's name, as `skills`."""
        ...

    def supports(self, needs: Needs, *, embedded: bool) -> str | None:
        """Return why a client cannot be treated, as a sentence; None when it can."""
        ...

    def prelaunch(self, layout: RunLayout, needs: Needs, *, treated: bool) -> None:
        """Prove of a fresh trial that nothing of a treatment reaches it yet.

        Called in both configurations, before anything is staged.

        Raises:
            SetupError: Something is already there; names it.
        """
        ...

    def stage(
        self, task: Task, needs: Needs, layout: RunLayout, *, noise: Sequence[Plugin] = ()
    ) -> Staged:
        """Put the treatment in place.

        Args:
            task: The task whose plugins are offered.
            needs: Where the client looks for them.
            layout: The trial's folders.
            noise: Plugins that are offered beside the task's own.

        Raises:
            SetupError: A plugin cannot be read or placed, or something is already there.
        """
        ...

    def verify(self, staged: Staged) -> None:
        """Prove that the client will find what was planned, and nothing else.

        Raises:
            SetupError: Something is missing, differs or is there beside it.
        """
        ...

    def collect(self, staged: Staged | None, layout: RunLayout, transcript: Transcript) -> Evidence:
        """Return what the session left; `staged` is None in the baseline."""
        ...

    def decide(self, expected: Expected, evidence: Evidence) -> Expectations:
        """Return each expectation's verdict, with what it rests on; looks at nothing else."""
        ...

    def ref(self, staged: Staged) -> TreatmentRef:
        """Return how results name what was put in place."""
        ...
