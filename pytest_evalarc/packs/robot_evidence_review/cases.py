"""The cases of robot-evidence-review: one recording of a seed, told in four ways."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_evalarc.grading.pack import Case
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.packs.robot_evidence_review.recordings import (
    KIND,
    LAST_FRAME,
    METHOD,
    RECORDINGS,
    Frame,
    Recording,
    Vector,
    highest,
)

QUERY_FRAMES = range(18, 42)
"""What a review may be asked about: the middle of a flight, where it is neither start nor end."""


@dataclass(frozen=True, kw_only=True)
class View:
    """How the sensor of a case sees the world, and what it lost."""

    axes: tuple[int, int, int] = (0, 1, 2)
    """Where each component of a world vector stands in the sensor's."""
    signs: tuple[int, int, int] = (1, 1, 1)
    origin_m: Vector = (0.0, 0.0, 0.0)
    meters_per_unit: float = 1.0
    origin_tick: int = 0
    seconds_per_tick: float = 1.0
    is_complete: bool = True

    def vector(self, world: Vector, origin_m: Vector = (0.0, 0.0, 0.0)) -> list[float]:
        """Return a world vector as the sensor has it: the inverse of what a candidate computes."""
        seen = [0.0, 0.0, 0.0]
        for axis, sign, value, origin in zip(self.axes, self.signs, world, origin_m, strict=True):
            seen[axis] = (value - origin) / (sign * self.meters_per_unit)
        return seen

    def observation(self, frame: Frame) -> JsonObject:
        """Return a frame as one row of a request."""
        return {
            "frame": frame.number,
            "tick": self.origin_tick + frame.time_s / self.seconds_per_tick,
            "position": list(self.vector(frame.position_m, self.origin_m)),
            "velocity": list(self.vector(frame.velocity_m_s)),
        }

    def metadata(self, recording: Recording) -> JsonObject:
        """Return what a candidate needs to undo this view, and what the flight should have been."""
        scene = recording.scene
        return {
            "expected_frames": list(range(LAST_FRAME + 1)),
            "world_from_sensor": {
                "axes": list(self.axes),
                "signs": list(self.signs),
                "origin_m": list(self.origin_m),
                "meters_per_unit": self.meters_per_unit,
            },
            "clock": {
                "origin_tick": self.origin_tick,
                "seconds_per_tick": self.seconds_per_tick,
            },
            "analytic": {
                "position0_m": list(scene.position0_m),
                "velocity0_m_s": list(scene.velocity0_m_s),
                "gravity_m_s2": list(scene.gravity_m_s2),
            },
        }


VIEWS: Mapping[str, View] = {
    "world-meters": View(),
    "millimeters-sensor-frame": View(
        axes=(2, 0, 1),
        signs=(-1, 1, -1),
        origin_m=(1.25, -0.75, 2.5),
        meters_per_unit=0.001,
        origin_tick=1_000_000,
        seconds_per_tick=0.001,
    ),
    "centimeters-offset-clock": View(
        axes=(1, 2, 0),
        signs=(1, -1, -1),
        origin_m=(-1.5, 0.4, 0.75),
        meters_per_unit=0.01,
        origin_tick=28_800_000,
        seconds_per_tick=0.001,
    ),
    "incomplete-recording": View(is_complete=False),
}
"""The view of each case, in declared order."""


def cases(seed: int) -> tuple[Case, ...]:
    """Return the cases of a seed, in declared order."""
    draw = random.Random(seed)
    recording = draw.choice(tuple(RECORDINGS.values()))
    lost = decisive_frames(recording)
    query_frame = draw.choice([number for number in QUERY_FRAMES if number not in lost])
    return tuple(
        Case(
            id=name,
            seed=seed,
            content=content(
                recording,
                view,
                query_frame=query_frame,
                omitted=() if view.is_complete else lost,
                draw=draw,
            ),
        )
        for name, view in VIEWS.items()
    )


def decisive_frames(recording: Recording) -> tuple[int, ...]:
    """Return the frame that is highest and the one that errs most, in order.

    An incomplete recording lacks just these, so that its metrics are others than those of the
    whole flight: what is lost shows in more than the list of missing frames.
    """
    worst = max(recording.frames, key=recording.error_m)
    return tuple(sorted({highest(recording.frames).number, worst.number}))


def content(
    recording: Recording,
    view: View,
    *,
    query_frame: int,
    omitted: Iterable[int],
    draw: random.Random,
) -> JsonObject:
    """Return what `run` needs of a case: the request, and what the oracle is to answer from."""
    lost = sorted(omitted)
    observations = [
        view.observation(frame) for frame in recording.frames if frame.number not in lost
    ]
    draw.shuffle(observations)
    return {
        "recording": recording.name,
        "query_frame": query_frame,
        "omitted_frames": list(lost),
        "request": {
            "op": "review",
            "query_frame": query_frame,
            "recording": {
                "source": {
                    "project": "pytest-evalarc",
                    "recording": recording.name,
                    "kind": KIND,
                    "method": METHOD,
                    "sha256": recording.sha256,
                },
                "metadata": view.metadata(recording),
                "observations": list(observations),
            },
        },
    }
