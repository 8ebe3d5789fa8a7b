"""Plugins of a project, and their skills."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.model.task import Plugin
from pytest_evalarc.tasks.plugins import plugins_in, skills_of


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\nname: x\n---\n")


def test_a_skill_is_a_folder_of_skills_with_its_file(tmp_path: Path) -> None:
    """Notes and drafts lie beside skills, and must not be offered as such."""
    _write(tmp_path / "skills" / "b" / "SKILL.md")
    _write(tmp_path / "skills" / "a" / "SKILL.md")
    _write(tmp_path / "skills" / "draft" / "README.md")
    _write(tmp_path / "skills" / "README.md")
    _write(tmp_path / "nested" / "skills" / "c" / "SKILL.md")

    skills = skills_of(Plugin(name="p", root=tmp_path))

    assert list(skills) == ["a", "b"]
    assert skills["a"] == tmp_path / "skills" / "a"


def test_a_folder_with_a_skill_file_is_one_skill(tmp_path: Path) -> None:
    """A skill can be named where it lives, without a plugin around it."""
    _write(tmp_path / "solo" / "SKILL.md")

    assert skills_of(Plugin(name="solo", root=tmp_path / "solo")) == {"solo": tmp_path / "solo"}


def test_plugins_are_the_folders_that_have_a_name(tmp_path: Path) -> None:
    """The noise configuration offers all of them, so strays must not be among them."""
    for name in ("b", "a", ".hidden", "two words"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")

    assert [plugin.name for plugin in plugins_in(tmp_path)] == ["a", "b"]
    assert plugins_in(tmp_path / "missing") == ()
