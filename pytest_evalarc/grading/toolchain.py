"""The seam of languages: which steps grade a submission, and how a hidden check is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from pytest_evalarc.grading.judges import Judges
from pytest_evalarc.grading.submission import GradingCopy
from pytest_evalarc.model.task import Check, Task


@dataclass(frozen=True, kw_only=True)
class Grader:
    """One process of a grading: a program of ours, or a trusted one, over a copy it may not write.

    Attributes:
        argv: Its command; it reports over the record channel.
        request: Returns, for a nonce, what it reads from standard input.
        reads: Further folders that it must see.
        writes: Folders below the grading copy that it may write, as a compiler must. Code of the
            submission never runs where it could write what a later process trusts.
    """

    argv: tuple[str, ...]
    request: Callable[[str], bytes]
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()


Graders: TypeAlias = tuple[Grader, ...]
"""Processes one after another; the first that does not pass decides, else the last one."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step beside the hidden checks; its name is its key in results."""

    name: str
    graders: Graders
    """Empty: there is nothing to do, so the step passes."""
    stops: bool = False
    """Whether everything after it is skipped when it fails."""
    after_checks: bool = False


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What is staged for a batch, readable by every process of a trial or a grading."""

    root: Path
    """`tools/common/<toolchain>` of the batch."""
    bins: tuple[Path, ...] = ()
    """Folders of programs, for PATH."""
    reads: tuple[Path, ...] = ()
    """Where the host keeps what the tools rest on, as an interpreter's standard library."""
    env: Mapping[str, str] = field(default_factory=dict)
    judges: Judges | None = None
    """What verdicts rest on; None: nobody says, so no grading is kept for a later one."""


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """What runs the candidates of a pack in one language."""

    word: str
    """What stands for it in the template of a command, as `python` for `{python}`."""
    program: Path
    version: str
    reads: tuple[Path, ...] = ()
    """Where the host keeps what the program rests on."""
    reserved_mib: int = 0
    """Memory that it maps and never fills."""
    judges: Judges | None = None
    """What verdicts on a candidate rest on; None: nobody says, so none is kept for a later one."""


class Toolchain(Protocol):
    """How submissions in one language are built and tested."""

    @property
    def name(self) -> str:
        """The word in task.toml."""
        ...

    @property
    def fmt_step(self) -> str:
        """Name of the formatter step."""
        ...

    def missing(self) -> str | None:
        """Return what this machine lacks for it, as a sentence; None when nothing."""
        ...

    @property
    def version(self) -> str:
        """The toolchain's version, as results record it."""
        ...

    def stage(self, folder: Path) -> None:
        """Put the programs that grading and agents need into an empty folder, once per batch.

        Raises:
            SetupError: Something is not there.
        """
        ...

    def tools(self, folder: Path) -> Tools:
        """Return how to use what `stage` put into a folder."""
        ...

    def interpreter(self, staged: Callable[[], Path]) -> Interpreter:
        """Return what runs a candidate of a pack.

        Args:
            staged: Returns the folder that `stage` filled; asking stages it, so who can do
                without does not ask.

        Raises:
            SetupError: No pack has candidates in this language, or the host's is too old.
        """
        ...

    def steps(self, task: Task, copy: GradingCopy, tools: Tools) -> Sequence[Step]:
        """Return the steps that grade a copy, in order."""
        ...

    def check(self, task: Task, check: Check, copy: GradingCopy, tools: Tools) -> Graders:
        """Return how one hidden check is run over a copy."""
        ...
