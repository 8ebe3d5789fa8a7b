"""Six flights of a point mass, simulated here: nothing in them was measured on any machine.

An Euler step is exact in velocity and wrong in position, by an amount that grows with its length.
That is the error which a review has to find, by comparing each flight with its exact parabola.
Every number comes from sums, products and quotients of doubles, so it is the same everywhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.base import JsonObject

Vector: TypeAlias = tuple[float, float, float]
"""World components x, y and z; z points up."""

FPS = 30
LAST_FRAME = 60
KIND = "simulated"
METHOD = (
    "A point mass under constant acceleration, integrated with Euler steps by pytest-evalarc. "
    "No robot, sensor or physics engine was involved."
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a flight starts with, and how coarsely it is integrated."""

    position0_m: Vector
    velocity0_m_s: Vector
    gravity_m_s2: Vector
    """Constant acceleration; it need not point down."""
    substeps: int
    """Steps of the integrator per frame."""
    explicit_until_frame: int = 0
    """Steps before this frame are explicit (they move with the old velocity), those after it
    semi-implicit (with the new one). The two err in opposite directions, so with a switch on the
    way the worst frame is not the last one."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The state at one frame, in world axes."""

    number: int
    time_s: float
    position_m: Vector
    velocity_m_s: Vector


@dataclass(frozen=True)
class Recording:
    """A flight as it was simulated; whatever a request says of it is derived from here."""

    name: str
    scene: Scene

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """Frames 0 to 60, over two seconds."""
        return tuple(_simulated(self.scene))

    @cached_property
    def sha256(self) -> str:
        """Digest of the whole recording in canonical JSON."""
        return hashlib.sha256(canonical(self.document()).encode("ascii")).hexdigest()

    def document(self) -> JsonObject:
        """Return the recording as data: what its digest stands for."""
        scene = self.scene
        return {
            "name": self.name,
            "kind": KIND,
            "method": METHOD,
            "frames_per_second": FPS,
            "substeps": scene.substeps,
            "explicit_until_frame": scene.explicit_until_frame,
            "position0_m": list(scene.position0_m),
            "velocity0_m_s": list(scene.velocity0_m_s),
            "gravity_m_s2": list(scene.gravity_m_s2),
            "frames": [
                {
                    "frame": frame.number,
                    "time_s": frame.time_s,
                    "position_m": list(frame.position_m),
                    "velocity_m_s": list(frame.velocity_m_s),
                }
                for frame in self.frames
            ],
        }

    def error_m(self, frame: Frame) -> float:
        """Return how far a frame is from the exact parabola."""
        scene, time_s = self.scene, frame.time_s
        exact = (
            start + speed * time_s + pull * time_s * time_s / 2
            for start, speed, pull in zip(
                scene.position0_m, scene.velocity0_m_s, scene.gravity_m_s2, strict=True
            )
        )
        return math.dist(frame.position_m, tuple(exact))


def highest(frames: tuple[Frame, ...]) -> Frame:
    """Return the frame with the greatest height, the earliest of equals."""
    return max(frames, key=lambda frame: (frame.position_m[2], -frame.number))


def _simulated(scene: Scene) -> Iterator[Frame]:
    position, velocity = scene.position0_m, scene.velocity0_m_s
    steps_per_s = FPS * scene.substeps
    for number in range(LAST_FRAME + 1):
        yield Frame(number=number, time_s=number / FPS, position_m=position, velocity_m_s=velocity)
        for _ in range(scene.substeps):
            before = velocity
            velocity = _stepped(velocity, scene.gravity_m_s2, steps_per_s)
            moves_by = before if number < scene.explicit_until_frame else velocity
            position = _stepped(position, moves_by, steps_per_s)


def _stepped(value: Vector, change_per_s: Vector, steps_per_s: int) -> Vector:
    x, y, z = (v + c / steps_per_s for v, c in zip(value, change_per_s, strict=True))
    return x, y, z


_SCENES: Mapping[str, Scene] = {
    "earth-coarse": Scene(
        position0_m=(0.35, -1.2, 1.1),
        velocity0_m_s=(2.4, 1.7, 9.6),
        gravity_m_s2=(0.0, 0.0, -9.81),
        substeps=1,
    ),
    "earth-explicit": Scene(
        position0_m=(-2.1, 0.8, 0.9),
        velocity0_m_s=(-1.9, 3.1, 10.3),
        gravity_m_s2=(0.0, 0.0, -9.81),
        substeps=4,
        explicit_until_frame=LAST_FRAME,
    ),
    # Each step takes exactly 0.125 m/s from the rise of this one, until it is exactly 0 at frame
    # 30: its frames 29 and 30 are equally high to the last bit.
    "mars-level-peak": Scene(
        position0_m=(1.4, -0.6, 2.2),
        velocity0_m_s=(3.1, -2.2, 3.75),
        gravity_m_s2=(0.0, 0.0, -3.75),
        substeps=1,
    ),
    "tilted-switching": Scene(
        position0_m=(2.6, 1.9, 0.4),
        velocity0_m_s=(-3.4, -1.1, 8.9),
        gravity_m_s2=(0.9, -1.3, -9.6),
        substeps=2,
        explicit_until_frame=36,
    ),
    # Here each step takes 0.3125 m/s, and frames 27 and 28 are equally high.
    "tilted-level-peak": Scene(
        position0_m=(-0.7, -2.3, 1.6),
        velocity0_m_s=(1.3, 2.9, 8.4375),
        gravity_m_s2=(-1.5, 0.75, -9.375),
        substeps=1,
        explicit_until_frame=44,
    ),
    "moon-fine": Scene(
        position0_m=(0.9, 3.1, 0.2),
        velocity0_m_s=(1.2, -2.6, 1.9),
        gravity_m_s2=(0.0, 0.0, -1.62),
        substeps=8,
    ),
}

RECORDINGS: Mapping[str, Recording] = {
    name: Recording(name, scene) for name, scene in _SCENES.items()
}
"""Every recording by its name."""
