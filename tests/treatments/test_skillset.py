from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.treatments.skillset import copied_whole, names_of, skills_among, title_of
from tests.treatments.bench import make_plugin, write


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\nname: tidy\ndescription: d\n---\n# Tidy\n", "tidy"),
        ("---\r\ndescription: d\r\nname: 'tidy'\r\n---\r\n", "tidy"),
        ('---\ndescription: name: no\nname: "tidy up"  \n---\n', "tidy up"),
        ("# Tidy\nname: tidy\n", None),
        ("---\ndescription: d\n---\nname: tidy\n", None),
        ("---\nname:\n---\n", None),
        ("---\nname: tidy\n", None),
        ("", None),
    ],
)
def test_a_title_is_what_the_front_matter_says(
    tmp_path: Path, text: str, title: str | None
) -> None:
    """Clients call a skill by it, and a line of the text below is no name."""
    (tmp_path / "SKILL.md").write_bytes(text.encode())

    assert title_of(tmp_path / "SKILL.md") == title
    assert title_of(tmp_path / "gone.md") is None


def test_a_skill_is_known_by_folder_and_title_with_and_without_its_prefix(tmp_path: Path) -> None:
    """A client takes any of them."""
    plugin = make_plugin(tmp_path, "house", "tidy")
    skill = plugin.root / "skills/tidy/SKILL.md"
    skill.write_text(skill.read_text().replace("name: tidy", "name: tidy-up"))

    skills = skills_among([plugin])

    tidy = skills["tidy"]
    assert (tidy.title, tidy.place, tidy.plugin) == ("tidy-up", "skills/tidy", "house")
    assert names_of(tidy, skills, prefix="house:") == {
        "tidy",
        "tidy-up",
        "house:tidy",
        "house:tidy-up",
    }


def test_a_title_that_is_another_skill_s_name_tells_neither(tmp_path: Path) -> None:
    """A load of the other would be told as this one's."""
    plugin = make_plugin(tmp_path, "house", "tidy", "wash")
    skill = plugin.root / "skills/tidy/SKILL.md"
    skill.write_text(skill.read_text().replace("name: tidy", "name: wash"))

    skills = skills_among([plugin])

    assert names_of(skills["tidy"], skills, prefix="house:") == {
        "tidy",
        "house:tidy",
        "house:wash",
    }


def plant_link(root: Path) -> None:
    (root / "link").symlink_to("SYMPOSIUM.toml")


def plant_pipe(root: Path) -> None:
    os.mkfifo(root / "link")


@pytest.mark.parametrize("plant", [plant_link, plant_pipe])
def test_what_no_copy_would_hold_is_refused_by_name(tmp_path: Path, plant: object) -> None:
    """A trial would get less than the author wrote, and nobody would know."""
    plugin = make_plugin(tmp_path, "house", "tidy")
    plant(plugin.root)  # type: ignore[operator]

    with pytest.raises(SetupError) as caught:
        copied_whole(plugin.root, tmp_path / "copy")

    assert caught.value.where == str(plugin.root / "link")


def test_caches_are_no_part_of_a_copy(tmp_path: Path) -> None:
    """Nobody wrote them, and no content hash counts them."""
    plugin = make_plugin(tmp_path, "house", "tidy")
    write(plugin.root, "skills/tidy/scripts/__pycache__/x.pyc", "x")

    copied_whole(plugin.root, tmp_path / "copy")

    assert not list((tmp_path / "copy").rglob("__pycache__"))
