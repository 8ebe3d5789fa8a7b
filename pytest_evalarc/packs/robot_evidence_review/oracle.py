"""What a report must say, from the recording as it was simulated, and whether one says it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.packs.robot_evidence_review.recordings import Recording, highest

REL_TOL = 1e-7
ABS_TOL = 1e-6
"""A number is right when it is within either; both are far above the rounding of a conversion."""
SHOWN = 200
"""Characters of a wrong value that a detail quotes."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "provenance": ("source_sha256",),
    "coordinates": ("position_m", "speed_m_s"),
    "clock": ("frame", "time_seconds"),
    "metrics": ("max_position_error_m", "peak_frame", "peak_height_m"),
    "completeness": ("missing_frames",),
}
"""The fields of a report that each dimension rests on; `protocol` rests on all being there."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a report got right."""

    verdicts: Mapping[str, bool]
    """By dimension; `protocol` is whether the report has just the fields that it must have."""
    detail: str
    """Each thing that is wrong, with what was expected; empty when nothing is."""


def expected_report(
    recording: Recording, *, query_frame: int, omitted_frames: Collection[int]
) -> JsonObject:
    """Return the right report on a recording.

    Args:
        recording: The flight; nothing of any request is looked at.
        query_frame: The frame that is asked about; it must not be omitted.
        omitted_frames: Those that the candidate does not get.

    Returns:
        The nine fields. What must be exact is an int, a str or a list of ints, what need only be
        close is a float or a list of floats.
    """
    queried = recording.frames[query_frame]
    available = tuple(f for f in recording.frames if f.number not in omitted_frames)
    peak = highest(available)
    return {
        "source_sha256": recording.sha256,
        "frame": queried.number,
        "time_seconds": queried.time_s,
        "position_m": list(queried.position_m),
        "speed_m_s": math.hypot(*queried.velocity_m_s),
        "max_position_error_m": max(map(recording.error_m, available)),
        "peak_frame": peak.number,
        "peak_height_m": peak.position_m[2],
        "missing_frames": [*sorted(omitted_frames)],
    }


def judge(report: JsonObject, expected: JsonObject) -> Judgement:
    """Return which dimensions of a report are right.

    Args:
        report: Whatever the candidate put under `report`.
        expected: From `expected_report`.
    """
    wrong = [
        field
        for field, value in expected.items()
        if field not in report or not agrees(report[field], value)
    ]
    verdicts = {
        dimension: not any(field in wrong for field in fields)
        for dimension, fields in FIELDS.items()
    }
    verdicts["protocol"] = report.keys() == expected.keys()
    complaints = [
        f"{field} must be {_shown(expected[field])}, not {_shown(report[field])}"
        if field in report
        else f"{field} is missing"
        for field in wrong
    ]
    unknown = [field for field in report if field not in expected]
    if unknown:
        complaints.append(f"unknown fields: {_shown(list(unknown))}")
    return Judgement(verdicts=verdicts, detail="; ".join(complaints))


def agrees(found: JsonValue, expected: JsonValue) -> bool:
    """Whether a value is the expected one: floats nearly, all else exactly and of its type."""
    if isinstance(expected, float):
        return _is_close(found, expected)
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(agrees, found, expected))
        )
    # Python holds True for 1 and 8.0 for 8; a report that says so has the wrong type.
    return type(found) is type(expected) and found == expected


def _is_close(found: JsonValue, expected: float) -> bool:
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return False
    try:
        return math.isclose(found, expected, rel_tol=REL_TOL, abs_tol=ABS_TOL)
    except OverflowError:
        return False


def _shown(value: JsonValue) -> str:
    return printable(canonical(value), limit=SHOWN)
