from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.treatments.prelaunch import require_no_skills, require_untouched_home


@pytest.mark.parametrize(
    "path", [".claude/settings.json", ".claude.json", ".codex/config.toml", ".agents/skills/x/S"]
)
def test_a_home_that_configures_a_client_is_refused_by_name(tmp_path: Path, path: str) -> None:
    """A hook or a skill in one arm's home is a treatment that nobody planned."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()

    with pytest.raises(SetupError) as caught:
        require_untouched_home(tmp_path)

    assert caught.value.where == str(tmp_path / path.partition("/")[0])


def test_a_dangling_link_to_configuration_is_configuration(tmp_path: Path) -> None:
    """What it points to may appear once the sandbox mounts it."""
    (tmp_path / ".claude").symlink_to(tmp_path / "later")

    with pytest.raises(SetupError):
        require_untouched_home(tmp_path)


def test_a_home_with_other_files_is_no_obstacle(tmp_path: Path) -> None:
    """Toolchains keep caches there, which configure no agent."""
    (tmp_path / ".cache").mkdir()

    require_untouched_home(tmp_path)
    (tmp_path / ".claude").mkdir()
    with pytest.raises(SetupError):
        require_untouched_home(tmp_path)


@pytest.mark.parametrize("made", ["", ".agents", ".agents/skills"])
def test_a_project_without_skills_passes(tmp_path: Path, made: str) -> None:
    """Absent and empty are alike: the client finds nothing in either."""
    (tmp_path / made).mkdir(parents=True, exist_ok=True)

    require_no_skills(tmp_path, ".agents/skills")
    (tmp_path / ".agents/skills/tidy").mkdir(parents=True)
    with pytest.raises(SetupError):
        require_no_skills(tmp_path, ".agents/skills")


@pytest.mark.parametrize("name", ["tidy/SKILL.md", ".hidden", "README.md"])
def test_anything_in_the_skill_folder_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """A starter that brings skills gives them to the baseline too, and the delta is fiction."""
    path = tmp_path / ".agents/skills" / name
    path.parent.mkdir(parents=True)
    path.touch()

    with pytest.raises(SetupError) as caught:
        require_no_skills(tmp_path, ".agents/skills")

    assert name.partition("/")[0] in caught.value.problem


@pytest.mark.parametrize("part", [".agents", ".agents/skills"])
@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_a_skill_folder_that_is_elsewhere_is_refused(tmp_path: Path, part: str, kind: str) -> None:
    """Staging would otherwise write through the link, outside of the trial."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    path = project / part
    path.parent.mkdir(parents=True)
    if kind == "file":
        path.touch()
    else:
        path.symlink_to(outside)
    if kind == "link":
        (outside / "skills").mkdir(parents=True)

    with pytest.raises(SetupError) as caught:
        require_no_skills(project, ".agents/skills")

    assert caught.value.where == str(path)
