"""Plots of the page, as inline SVG: its style sheet colours them in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from pytest_evalarc.files.text import printable
from pytest_evalarc.model.interval import Interval
from pytest_evalarc.reporting.page.words import percent, points

_ROW = 26
_LABEL = 140
_RATES = (_LABEL + 12, _LABEL + 300)
_DIFFERENCES = (_RATES[1] + 90, _RATES[1] + 360)
_FOREST_WIDTH = _DIFFERENCES[1] + 24
_STRIP_WIDTH = 560
_STRIP = (150, _STRIP_WIDTH - 30)
_STRIP_ROW = 46
_SIZE = 4
_LANES = 7
"""Heights that points of a row are spread over, so that equal ones do not hide each other."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """One row of the forest plot."""

    label: str
    rate: float | None
    """Within [0, 1]."""
    interval: Interval | None
    """None where there is no rate, and where too little is known of it for an interval."""
    is_treated: bool = False
    reason: str = ""
    """Why there is no rate."""
    difference: float | None = None
    """Of this rate and its baseline's, within [-1, 1]; None in every other row."""
    difference_interval: Interval | None = None


def forest_plot(groups: Mapping[str, Sequence[Rate]]) -> str:
    """Return an SVG of success rates and their differences, each with its interval.

    Args:
        groups: Rows by heading, as a task and its client.
    """
    height = 40 + sum(_ROW * (1 + len(rows)) for rows in groups.values()) + 26
    told = ". ".join(f"{name}: {'; '.join(map(_told_rate, rows))}" for name, rows in groups.items())
    bottom = height - 26
    return _svg(
        "forest",
        "Success rates and their difference, with 95 % intervals",
        told,
        (_FOREST_WIDTH, height),
        [*_forest_axes(bottom), *_forest_rows(groups)],
    )


def _told_rate(row: Rate) -> str:
    if row.rate is None:
        return f"{row.label} has no rate, {row.reason}"
    told = f"{row.label} {percent(row.rate)}, {_told_interval(row.interval, percent)}"
    if row.difference is None:
        return told
    apart = _told_interval(row.difference_interval, points)
    return f"{told}, difference {points(row.difference)}, {apart}"


def _told_interval(interval: Interval | None, told: Callable[[float], str]) -> str:
    if interval is None:
        return "no interval"
    return f"interval {told(interval.low)} to {told(interval.high)}"


def _forest_axes(bottom: int) -> Iterator[str]:
    yield _label(_RATES[0], 16, "success rate", css="axis-title")
    yield _label(_DIFFERENCES[0], 16, "with minus without", css="axis-title")
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield from _tick(_on(_RATES, share), bottom, percent(share))
        difference = 2 * share - 1
        css = "zero" if difference == 0 else "grid"
        told = points(difference).removesuffix(" points")
        yield from _tick(_on(_DIFFERENCES, share), bottom, told, css=css)


def _tick(x: float, bottom: int, told: str, *, css: str = "grid") -> Iterator[str]:
    yield f'<path class="{css}" d="M{_n(x)} 28V{bottom}"/>'
    yield _label(x, bottom + 18, told, anchor="middle")


def _forest_rows(groups: Mapping[str, Sequence[Rate]]) -> Iterator[str]:
    y = 44
    for name, rows in groups.items():
        yield _label(0, y + 4, name, css="group", limit=80)
        for row in rows:
            y += _ROW
            yield _label(_LABEL, y + 4, row.label, anchor="end", limit=22)
            yield from _rate(row, y)
        y += _ROW


def _rate(row: Rate, y: float) -> Iterator[str]:
    if row.rate is None:
        yield _label(_RATES[0] + 6, y + 4, f"\N{EM DASH} {row.reason}", css="quiet", limit=48)
        return
    css = "with" if row.is_treated else "without"
    yield from _whisker(row.interval, _RATES, y, css)
    x = _on(_RATES, row.rate)
    shape = _square(x, y, 6) if row.is_treated else _circle(x, y, 6)
    yield f'<path class="mark {css}" d="{shape}"/>'
    if row.difference is None:
        return
    # Differences of rates are within [-1, 1], and an axis is drawn by shares of itself.
    apart = row.difference_interval
    shares = Interval((apart.low + 1) / 2, (apart.high + 1) / 2) if apart else None
    yield from _whisker(shares, _DIFFERENCES, y, "difference")
    x = _on(_DIFFERENCES, (row.difference + 1) / 2)
    yield f'<path class="mark difference" d="M{_n(x)} {y - 7}l7 7l-7 7l-7 -7z"/>'


def _whisker(shares: Interval | None, axis: tuple[int, int], y: float, css: str) -> Iterator[str]:
    if shares is None:
        return
    low, high = _on(axis, shares.low), _on(axis, shares.high)
    ends = f"M{_n(low)} {y - 5}v10M{_n(high)} {y - 5}v10"
    yield f'<path class="whisker {css}" d="M{_n(low)} {y}H{_n(high)}{ends}"/>'


@dataclass(frozen=True, kw_only=True)
class Point:
    """One trial in a strip plot."""

    value: float
    """At least 0."""
    word: str
    """`succeeded`, `failed`, or anything else."""


def strip_plot(
    name: str, title: str, rows: Mapping[str, Sequence[Point]], means: Mapping[str, float | None]
) -> str:
    """Return an SVG with a point for each trial and a bar at the mean, a row each configuration.

    Args:
        name: What ids in it begin with; one of its own for each plot of a page.
        title: What is measured, with its unit.
        rows: Points by configuration; at least one of them has one.
        means: The mean of each configuration, as its benchmark says; None for an unknown one.
    """
    top = _nice(max(point.value for points in rows.values() for point in points))
    height = 34 + _STRIP_ROW * len(rows) + 24
    body: list[str] = []
    for part in range(5):
        body += _tick(_on(_STRIP, part / 4), height - 24, f"{top * part / 4:,.6g}")
    told = []
    for number, (label, found) in enumerate(rows.items()):
        y = 34 + _STRIP_ROW * number + _STRIP_ROW / 2
        body.append(_label(_STRIP[0] - 12, y + 4, label, anchor="end", limit=22))
        body += _points(found, y, top)
        mean = means.get(label)
        if mean is not None:
            body.append(f'<path class="mean" d="M{_n(_on(_STRIP, mean / top))} {_n(y - 18)}v36"/>')
        known = "unknown" if mean is None else f"{mean:,.6g}"
        told.append(f"{label}: {len(found)} trials, mean {known}")
    return _svg(name, title, "; ".join(told), (_STRIP_WIDTH, height), body)


def _points(found: Iterable[Point], y: float, top: float) -> Iterator[str]:
    paths: dict[str, list[str]] = {}
    for number, point in enumerate(found):
        x = _on(_STRIP, point.value / top)
        lane = y + (number % _LANES - _LANES // 2) * 4
        shape = {"succeeded": _circle, "failed": _cross}.get(point.word, _square)
        css = point.word if point.word in ("succeeded", "failed") else "other"
        paths.setdefault(css, []).append(shape(x, lane, _SIZE))
    for css, shapes in paths.items():
        yield f'<path class="point {css}" d="{"".join(shapes)}"/>'


def _nice(most: float) -> float:
    """Return a round number that is at least this one; 1 for 0."""
    if most <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(most))
    return next(step * scale for step in (1, 2, 4, 5, 8, 10) if most <= step * scale * (1 + 1e-9))


def _svg(name: str, title: str, told: str, size: tuple[int, int], body: Iterable[str]) -> str:
    width, height = size
    head = (
        f'<svg class="plot" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{_text(title)}</title>'
        f'<desc id="{name}-desc">{_text(told)}</desc>'
    )
    return "\n".join([head, *body, "</svg>"])


def _label(
    x: float, y: float, text: str, *, anchor: str = "start", css: str = "label", limit: int = 60
) -> str:
    shown = text if len(text) <= limit else f"{text[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"
    return (
        f'<text class="{css}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{_text(shown)}</text>'
    )


def _circle(x: float, y: float, size: float) -> str:
    arc = f"a{size} {size} 0 1 0"
    return f"M{_n(x - size)} {_n(y)}{arc} {2 * size} 0{arc} {-2 * size} 0z"


def _square(x: float, y: float, size: float) -> str:
    return f"M{_n(x - size)} {_n(y - size)}h{2 * size}v{2 * size}h{-2 * size}z"


def _cross(x: float, y: float, size: float) -> str:
    left, top = _n(x - size), _n(y - size)
    return f"M{left} {top}l{2 * size} {2 * size}M{left} {_n(y + size)}l{2 * size} {-2 * size}"


def _on(axis: tuple[int, int], share: float) -> float:
    """Return where a share lies on an axis from left to right."""
    return axis[0] + share * (axis[1] - axis[0])


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(printable(text, limit=20_000))
