"""Fixtures are plain folders: no skills, and no member of someone's workspace."""

from __future__ import annotations

import pytest

from tests.tasks.project import Project

STORE = "evals/fixtures/store"
CRATE = '[package]\nname = "store"\n'


@pytest.mark.parametrize("folder", ["skills", ".agents/skills"])
def test_a_fixture_offers_no_skill(project: Project, folder: str) -> None:
    """It is copied into both configurations, so its skill would reach the one without, too."""
    project.write(f"{STORE}/{folder}/use-store/SKILL.md")

    assert project.problems() == [
        f"{STORE}/{folder}: is a skill folder inside a fixture; "
        "move it into a plugin: a fixture offers no skill"
    ]


@pytest.mark.parametrize(
    ("crate", "workspace", "where"),
    [
        (CRATE, ("Cargo.toml", '[workspace]\nmembers = ["evals/fixtures/*"]\n'), "Cargo.toml"),
        (CRATE, ("evals/Cargo.toml", '[workspace]\nmembers = ["fixtures/store"]\n'), "evals/Cargo"),
        (f'{CRATE}workspace = "../../.."\n', ("Cargo.toml", "[workspace]\n"), "Cargo.toml"),
    ],
)
def test_a_member_of_a_cargo_workspace_is_told(
    project: Project, crate: str, workspace: tuple[str, str], where: str
) -> None:
    """Copied out of its workspace, such a crate no longer builds."""
    project.write(f"{STORE}/Cargo.toml", crate)
    project.write(*workspace)

    (sentence,) = project.problems()

    assert sentence.startswith(f"{STORE}: belongs to the Cargo workspace of ")
    assert where in sentence


@pytest.mark.parametrize(
    ("crate", "workspace"),
    [
        (CRATE, '[workspace]\nmembers = ["crates/*"]\n'),
        (CRATE, '[workspace]\nmembers = ["evals/fixtures/*"]\nexclude = ["evals"]\n'),
        (f"{CRATE}[workspace]\n", '[workspace]\nmembers = ["evals/fixtures/*"]\n'),
        (CRATE, '[package]\nname = "top"\n'),
        (CRATE, "[workspace\n"),
    ],
)
def test_a_crate_of_its_own_is_a_fixture(project: Project, crate: str, workspace: str) -> None:
    """Most projects are a workspace, and their fixtures lie in it without being members."""
    project.write(f"{STORE}/Cargo.toml", crate)
    project.write("Cargo.toml", workspace)

    assert [fixture.name for fixture in project.load().fixtures] == ["store"]
