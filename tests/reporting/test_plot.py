from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from pytest_evalarc.counting.trajectory import trajectory
from pytest_evalarc.model.trajectory import Checkpoint, Trajectory
from pytest_evalarc.reporting.plot import step_plot
from tests.documents import evaluation

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*observed: tuple[float, tuple[str, ...]], budget: float = 600) -> Trajectory:
    entries = [
        Checkpoint(elapsed_seconds=seconds, evaluation=evaluation(*fails))
        for seconds, fails in observed
    ]
    return trajectory(entries, budget_seconds=budget)


UP = drawn((120, ("says.words", "says.style")), (300, ()))


def paths(document: str, kind: str) -> list[str]:
    found = ET.fromstring(document).iter(f"{SVG}path")
    return [path.get("d", "") for path in found if path.get("class") == kind]


def test_the_line_steps_where_the_score_was_observed() -> None:
    """552 units are 600 s and 256 units are a score of 1: 120 s and 0.4 lie at 174.4 and 201.6."""
    document = step_plot(UP)

    assert paths(document, "line") == ["M64 304 H174.4 V201.6 H340 V48"]
    assert paths(document, "line held") == ["M340 48 H616"]
    assert paths(document, "area") == ["M64 304 H174.4 V201.6 H340 V48 H616 V304 Z"]


def test_a_reader_who_does_not_see_it_is_told_everything() -> None:
    """A screen reader reads title and description; each mark has its own words."""
    root = ET.fromstring(step_plot(UP))
    texts = {name: root.findtext(f"{SVG}{name}") for name in ("title", "desc")}

    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert texts["title"] == "Score over time: sample"
    assert texts["desc"] == (
        "Normalized score area 0.62 over 600 s. Observed: 0.4 at 120 s; 1 at 300 s, resolved. "
        f"{UP.interpretation}"
    )
    marks = [circle.findtext(f"{SVG}title") for circle in root.iter(f"{SVG}circle")]
    assert marks == ["0.4 at 120 s", "1 at 300 s, resolved"]


def test_the_axes_say_what_they_count() -> None:
    """A line without units is no figure."""
    words = [text.text for text in ET.fromstring(step_plot(UP)).iter(f"{SVG}text")]

    assert {"elapsed seconds", "score", "0", "150", "300", "450", "600", "0.25", "1"} <= set(words)


def test_it_reads_on_a_dark_ground_too() -> None:
    """Every colour of the light form has a dark one."""
    light, dark = step_plot(UP).split("@media (prefers-color-scheme: dark)")

    assert set(re.findall(r"\.(area|line|mark)", light)) == {"area", "line", "mark"}
    assert set(re.findall(r"\.(area|line|mark)", dark)) >= {"area", "line", "mark"}


@pytest.mark.parametrize("budget", [5e-324, 1e-9, 1e300])
def test_any_budget_can_be_drawn(budget: float) -> None:
    """A number too small or large to divide into nice parts is still one."""
    document = step_plot(drawn((0, ()), budget=budget))

    assert paths(document, "line held") == ["M64 48 H616"]


def test_equal_trajectories_give_equal_bytes() -> None:
    """A picture under version control changes only when the numbers do."""
    again = Trajectory.model_validate_json(UP.model_dump_json(by_alias=True))

    assert step_plot(again) == step_plot(UP)
    assert step_plot(drawn()) != step_plot(UP)
    assert "Nothing was observed." in step_plot(drawn())


def test_foreign_text_is_escaped() -> None:
    """No document may bring markup of its own into the picture."""
    hostile = UP.model_copy(update={"interpretation": "</desc><script>&\x1b"})

    root = ET.fromstring(step_plot(hostile))

    assert not list(root.iter(f"{SVG}script"))
    assert (root.findtext(f"{SVG}desc") or "").endswith("</desc><script>&\\x1b")
