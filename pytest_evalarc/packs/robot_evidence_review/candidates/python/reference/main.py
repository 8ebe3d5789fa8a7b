"""Reviews of recorded flights: a JSON request per line in, a JSON report per line out."""

from __future__ import annotations

import json
import math
import sys
from typing import Any, NamedTuple

Json = dict[str, Any]
Vector = list[float]


class Observation(NamedTuple):
    """One row of a recording in world axes, meters and seconds; the last axis points up."""

    frame: int
    time: float
    position: Vector
    velocity: Vector


def in_world_axes(vector: Vector, mapping: Json) -> Vector:
    """Return a sensor's vector along the world's axes and in meters, its origin left out."""
    scale = mapping["meters_per_unit"]
    return [
        vector[axis] * sign * scale
        for axis, sign in zip(mapping["axes"], mapping["signs"], strict=True)
    ]


def world_position(position: Vector, mapping: Json) -> Vector:
    """Return where in the world a sensor's position is; only positions have an origin."""
    origin = mapping["origin_m"]
    along = in_world_axes(position, mapping)
    return [start + offset for start, offset in zip(origin, along, strict=True)]


def seconds(tick: float, clock: Json) -> float:
    """Return the time of a tick, counted from the clock's origin."""
    origin: float = clock["origin_tick"]
    seconds_per_tick: float = clock["seconds_per_tick"]
    return (tick - origin) * seconds_per_tick


def observations(recording: Json) -> list[Observation]:
    """Return what was observed, by ascending frame."""
    metadata = recording["metadata"]
    mapping, clock = metadata["world_from_sensor"], metadata["clock"]
    rows = [
        Observation(
            frame=row["frame"],
            time=seconds(row["tick"], clock),
            position=world_position(row["position"], mapping),
            velocity=in_world_axes(row["velocity"], mapping),
        )
        for row in recording["observations"]
    ]
    return sorted(rows, key=lambda row: row.frame)


def exact_position(time: float, analytic: Json) -> Vector:
    """Return where the flight would be without any error of integration."""
    return [
        start + speed * time + gravity * time**2 / 2
        for start, speed, gravity in zip(
            analytic["position0_m"],
            analytic["velocity0_m_s"],
            analytic["gravity_m_s2"],
            strict=True,
        )
    ]


def largest_error(rows: list[Observation], analytic: Json) -> float:
    """Return the greatest distance between an observation and the exact flight."""
    return max(math.dist(row.position, exact_position(row.time, analytic)) for row in rows)


def height(row: Observation) -> float:
    """Return how high an observation is."""
    return row.position[2]


def review(request: Json) -> Json:
    """Return the report on the recording of a request."""
    recording = request["recording"]
    metadata = recording["metadata"]
    rows = observations(recording)
    by_frame = {row.frame: row for row in rows}
    queried = by_frame[request["query_frame"]]
    # The rows are in order and max keeps the first of equals, which is the lowest frame.
    peak = max(rows, key=height)
    missing = sorted(set(metadata["expected_frames"]) - by_frame.keys())
    return {
        "source_sha256": recording["source"]["sha256"],
        "frame": queried.frame,
        "time_seconds": queried.time,
        "position_m": queried.position,
        "speed_m_s": math.hypot(*queried.velocity),
        "max_position_error_m": largest_error(rows, metadata["analytic"]),
        "peak_frame": peak.frame,
        "peak_height_m": height(peak),
        "missing_frames": missing,
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps({"ok": True, "report": review(json.loads(line))}), flush=True)
