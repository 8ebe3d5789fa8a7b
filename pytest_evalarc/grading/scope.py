"""Which cells of a row are asked for: all of them, unless an audit needs fewer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The checks and seeds that a grading covers; what it leaves out has no row."""

    checks: Collection[str] | None = None
    """By id; None is every check."""
    seeds: Collection[int] | None = None
    """Of a pack; None is every seed of the task."""

    def covers(self, check: str, seed: int | None = None) -> bool:
        """Whether a check is asked for, with this seed."""
        return (self.checks is None or check in self.checks) and (
            self.seeds is None or seed is None or seed in self.seeds
        )


EVERYTHING = Scope()
