"""Pictures are light, come from real runs, and can all be made again by one command."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from docsite.pictures import PICTURES, coloured, make
from tests.needs import needs, needs_bwrap

ROOT = Path(__file__).parents[2]
MOST_BYTES = 200_000
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a < b", "a &lt; b"),
        ("\x1b[32mfine\x1b[0m.", '<span style="color: #56d364">fine</span>.'),
        ("\x1b[1m\x1b[31mx\x1b[0m", '<span style="font-weight: bold; color: #ff7b72">x</span>'),
        ("\x1b[33;1mx\x1b[0m", '<span style="color: #e3b341; font-weight: bold">x</span>'),
        ("\x1b[4mx\x1b[0m", "x"),
    ],
)
def test_the_colours_of_a_terminal_become_styles(said: str, shown: str) -> None:
    """A picture whose colours are made up would promise what no terminal shows."""
    assert coloured(said) == shown


def test_every_picture_is_light_and_is_shown_with_words() -> None:
    """Who cannot see it reads what it shows, and nobody waits for it."""
    shown = {
        (path.parent / target).resolve(): words
        for path in PAGES
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", path.read_text("utf-8"))
    }

    assert set(shown) == set(PICTURES.glob("*"))
    assert all(len(words) > 40 for words in shown.values())
    assert all(path.stat().st_size < MOST_BYTES for path in shown)


@pytest.mark.slow
@needs("chromium")
@needs_bwrap
def test_all_pictures_are_made_again_by_one_command(tmp_path: Path) -> None:
    """A picture that nobody can make again shows for ever what once was."""
    made = make(tmp_path)

    assert {path.name for path in made} == {path.name for path in PICTURES.glob("*")}
    for path in made:
        size = struct.unpack(">II", path.read_bytes()[16:24])
        before = struct.unpack(">II", (PICTURES / path.name).read_bytes()[16:24])
        assert size == before, f"{path.name}: run python -m docsite.pictures, and look at it"
