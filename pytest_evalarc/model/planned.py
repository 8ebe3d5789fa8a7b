"""A planned trial, and the words for what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pytest_evalarc.model.plain import PART_OF_DOCUMENTS, Constraint, Name


class Execution(StrEnum):
    """How a client session ended."""

    COMPLETED = "completed"
    TIMEOUT = "timeout"
    CLIENT_ERROR = "client_error"
    NOT_STARTED = "not_started"


class Outcome(StrEnum):
    """The one place where a planned trial ends."""

    SETUP_FAILURE = "setup_failure"
    CANCELLED = "cancelled"
    EXCLUDED_ISOLATION = "excluded_isolation"
    EXCLUDED_GRADING = "excluded_grading"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """One trial of a plan."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    configuration: Name
    trial: Annotated[int, Constraint(ge=1)]
    round: Annotated[int, Constraint(ge=1)]
    order: Annotated[int, Constraint(ge=1)]
    """1-based place in its round; the order of configurations alternates between rounds."""

    @property
    def folder(self) -> str:
        """Name of the trial's run and result folder."""
        return f"trial-{self.trial}-{self.configuration}"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One part of a plan that several machines run, as 2 of 4."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    number: Annotated[int, Constraint(ge=1)]
    """From 1 to `of`."""
    of: Annotated[int, Constraint(ge=1)]
    """How many shards the plan is split into."""

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def is_part(self) -> bool:
        """Whether there are other shards; the only shard is the whole plan."""
        return self.of > 1
