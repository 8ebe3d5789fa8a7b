"""A trajectory as a picture: a step line of scores over time, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.trajectory import Observation, Trajectory

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 48, 56
_PARTS = 4
"""Parts that each axis is divided into."""

_STYLE = """\
  <style>
    svg { background: #ffffff; color: #1b1f24; font: 13px sans-serif; }
    text { fill: currentColor; }
    .axis { stroke: currentColor; }
    .grid { stroke: currentColor; stroke-opacity: 0.15; }
    .area { fill: #0b5cad; fill-opacity: 0.12; }
    .line { fill: none; stroke: #0b5cad; stroke-width: 2; }
    .held { stroke-dasharray: 6 4; }
    .mark { fill: #0b5cad; }
    @media (prefers-color-scheme: dark) {
      svg { background: #14181d; color: #e6e9ed; }
      .area, .mark { fill: #6cb2ff; }
      .line { stroke: #6cb2ff; }
    }
  </style>"""


def step_plot(trajectory: Trajectory) -> str:
    """Return an SVG document of a trajectory's curve; equal trajectories give equal text.

    The line is solid where scores were observed one after another, and dashed where the last one
    is held to the end of the budget. It reads in light and in dark, and without seeing it.
    """
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-labelledby="title desc">',
        f'  <title id="title">{_text(_title(trajectory))}</title>',
        f'  <desc id="desc">{_text(_described(trajectory))}</desc>',
        _STYLE,
        f'  <text x="{_LEFT}" y="26">{_text(_title(trajectory))}</text>',
        *_axes(trajectory.budget_seconds),
        *_curve(trajectory),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _title(trajectory: Trajectory) -> str:
    conditions = trajectory.conditions
    return f"Score over time: {conditions.task.name}" if conditions else "Score over time"


def _described(trajectory: Trajectory) -> str:
    area, budget = trajectory.normalized_score_area, trajectory.budget_seconds
    observed = [_told(entry) for entry in trajectory.checkpoints]
    told = f"Observed: {'; '.join(observed)}." if observed else "Nothing was observed."
    return f"Normalized score area {area:g} over {budget:g} s. {told} {trajectory.interpretation}"


def _told(entry: Observation) -> str:
    resolved = ", resolved" if entry.resolved else ""
    return f"{entry.score:g} at {entry.elapsed_seconds:g} s{resolved}"


def _axes(budget_seconds: float) -> Iterator[str]:
    bottom, right = _y(0.0), _WIDTH - _RIGHT
    for part in range(_PARTS + 1):
        share = part / _PARTS
        x, y = _x(share), _y(share)
        yield f'  <line class="grid" x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}"/>'
        yield f'  <text x="{_LEFT - 8}" y="{y}" dy="4" text-anchor="end">{share:g}</text>'
        label = f"{budget_seconds * share:g}"
        yield f'  <text x="{x}" y="{_HEIGHT - 36}" text-anchor="middle">{label}</text>'
    yield f'  <path class="axis" fill="none" d="M{_LEFT} {_TOP} V{bottom} H{right}"/>'
    middle = (_LEFT + right) // 2
    yield f'  <text x="{middle}" y="{_HEIGHT - 12}" text-anchor="middle">elapsed seconds</text>'
    half = (_TOP + _HEIGHT - _BOTTOM) // 2
    yield (
        f'  <text x="18" y="{half}" text-anchor="middle" transform="rotate(-90 18 {half})">'
        "score</text>"
    )


def _curve(trajectory: Trajectory) -> Iterator[str]:
    points = [
        (_x(entry.elapsed_seconds / trajectory.budget_seconds), _y(entry.score))
        for entry in trajectory.checkpoints
    ]
    if not points:
        yield f'  <path class="line held" d="M{_x(0.0)} {_y(0.0)} H{_x(1.0)}"/>'
        return
    steps = f"M{_x(0.0)} {_y(0.0)} " + " ".join(f"H{x} V{y}" for x, y in points)
    yield f'  <path class="area" d="{steps} H{_x(1.0)} V{_y(0.0)} Z"/>'
    yield f'  <path class="line" d="{steps}"/>'
    last_x, last_y = points[-1]
    yield f'  <path class="line held" d="M{last_x} {last_y} H{_x(1.0)}"/>'
    for (x, y), entry in zip(points, trajectory.checkpoints, strict=True):
        tip = f"<title>{_text(_told(entry))}</title>"
        yield f'  <circle class="mark" cx="{x}" cy="{y}" r="4">{tip}</circle>'


def _x(share: float) -> str:
    """Return where a share of the budget lies."""
    return _number(_LEFT + share * (_WIDTH - _LEFT - _RIGHT))


def _y(score: float) -> str:
    """Return where a score lies."""
    return _number(_HEIGHT - _BOTTOM - score * (_HEIGHT - _TOP - _BOTTOM))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    return escape(printable(text))
