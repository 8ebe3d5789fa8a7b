"""The page on the architecture names what is there, in the order in which imports may point."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
FLOORS = {path.parent.name for path in (ROOT / "pytest_evalarc").glob("*/__init__.py")}
NAMES = sorted(
    {name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE) if name.split(".")[0] in FLOORS}
)


def rows(title: str) -> list[list[str]]:
    _, found, rest = PAGE.partition(f"\n## {title}\n")
    assert found
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_on_the_page_is_there(name: str) -> None:
    """A map that names a street which was renamed misleads more than none."""
    floor, module, *attributes = name.split(".")
    found = importlib.import_module(f"pytest_evalarc.{floor}.{module}")

    for attribute in attributes:
        assert hasattr(found, attribute)
        found = getattr(found, attribute)


@pytest.mark.parametrize("title", ["One trial", "One audit", "Where the outside world is met"])
def test_every_stage_names_who_does_it(title: str) -> None:
    """A stage without a name cannot be found in the code, nor be held by the test above."""
    nobody = [row[0] for row in rows(title) if not set(re.findall("`([^`]+)`", row[1])) & {*NAMES}]

    assert rows(title)
    assert nobody == []


def test_every_floor_of_a_trial_is_met() -> None:
    """A floor that no stage touches is either missing on the map or needless."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    floors = {name.strip() for layer in layers for name in layer.split("|")} & FLOORS

    met = {name.split(".")[0] for name in NAMES}

    # The command line is the other top, and a pack is behind the protocol of the grader.
    assert floors - met == {"cli", "packs"}
