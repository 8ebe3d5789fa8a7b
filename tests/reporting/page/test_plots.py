from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pytest_evalarc.model.interval import Interval
from pytest_evalarc.reporting.page.plots import Point, Rate, forest_plot, strip_plot

TREATED = Rate(
    label="with-x",
    rate=0.8,
    interval=Interval(0.5, 0.9),
    is_treated=True,
    difference=0.5,
    difference_interval=Interval(-0.25, 0.75),
)
PLAIN = Rate(label="without-x", rate=0.25, interval=Interval(0.0, 1.0))
NONE = Rate(label="noise", rate=None, interval=None, reason="no eligible trial")


def drawn(svg: str, css: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [path.attrib["d"] for path in root.iter("path") if path.attrib["class"] == css]


def test_rates_and_differences_stand_where_their_axes_say() -> None:
    """Half-way on both axes is half a rate and no difference."""
    middle = Rate(
        label="a",
        rate=0.5,
        interval=Interval(0.0, 1.0),
        difference=0.0,
        difference_interval=Interval(-1.0, 1.0),
    )

    svg = forest_plot({"task": [middle]})

    assert drawn(svg, "whisker without")[0].startswith("M152 70H440")
    assert drawn(svg, "mark without")[0].startswith("M290 70")
    assert drawn(svg, "zero")[0].startswith("M665 ")
    assert drawn(svg, "whisker difference")[0].startswith("M530 70H800")
    assert drawn(svg, "mark difference")[0].startswith("M665 ")


def test_the_forest_tells_in_words_what_it_draws() -> None:
    """Who does not see it gets every number."""
    svg = forest_plot({"task, client": [TREATED, PLAIN, NONE]})

    told = ElementTree.fromstring(svg).findtext("desc")
    assert told == (
        "task, client: with-x 80 %, interval 50 % to 90 %, difference +50 points, "
        "interval \N{MINUS SIGN}25 points to +75 points; "
        "without-x 25 %, interval 0 % to 100 %; noise has no rate, no eligible trial"
    )


def test_a_row_without_a_rate_draws_nothing_and_says_why() -> None:
    """A mark at 0 would be a rate."""
    svg = forest_plot({"task": [NONE]})

    assert drawn(svg, "mark without") == []
    assert "\N{EM DASH} no eligible trial" in svg


def test_shapes_tell_sides_apart_without_colour() -> None:
    """Many readers do not see the difference of two hues."""
    svg = forest_plot({"task": [TREATED, PLAIN]})

    (square,), (circle,) = drawn(svg, "mark with"), drawn(svg, "mark without")
    assert "h12v12" in square
    assert "a6 6" in circle


def test_a_strip_has_a_point_for_each_trial_and_a_bar_at_the_mean() -> None:
    """Each outcome has a shape of its own."""
    points = [
        Point(value=10, word="succeeded"),
        Point(value=5, word="failed"),
        Point(value=0, word="inconclusive"),
    ]

    svg = strip_plot("s", "seconds", {"with-x": points, "without-x": []}, {"with-x": 5.0})

    assert [len(drawn(svg, f"point {word}")) for word in ("succeeded", "failed", "other")] == [
        *(1, 1, 1)
    ]
    assert drawn(svg, "mean") == ["M340 39v36"]
    told = ElementTree.fromstring(svg).findtext("desc")
    assert told == "with-x: 3 trials, mean 5; without-x: 0 trials, mean unknown"


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.0007, 1.0, 9.99, 1e12])
def test_points_of_any_size_lie_within_the_plot(value: float) -> None:
    """Tokens and dollars differ by nine orders of magnitude."""
    svg = strip_plot("s", "x", {"a": [Point(value=value, word="failed")]}, {"a": value})

    (bar,) = drawn(svg, "mean")
    assert 150 <= float(bar[1:].split()[0]) <= 530


def test_names_are_text() -> None:
    """Labels of clients are a user's own words."""
    svg = forest_plot({"<b>&": [PLAIN]})

    assert ElementTree.fromstring(svg).findtext("desc", "").startswith("<b>&")
