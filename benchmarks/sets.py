"""All that can be measured: sets of figures, each with what it takes and how it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import agents
import audit
import foundation
import growth
import helpers  # noqa: F401 - what lets `tests` be found.
import merge
import ssh
from figures import BrokenError, Figure, Known, MissingError

from tests.needs import lacking_sshd


class Measure(Protocol):
    """Yields the figures of a set in their order, each as soon as it is known."""

    def __call__(self, folder: Path, *, quick: bool) -> Iterator[Figure]:
        """Measure in an empty folder; less of each figure when it shall be quick."""


@dataclass(frozen=True, kw_only=True)
class FigureSet:
    """Figures that are measured together."""

    name: str
    title: str
    figures: tuple[Known, ...]
    measure: Measure
    missing: Callable[[], str | None]
    """Says in a few words what the machine lacks, or None."""
    extra: bool = False
    """Whether it can be left out, as no figure of it is among those that must be reached."""


def bwrap_missing() -> str | None:
    """Return that no bubblewrap works here, in a few words, or None."""
    from pytest_evalarc.isolation.host import find_bwrap

    return None if find_bwrap() else "there is no usable bubblewrap"


SETS = (
    FigureSet(
        name="foundation",
        title="Foundation",
        figures=foundation.FIGURES,
        measure=foundation.foundation_figures,
        missing=bwrap_missing,
    ),
    FigureSet(
        name="audit",
        title="Audits",
        figures=audit.FIGURES,
        measure=audit.audit_figures,
        missing=bwrap_missing,
    ),
    FigureSet(
        name="growth",
        title="Growth of cost",
        figures=growth.FIGURES,
        measure=growth.growth_figures,
        missing=bwrap_missing,
        extra=True,
    ),
    FigureSet(
        name="merge",
        title="Merging",
        figures=merge.FIGURES,
        measure=merge.merge_figures,
        missing=bwrap_missing,
        extra=True,
    ),
    FigureSet(
        name="ssh",
        title="Several machines",
        figures=ssh.FIGURES,
        measure=ssh.ssh_figures,
        missing=lambda: bwrap_missing() or lacking_sshd(),
        extra=True,
    ),
    FigureSet(
        name="agents",
        title="Agents",
        figures=agents.FIGURES,
        measure=agents.agent_figures,
        missing=agents.missing,
        extra=True,
    ),
)


class Run:
    """One measuring of a set, which ends with a figure for each that the set knows."""

    def __init__(self, of: FigureSet) -> None:
        self.set = of
        self.figures: list[Figure] = []
        self.left_out: str | None = None
        """Why figures were left out, in a few words, or None when none was."""
        self.failure: str | None = None
        """What went wrong, when that is the reason, and all that is known of it."""

    def measure(self, folder: Path, *, quick: bool) -> Iterator[Figure]:
        """Yield each figure as soon as it is known, and at the end those that were left out."""
        if problem := self.set.missing():
            yield from self.skip(problem)
            return
        try:
            for figure in self.set.measure(folder, quick=quick):
                self.figures.append(figure)
                yield figure
        except MissingError as lack:
            yield from self.skip(str(lack))
        except BrokenError as failure:
            self.failure = str(failure)
            yield from self.skip("it could not be measured")

    def skip(self, reason: str) -> list[Figure]:
        """Leave out each figure that is not there yet, and return those."""
        self.left_out = reason
        there = {figure.known for figure in self.figures}
        skipped = [known.left_out() for known in self.set.figures if known not in there]
        self.figures += skipped
        return skipped
