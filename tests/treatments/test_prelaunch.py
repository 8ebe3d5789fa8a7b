from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.clients.claude.places import places as claude_places
from pytest_evalarc.clients.codex.places import places as codex_places
from pytest_evalarc.clients.protocol import Needs, Places, Watched
from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.prelaunch import (
    require_fresh,
    require_no_skills,
    require_nothing_above,
    require_untouched_home,
)
from tests.treatments.bench import make_layout

HOOKS = Watched(file="home/hooks.json")


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


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return make_layout(tmp_path / "run")


def needs(*machine: Path, watched: tuple[Watched, ...] = ()) -> Needs:
    return Needs(places=Places(machine=machine, watched=watched))


@pytest.mark.parametrize("treated", [True, False])
@pytest.mark.parametrize("planted", ["empty/policy.json", "gone", "run/home/hooks.json"])
def test_a_fresh_trial_passes_in_both_configurations_until_something_is_planted(
    layout: RunLayout, tmp_path: Path, treated: bool, planted: str
) -> None:
    """The checks refuse what is there, and not the trial itself."""
    (tmp_path / "empty").mkdir()
    file = tmp_path / "file"
    file.touch()
    asked = needs(tmp_path / "empty", tmp_path / "gone", file / "below", watched=(HOOKS,))
    env = {"PATH": f"{layout.bin}:/gone"}

    require_fresh(layout, asked, treated=treated, env=env)
    (tmp_path / planted).write_text("{}")
    with pytest.raises(SetupError) as caught:
        require_fresh(layout, asked, treated=treated, env=env)

    assert caught.value.where == str(tmp_path / planted.removesuffix("/policy.json"))


def plant_file(place: Path) -> None:
    place.write_text("{}")


def plant_in_folder(place: Path) -> None:
    place.mkdir()
    (place / "10-policy.json").write_text("{}")


def plant_dangling_link(place: Path) -> None:
    place.symlink_to("later")


@pytest.mark.parametrize("treated", [True, False])
@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        (plant_file, "is configuration of the whole machine"),
        (plant_in_folder, "holds 10-policy.json"),
        (plant_dangling_link, "is configuration of the whole machine"),
    ],
)
def test_configuration_of_the_whole_machine_is_refused_by_name(
    layout: RunLayout, tmp_path: Path, plant: Callable[[Path], None], problem: str, treated: bool
) -> None:
    """It reaches a baseline as well, and what it does would be told as the treatment's."""
    place = tmp_path / "etc-claude-code"
    plant(place)

    with pytest.raises(SetupError) as caught:
        require_fresh(layout, needs(place), treated=treated, env={})

    assert (caught.value.where, caught.value.problem) == (str(place), problem)


@pytest.mark.parametrize("treated", [True, False])
@pytest.mark.parametrize(
    ("path", "content", "place"),
    [
        ("project/.mcp.json", '{"mcpServers": {}}', "project/.mcp.json: mcpServers"),
        ("project/.mcp.json", "{", "project/.mcp.json: mcpServers"),
        ("home/hooks.json", "{}", "home/hooks.json"),
    ],
)
def test_an_entry_that_is_there_before_anything_is_staged_is_refused(
    layout: RunLayout, path: str, content: str, place: str, treated: bool
) -> None:
    """Whoever brought it, both arms would be told apart by less than the treatment."""
    (layout.root / path).write_text(content)
    servers = Watched(file="project/.mcp.json", keys=("mcpServers",))

    with pytest.raises(SetupError) as caught:
        require_fresh(layout, needs(watched=(servers, HOOKS)), treated=treated, env={})

    assert caught.value.where == f"{layout.root}/{place}"


def test_symposium_in_a_home_is_refused_in_both_configurations(layout: RunLayout) -> None:
    """A sync of an earlier trial would have installed what this one is to install."""
    (layout.home / ".symposium").mkdir()

    for treated in (True, False):
        with pytest.raises(SetupError, match=r"\.symposium"):
            require_fresh(layout, Needs(), treated=treated, env={})


def put_program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "cargo-agents"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("kind", ["program", "no program", "link", "dangling", "relative", "empty"])
def test_a_baseline_that_could_call_cargo_agents_is_refused(
    layout: RunLayout, tmp_path: Path, kind: str
) -> None:
    """Hooks call it by its bare name, so whatever PATH leads to would be run."""
    folder = tmp_path / "bin"
    real = put_program(tmp_path / "real")
    path = str(folder)
    folder.mkdir()
    found = folder / "cargo-agents"
    if kind in ("program", "no program"):
        put_program(folder).chmod(0o755 if kind == "program" else 0o600)
    elif kind == "link":
        found.symlink_to(real)
    elif kind == "dangling":
        found.symlink_to("later")
    else:
        path = {"relative": "tools", "empty": "/usr/bin:"}[kind]
        found = put_program(layout.project / path.rpartition(":")[2].replace("/usr/bin", ""))

    with pytest.raises(SetupError) as caught:
        require_fresh(layout, Needs(), treated=False, env={"PATH": f"/gone:{path}"})

    assert caught.value.where == str(found)
    if kind == "link":
        assert str(real) in caught.value.problem
    require_fresh(layout, Needs(), treated=True, env={"PATH": path})


MACHINE_PLACES = [
    pytest.param(place, id=f"{client}-{platform}-{place.name}")
    for client, places in (("claude", claude_places), ("codex", codex_places))
    for platform in ("linux", "darwin")
    for place in places(platform).machine
]


@pytest.mark.parametrize("treated", [True, False])
@pytest.mark.parametrize("place", MACHINE_PLACES)
def test_each_place_of_a_real_client_s_machine_is_looked_at(
    layout: RunLayout, tmp_path: Path, place: Path, treated: bool
) -> None:
    """An administrator's hook there would run in every session of both arms."""
    planted = tmp_path / "machine" / place.relative_to(place.anchor)
    planted.mkdir(parents=True)
    require_fresh(layout, needs(planted), treated=treated, env={})
    (planted / "managed-settings.json").write_text('{"hooks": {}}')

    with pytest.raises(SetupError) as caught:
        require_fresh(layout, needs(planted), treated=treated, env={})

    assert caught.value.where == str(planted)


@pytest.mark.parametrize("name", claude_places().above)
@pytest.mark.parametrize("above", ["run/..", "run/../.."])
def test_what_a_client_takes_from_folders_above_its_trial_is_refused(
    tmp_path: Path, name: str, above: str
) -> None:
    """Without a sandbox nothing hides it, and it would seem to be the client's own."""
    layout = RunLayout(root=tmp_path / "root/run")
    layout.project.mkdir(parents=True)
    require_nothing_above(layout, claude_places().above)
    place = (tmp_path / "root" / above).resolve() / name
    place.touch()

    with pytest.raises(SetupError) as caught:
        require_nothing_above(layout, claude_places().above)

    assert caught.value.where == str(place)
    assert "--evalarc-root" in str(caught.value)
