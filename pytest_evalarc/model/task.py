"""What a task is, once its folder has been read and found valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pytest_evalarc.model.plain import (
    PART_OF_DOCUMENTS,
    Constraint,
    Name,
    Sha256,
    require_names,
    require_positive,
)

Seconds = Annotated[float, Constraint(gt=0.0, allow_inf_nan=False)]
MiB = Annotated[int, Constraint(gt=0)]

# Beyond these the system refuses a limit or a clock overflows, and a task that nobody can run
# would be told from a broken machine by nothing.
MOST_SECONDS = 30 * 24 * 3600
"""Of a deadline: 30 days."""
MOST_MIB = 1 << 30
"""Of memory or files: one pebibyte."""
MOST_PROCESSES = 1 << 20
"""A quarter of all ids that Linux has, so that those of a sandbox are never too many."""
LEAST_CPUS = 0.01
"""A control group grants no less than one of its 100 milliseconds."""
MOST_CPUS = 1024


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """Wall-clock seconds that each stage of a trial may take; finite and above 0."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    setup: Seconds = 120.0
    agent: Seconds = 600.0
    grading: Seconds = 300.0
    """Bounds all grading steps together."""
    check: Seconds = 60.0
    """Bounds each hidden check that names no deadline of its own."""

    def __post_init__(self) -> None:
        require_positive(vars(self).values())

    @property
    def trial(self) -> float:
        """What a whole trial may take."""
        return self.setup + self.agent + self.grading


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What every graded process may use."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    memory_mib: MiB = 2048
    processes: Annotated[int, Constraint(gt=0)] = 256
    cpus: Annotated[float, Constraint(gt=0.0, allow_inf_nan=False)] = 1.0
    tmp_mib: MiB = 512
    output_mib: MiB = 16
    """Both output streams of one process together."""
    disk_mib: MiB = 1024

    def __post_init__(self) -> None:
        require_positive(vars(self).values())


@dataclass(frozen=True, kw_only=True)
class Check:
    """One hidden test file, or one case of a pack: a column of the row of outcomes."""

    id: Name
    dimensions: tuple[Name, ...]
    """The dimensions this check gives a verdict in; a hidden test has exactly one."""
    deadline_s: Seconds
    file: str | None = None
    """Path below the task folder, POSIX style; None for a case of a pack."""
    description: str = ""

    def __post_init__(self) -> None:
        require_names(self.id, *self.dimensions)


@dataclass(frozen=True, kw_only=True)
class Edit:
    """Replace a text that occurs exactly once in one file of the reference submission."""

    file: str
    find: str
    replace: str


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A declared fault: the reference submission with edits, or with an overlay copied over it.

    One of a pack has neither, for the pack makes it.
    """

    name: Name
    target: Name
    """The dimension in which the checks must notice this fault."""
    description: str = ""
    edits: tuple[Edit, ...] = ()
    overlay: str | None = None
    """Folder below the task folder whose files are copied over the reference submission."""

    def __post_init__(self) -> None:
        require_names(self.name, self.target)
        if self.edits and self.overlay is not None:
            raise ValueError("a mutant has either edits or an overlay")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the task's author expects of a treatment configuration."""

    installed: tuple[Name, ...] = ()
    not_installed: tuple[Name, ...] = ()
    used: tuple[Name, ...] = ()
    not_used: tuple[Name, ...] = ()
    hooks: tuple[Name, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is expected at all."""
        return not (
            self.installed or self.not_installed or self.used or self.not_used or self.hooks
        )


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A plugin that a treatment offers: its name and the folder that holds it."""

    name: Name
    root: Path


@dataclass(frozen=True, kw_only=True)
class PackRef:
    """The pack that stands in for toolchain, checks and starter, with the seeds to run."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    name: Name
    seeds: tuple[int, ...] = (17, 41, 97)
    language: Name = "python"
    """The language of controls, and of the starter that a trial begins with."""
    version: str = ""
    """This one and the next two are the pack's own word, and no keys of task.toml."""
    domain: str = ""
    split: Literal["public-development", "private"] = "public-development"
    """Whether candidates may have seen the cases."""


@dataclass(frozen=True, kw_only=True)
class TaskBrief:
    """All that a client may see of a task; hidden checks live in `Task` alone."""

    name: Name
    prompt: str
    agent_deadline_s: Seconds = 600.0
    """Wall-clock seconds from client start to client end."""
    plugins: tuple[Name, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TaskRef:
    """How documents name a task."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    name: Name
    kind: Literal["capability", "regression"]
    content_hash: Sha256
    version: str = "0.1.0"
    pack: PackRef | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """A valid task: everything that its folder says, with defaults filled in."""

    brief: TaskBrief
    kind: Literal["capability", "regression"]
    version: str = "0.1.0"
    root: Path
    """The task's folder."""
    toolchain: Name
    """For a pack, the one of its language."""
    pack: PackRef | None = None
    editable: tuple[str, ...] = ()
    """POSIX paths below `project/` that are taken from a submission."""
    fixtures: tuple[Plugin, ...] = ()
    """Fixture folders by name; each is copied beside `project/` as `fixtures/<name>`."""
    plugins: tuple[Plugin, ...] = ()
    fmt_check: bool = False
    tags: tuple[Name, ...] = ()
    weights: dict[Name, float]
    """Share of each dimension in the score; sums to 1 unless there is no dimension."""
    deadlines: Deadlines = Deadlines()
    limits: Limits = Limits()
    expected: Expected = Expected()
    checks: tuple[Check, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    has_solution: bool = False
    sha256: Sha256
    """The content hash over the task, its fixtures and its plugins."""
    lines: dict[str, int] = field(default_factory=dict)
    """1-based lines in task.toml: `""` for the top, `prompt`, `expected`, `mutants`,
    `checks.<id>`, `mutants.<name>`."""

    @property
    def name(self) -> str:
        """The task's folder name."""
        return self.brief.name

    @property
    def starter(self) -> Path:
        """The project a trial starts from."""
        return self.root / "starter"

    @property
    def solution(self) -> Path:
        """The files that turn the starter into the reference submission."""
        return self.root / "solution"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """All dimensions that a check judges, in the order of the checks."""
        return tuple(dict.fromkeys(d for check in self.checks for d in check.dimensions))

    @property
    def ref(self) -> TaskRef:
        """This task as documents name it."""
        return TaskRef(
            name=self.name,
            kind=self.kind,
            content_hash=self.sha256,
            version=self.version,
            pack=self.pack,
        )
