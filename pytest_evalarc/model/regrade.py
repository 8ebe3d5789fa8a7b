"""A kept submission that was graded again: regrade-<n>.json."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from pytest_evalarc.model.base import Cause, Model, Name
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.planned import Outcome
from pytest_evalarc.model.task import TaskRef
from pytest_evalarc.model.trial import Verdict


class Regrade(Model):
    """One trial's kept submission, graded once more; its result.json stays as it was."""

    schema_version: str
    number: Annotated[int, Field(ge=1)]
    """The number of the re-grading, as in the file's name."""
    task: TaskRef
    mode: Name
    """The trial's configuration."""
    trial: Annotated[int, Field(ge=1)]
    toolchain: str | None = None
    code: dict[str, JsonValue]
    """A view of this grading, as in result.json."""
    grading: Grading
    outcome: Outcome
    """Where the trial ends now; another than before only if it was excluded for its grading."""
    cause: Cause | None = None
    success: Verdict | None = None
