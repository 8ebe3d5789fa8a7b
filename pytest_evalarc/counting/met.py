"""What the trials of a plan met: the same on one machine, and so on all that share a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_evalarc.model.planned import Execution
from pytest_evalarc.model.trial import TrialResult


class Met(NamedTuple):
    """One thing that a trial met, by its field in result.json."""

    field: str
    value: object


def met(result: TrialResult) -> Iterator[Met]:
    """Yield what a trial met that every trial of its plan must have met alike.

    What is not known, as of a trial that never started, is left out: it contradicts nothing.
    """
    yield Met("os", result.os)
    yield from _known(result)
    record = result.isolation.record
    if record is not None:
        yield Met("isolation.mode", result.isolation.mode)
        yield Met("isolation.record", record)
    for grading in result.gradings[-1:]:
        if grading.status == "graded":
            yield Met("gradings.grader_sha256", grading.grader_sha256)
            yield Met("gradings.checks_sha256", grading.checks_sha256)
            yield Met("gradings.isolation", grading.isolation)
            if grading.runtime is not None:
                yield Met("gradings.runtime", grading.runtime)


def _known(result: TrialResult) -> Iterator[Met]:
    values: dict[str, object] = {
        "client.sha256": result.client.sha256,
        "toolchain": result.toolchain,
        "symposium": result.symposium,
        "treatment": result.treatment,
    }
    # A session that was cut off did not tell its version; what the client says of itself may be
    # spelled otherwise.
    if result.execution is Execution.COMPLETED:
        values["client.version"] = result.client.version
    for field, value in values.items():
        if value is not None:
            yield Met(field, value)
