from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin, Task, TaskBrief
from pytest_evalarc.model.transcript import Load, Offered, ToolCall, Transcript
from pytest_evalarc.model.trial import SkillFacts
from pytest_evalarc.treatments.protocol import Evidence, Staged
from pytest_evalarc.treatments.skills import Skills

SKILLS = Skills()
NEEDS = Needs()
QUIET = Transcript(events=1, interpreted=True)
READ_TIDY = Transcript(
    events=1,
    interpreted=True,
    tool_calls=(
        ToolCall(
            id="1", kind="read", name="read", target=".agents/skills/tidy/SKILL.md", is_error=False
        ),
    ),
)


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    layout = RunLayout(root=tmp_path / "run")
    layout.project.mkdir(parents=True)
    layout.home.mkdir()
    return layout


def plugin(root: Path, name: str, *skills: str) -> Plugin:
    for skill in skills:
        folder = root / name / "skills" / skill
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {skill}\n---\n# {name}\n")
        (folder / "scripts/run.sh").write_text("#!/bin/sh\n")
        (folder / "scripts/run.sh").chmod(0o755)
    return Plugin(name=name, root=root / name)


def task(*plugins: Plugin) -> Task:
    return Task(
        brief=TaskBrief(name="t", prompt="p"),
        kind="capability",
        root=Path("/nowhere"),
        toolchain="python",
        plugins=plugins,
        weights={},
        sha256="0" * 64,
    )


@pytest.fixture
def tidy(tmp_path: Path) -> Plugin:
    return plugin(tmp_path, "house", "tidy", "wash")


@pytest.fixture
def staged(tidy: Plugin, layout: RunLayout) -> Staged:
    return SKILLS.stage(task(tidy), NEEDS, layout, env={})


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_skill_of_the_plugins_is_copied_exactly(
    staged: Staged, tidy: Plugin, layout: RunLayout
) -> None:
    """A client must find what the author wrote, run bits included."""
    assert staged.skill_dir == layout.project / ".agents/skills"
    assert set(staged.planned) == {"tidy", "wash"}
    assert contents(staged.skill_dir) == contents(tidy.root / "skills")
    SKILLS.verify(staged)


def test_skills_land_where_the_client_looks_for_them(tidy: Plugin, layout: RunLayout) -> None:
    """A folder that another client reads would leave this one untreated."""
    staged = SKILLS.stage(task(tidy), Needs(skill_folder=".claude/skills"), layout, env={})

    assert (layout.project / ".claude/skills/tidy/SKILL.md").is_file()
    assert not (layout.project / ".agents").exists()
    SKILLS.verify(staged)


def test_noise_is_offered_beside_the_task_s_own_plugins(
    tmp_path: Path, tidy: Plugin, layout: RunLayout
) -> None:
    """A skill that is found alone may be lost among others: that is what noise measures."""
    noise = plugin(tmp_path, "garden", "mow")

    staged = SKILLS.stage(task(tidy), NEEDS, layout, env={}, noise=(noise,))

    assert set(staged.planned) == {"mow", "tidy", "wash"}
    SKILLS.verify(staged)


def test_a_plugin_that_is_one_skill_is_offered_under_its_name(
    tmp_path: Path, layout: RunLayout
) -> None:
    """Most skill authors have just the folder."""
    root = tmp_path / "solo"
    root.mkdir()
    (root / "SKILL.md").write_text("# Solo\n")
    (root / "SKILL.md").chmod(0o640)

    staged = SKILLS.stage(task(Plugin(name="solo", root=root)), NEEDS, layout, env={})

    assert contents(staged.skill_dir) == {"solo/SKILL.md": (b"# Solo\n", 0o640)}


@pytest.mark.parametrize("second", ["tidy", "Tidy"])
def test_two_plugins_with_one_skill_folder_are_refused_by_name(
    tmp_path: Path, tidy: Plugin, layout: RunLayout, second: str
) -> None:
    """One would silently replace the other, on some file systems or on all."""
    other = plugin(tmp_path, "other", second)

    with pytest.raises(SetupError) as caught:
        SKILLS.stage(task(tidy, other), NEEDS, layout, env={})

    assert caught.value.where == "plugins house and other"
    assert not (layout.project / ".agents").exists()


def test_a_skill_folder_that_is_no_name_is_refused(tmp_path: Path, layout: RunLayout) -> None:
    """Results and node ids name each skill, so its name must be fit for them."""
    odd = plugin(tmp_path, "house", "my skill")

    with pytest.raises(SetupError, match="whose folder is no name: my skill"):
        SKILLS.stage(task(odd), NEEDS, layout, env={})


def test_caches_beside_a_skill_s_scripts_are_not_part_of_it(
    tidy: Plugin, layout: RunLayout
) -> None:
    """No content hash counts them, and running a skill's own script leaves them behind."""
    cache = Path("tidy/scripts/__pycache__/run.pyc")
    (tidy.root / "skills" / cache.parent).mkdir()
    (tidy.root / "skills" / cache).touch()

    staged = SKILLS.stage(task(tidy), NEEDS, layout, env={})
    assert not (staged.skill_dir / cache.parent).exists()
    (staged.skill_dir / cache.parent).mkdir()
    (staged.skill_dir / cache).touch()

    SKILLS.verify(staged)
    assert SKILLS.collect(staged, layout, QUIET).config_changes == ()


@pytest.mark.parametrize("treated", [True, False])
@pytest.mark.parametrize(
    "path", ["home/.claude/settings.json", "project/.agents/skills/tidy/SKILL.md"]
)
def test_both_arms_are_refused_when_something_is_there_before(
    layout: RunLayout, path: str, treated: bool
) -> None:
    """A baseline with the skill, or an arm with the operator's hooks, makes the delta fiction."""
    SKILLS.prelaunch(layout, NEEDS, treated=treated, env={})
    file = layout.root / path
    file.parent.mkdir(parents=True)
    file.touch()

    with pytest.raises(SetupError):
        SKILLS.prelaunch(layout, NEEDS, treated=treated, env={})


def test_staging_twice_is_refused(staged: Staged, tidy: Plugin, layout: RunLayout) -> None:
    """The emptiness check belongs to the copy: what it found is what the result says."""
    with pytest.raises(SetupError, match="must be empty before the client starts"):
        SKILLS.stage(task(tidy), NEEDS, layout, env={})


def write(path: str) -> Callable[[Path], object]:
    return lambda skills: (skills / path).write_text("own words")


def swap_for_link(skills: Path) -> None:
    (skills / "tidy").rename(skills.parent / "elsewhere")
    (skills / "tidy").symlink_to(skills.parent / "elsewhere")


def swap_whole_folder(skills: Path) -> None:
    skills.rename(skills.parent / "moved")
    skills.symlink_to(skills.parent / "moved")


CHANGES = {
    "edited": (write("tidy/SKILL.md"), ("tidy: altered",)),
    "added file": (write("tidy/more.md"), ("tidy: altered",)),
    "run bit": (lambda s: (s / "tidy/scripts/run.sh").chmod(0o644), ("tidy: altered",)),
    "pipe": (lambda s: os.mkfifo(s / "tidy/pipe"), ("tidy: altered",)),
    "link": (swap_for_link, ("tidy: altered",)),
    "removed": (lambda s: shutil.rmtree(s / "tidy"), ("tidy: removed",)),
    "all removed": (lambda s: shutil.rmtree(s.parent), ("tidy: removed", "wash: removed")),
    "all behind a link": (swap_whole_folder, ("tidy: removed", "wash: removed")),
    "added skill": (lambda s: (s / "own").mkdir(), ("own: added",)),
    "added file beside": (write("notes.md"), ("notes.md: added",)),
    "odd name": (write("\udcff\x1b"), ("\ufffd\\x1b: added",)),
}


@pytest.mark.parametrize(("change", "told"), CHANGES.values(), ids=CHANGES)
def test_any_difference_from_the_plan_is_found(
    staged: Staged, layout: RunLayout, change: Callable[[Path], object], told: tuple[str, ...]
) -> None:
    """Before launch it stops the trial; after the session it is the agent's, and is listed."""
    change(staged.skill_dir)

    with pytest.raises(SetupError, match="is not what the plugins planned"):
        SKILLS.verify(staged)
    evidence = SKILLS.collect(staged, layout, QUIET)
    assert evidence.config_changes == tuple(f".agents/skills/{each}" for each in told)


def test_a_skill_with_a_link_in_it_cannot_be_staged_unnoticed(
    tidy: Plugin, layout: RunLayout
) -> None:
    """A link is never copied, so the client would be offered less than the author wrote."""
    (tidy.root / "skills/tidy/link").symlink_to("SKILL.md")

    staged = SKILLS.stage(task(tidy), NEEDS, layout, env={})

    with pytest.raises(SetupError, match="tidy: is not what the plugins planned"):
        SKILLS.verify(staged)


def test_the_baseline_has_no_skills_and_what_changed_in_its_configuration_is_told() -> None:
    """Nothing was put in place, so nothing of it can be gone."""
    changed = ("home/.claude/settings.json: hooks was added",)

    evidence = SKILLS.collect(None, RunLayout(root=Path("/nowhere")), QUIET, config=changed)

    assert (evidence.planned, evidence.found) == ({}, {})
    assert evidence.config_changes == changed


def test_a_session_may_list_the_planned_skills_and_nothing_more(staged: Staged) -> None:
    """What a client lists beyond that is of another arm, or of the operator."""
    assert staged.offers == Offered(skills=("tidy", "wash"))


def test_all_expectations_of_an_ideal_session_pass(staged: Staged, layout: RunLayout) -> None:
    """The oracle's trial must succeed, expectations included."""
    expected = Expected(installed=("tidy", "wash"), used=("tidy",), not_used=("wash",))

    found = SKILLS.decide(expected, SKILLS.collect(staged, layout, READ_TIDY))

    assert found.skills == {
        "tidy": SkillFacts(installed="pass", used="pass", observed_load=Load.LOADED),
        "wash": SkillFacts(installed="pass", not_used="pass", observed_load=Load.NOT_OBSERVED),
    }
    assert found.sync.skill_dir_empty_before == "pass"
    assert (found.sync.session_start, found.sync.sync_recorded) == (None, None)
    assert [decision.name for decision in found.decisions] == [
        "installed-tidy",
        "installed-wash",
        "used-tidy",
        "not_used-wash",
    ]
    assert all(decision.rests_on for decision in found.decisions)


def evidence(found: dict[str, str]) -> Evidence:
    return Evidence(
        transcript=QUIET, skill_folder=".agents/skills", planned={"tidy": "d1"}, found=found
    )


@pytest.mark.parametrize(
    ("skill", "found", "verdict", "sentence"),
    [
        (
            "tidy",
            {"tidy": "d1"},
            "pass",
            "tidy holds what the plugin holds, also after the session",
        ),
        ("tidy", {"tidy": "d2"}, "inconclusive", "tidy was altered during the session"),
        ("tidy", {"tidy": ""}, "inconclusive", "tidy was altered during the session"),
        ("tidy", {}, "inconclusive", "tidy was removed during the session"),
        (
            "wash",
            {"tidy": "d1"},
            "fail",
            "wash was never put there, as no plugin of the task holds it",
        ),
        (
            "wash",
            {"wash": "d1"},
            "fail",
            "wash was never put there, as no plugin of the task holds it",
        ),
    ],
)
def test_installed_is_decided_from_the_folder_after_the_session(
    skill: str, found: dict[str, str], verdict: str, sentence: str
) -> None:
    """What the agent itself undid says nothing about the treatment, so it is inconclusive."""
    expectations = SKILLS.decide(Expected(installed=(skill,)), evidence(found))

    (decision,) = expectations.decisions
    assert decision.name == f"installed-{skill}"
    assert decision.verdict == verdict
    assert decision.rests_on == (f".agents/skills/{sentence}",)
    assert expectations.skills[skill].installed == verdict


def test_what_this_treatment_cannot_decide_is_not_judged_and_says_why() -> None:
    """A pass for an absence that nobody decided would be a point for nothing."""
    expected = Expected(not_installed=("wash",), hooks=("SessionStart",))

    expectations = SKILLS.decide(expected, evidence({"tidy": "d1"}))

    absent, hook = expectations.decisions
    assert (absent.name, absent.verdict) == ("not_installed-wash", None)
    assert absent.rests_on == ("under the treatment skills nothing decides what to install",)
    assert (hook.name, hook.verdict) == ("hook-SessionStart", None)
    assert hook.rests_on == ("the treatment skills registers no hooks",)
    assert expectations.hooks == {"SessionStart": None}
    assert expectations.skills["wash"].not_installed is None


def test_the_load_of_every_offered_skill_is_told_without_any_expectation() -> None:
    """How often a skill is loaded is worth knowing before anyone expects it."""
    expectations = SKILLS.decide(Expected(), evidence({"tidy": "d1"}))

    assert expectations.skills == {"tidy": SkillFacts(observed_load=Load.NOT_OBSERVED)}
    assert expectations.decisions == ()


def test_results_name_the_treatment_by_what_it_offered(staged: Staged) -> None:
    """Two batches under one name may have offered different skills."""
    ref = SKILLS.ref(staged)

    assert (ref.name, ref.digest) == ("skills", staged.digest)


def test_every_client_can_be_treated() -> None:
    """A folder of files needs nothing of a client but to look into it."""
    assert SKILLS.supports(NEEDS, embedded=True) is None
    assert SKILLS.supports(NEEDS, embedded=False) is None
