"""A range that a true value lies in, with the confidence that its maker says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pytest_evalarc.model.plain import PART_OF_DOCUMENTS, Constraint


@dataclass(frozen=True)
class Interval:
    """Bounds of a rate within [0, 1], or of a difference of two rates within [-1, 1]."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    low: Annotated[float, Constraint(ge=-1.0, le=1.0)]
    high: Annotated[float, Constraint(ge=-1.0, le=1.0)]
    """At least `low`."""

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"an interval from {self.low} to {self.high} has no inside")

    def __contains__(self, value: float) -> bool:
        """Whether a value lies within the bounds or on one of them."""
        return self.low <= value <= self.high

    def rounded(self, decimals: int) -> Interval:
        """Return the same bounds with fewer decimals, as documents keep them."""
        return Interval(round(self.low, decimals), round(self.high, decimals))
