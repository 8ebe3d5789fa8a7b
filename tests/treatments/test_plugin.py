from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin
from pytest_evalarc.model.transcript import HookRun, Load, Offered, ToolCall, Transcript
from pytest_evalarc.tasks.plugins import plugins_in
from pytest_evalarc.treatments.plugin import PluginFolders
from pytest_evalarc.treatments.protocol import Staged
from pytest_evalarc.treatments.witness import FILE
from tests.model_server import ModelServer, Run, Say, Script, Skill, turn
from tests.needs import needs_claude
from tests.treatments.bench import (
    call,
    make_layout,
    make_plugin,
    make_task,
    ran,
    session,
    skill_text,
    write,
)
from tests.treatments.real_claude import claude_session, hooks_in

PLUGIN = PluginFolders()
CLAUDE = Needs(skill_folder=".claude/skills", takes_plugins=True)
HOOKS = {
    "hooks": {
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo welcome"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 1"}]}],
    }
}
EXPECTED = Expected(installed=("tidy",), used=("tidy",))
OFFERED = Offered(skills=("house:tidy",), plugins=("house",))


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return make_layout(tmp_path / "run")


@pytest.fixture
def house(tmp_path: Path) -> Plugin:
    """A plugin with one of everything."""
    plugin = make_plugin(tmp_path / "plugins", "house-plugin", "tidy")
    write(plugin.root, ".claude-plugin/plugin.json", '{"name": "house", "version": "1.0.0"}')
    write(plugin.root, "hooks/hooks.json", json.dumps(HOOKS))
    write(plugin.root, "agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nHelp.\n")
    write(plugin.root, "agents/deep/file.md", "---\nname: diver\ndescription: D.\n---\nHelp.\n")
    write(plugin.root, "commands/greet.md", "---\ndescription: Greets.\n---\nSay hi.\n")
    write(plugin.root, ".mcp.json", '{"mcpServers": {"oven": {"command": "/bin/cat"}}}')
    return plugin


def stage(layout: RunLayout, *plugins: Plugin, noise: tuple[Plugin, ...] = ()) -> Staged:
    return PLUGIN.stage(make_task(*plugins), CLAUDE, layout, env={}, noise=noise)


@pytest.fixture
def staged(layout: RunLayout, house: Plugin) -> Staged:
    return stage(layout, house)


def test_a_plugin_is_copied_to_where_no_trial_writes(
    staged: Staged, layout: RunLayout, house: Plugin
) -> None:
    """What the client loads then stays the author's, whatever the agent does."""
    (copy,) = staged.plugins

    assert copy == layout.root / "plugins/house-plugin"
    assert not any(copy.is_relative_to(folder) for folder in layout.writable)
    for path in ("skills/tidy/SKILL.md", "agents/helper.md", "commands/greet.md", ".mcp.json"):
        assert (copy / path).read_bytes() == (house.root / path).read_bytes()
    assert os.access(copy / "skills/tidy/scripts/run.sh", os.X_OK)
    assert not (layout.project / ".claude").exists()
    PLUGIN.verify(staged)


def test_all_that_a_plugin_brings_is_offered_by_the_client_s_names(staged: Staged) -> None:
    """What the client lists beyond that voids the trial."""
    assert staged.offers.plugins == ("house",)
    assert set(staged.offers.skills) == {"house:tidy"}
    assert set(staged.offers.agents) == {"house:helper", "house:deep:diver"}
    assert staged.offers.mcp_servers == ("plugin:house:oven",)


def test_every_hook_command_is_wrapped_and_its_group_kept(staged: Staged) -> None:
    """A hook whose runs are not recorded could not be proven."""
    (copy,) = staged.plugins
    hooks = json.loads((copy / "hooks/hooks.json").read_text())["hooks"]

    assert staged.hooks == {"SessionStart": 1, "PreToolUse": 1}
    (group,) = hooks["PreToolUse"]
    assert group["matcher"] == "Bash"
    assert group["hooks"][0]["command"].endswith("-c 'exit 1'")


@pytest.mark.parametrize(
    ("manifest", "files"),
    [
        ({"hooks": HOOKS["hooks"]}, {}),
        ({"hooks": "./more/h.json"}, {"more/h.json": HOOKS}),
        ({"hooks": ["./more/h.json"]}, {"more/h.json": HOOKS["hooks"]}),
        ({"hooks": "./hooks/hooks.json"}, {"hooks/hooks.json": HOOKS}),
        ({}, {"hooks/hooks.json": HOOKS}),
    ],
)
def test_hooks_are_found_wherever_a_manifest_puts_them(
    tmp_path: Path, layout: RunLayout, manifest: dict[str, object], files: dict[str, object]
) -> None:
    """Each place is one that the client reads."""
    plugin = make_plugin(tmp_path / "plugins", "house")
    text = json.dumps({"name": "house", **manifest})
    write(plugin.root, ".claude-plugin/plugin.json", text)
    for path, content in files.items():
        write(plugin.root, path, json.dumps(content))

    staged = stage(layout, plugin)

    assert staged.hooks == {"SessionStart": 1, "PreToolUse": 1}
    copied = [path.read_text() for path in staged.plugins[0].rglob("*.json")]
    assert sum(text.count("witness.sh") for text in copied) == 2


def test_servers_are_found_wherever_a_manifest_puts_them(tmp_path: Path, layout: RunLayout) -> None:
    """An unlisted one would void every trial."""
    plugin = make_plugin(tmp_path / "plugins", "house")
    servers = '{"oven": {"command": "/bin/cat"}}'
    write(plugin.root, ".claude-plugin/plugin.json", '{"mcpServers": "./more.json"}')
    write(plugin.root, "more.json", servers)
    write(plugin.root, ".mcp.json", servers.replace("oven", "iron"))

    names = ("plugin:house:iron", "plugin:house:oven")
    assert stage(layout, plugin).offers.mcp_servers == names


def test_a_plugin_without_a_manifest_goes_by_its_folder_s_name(
    tmp_path: Path, layout: RunLayout
) -> None:
    """So does the client call it, and most skill authors write no manifest."""
    solo = tmp_path / "solo"
    write(solo, "SKILL.md", skill_text("sing"))

    staged = stage(layout, Plugin(name="solo", root=solo))

    assert staged.offers.plugins == ("solo",)
    assert "solo:sing" in staged.offers.skills
    PLUGIN.verify(staged)


def test_in_noise_all_plugins_are_loaded_and_each_keeps_its_names(
    tmp_path: Path, layout: RunLayout, house: Plugin
) -> None:
    """A skill that is found alone may be lost among others."""
    garden = make_plugin(tmp_path / "plugins", "garden", "mow")

    staged = stage(layout, house, noise=(garden,))

    assert [copy.name for copy in staged.plugins] == ["house-plugin", "garden"]
    assert staged.offers.plugins == ("house", "garden")
    assert set(staged.offers.skills) == {"house:tidy", "garden:mow"}
    assert set(staged.planned) == {"tidy", "mow"}
    PLUGIN.verify(staged)
    found = verdicts(staged, layout, offered=staged.offers)
    assert found["installed-tidy"] == "pass"
    listed = Expected(installed=("mow",), not_installed=("mow",))
    assert verdicts(staged, layout, offered=staged.offers, expected=listed) == {
        "installed-mow": "pass",
        "not_installed-mow": None,
    }


def twice(plugin: Plugin) -> None:
    write(plugin.root.parent, "other/.claude-plugin/plugin.json", '{"name": "House"}')


def elsewhere(plugin: Plugin) -> None:
    write(plugin.root, ".claude-plugin/plugin.json", '{"skills": "./more/"}')


def no_name(plugin: Plugin) -> None:
    write(plugin.root, ".claude-plugin/plugin.json", '{"name": "my house"}')


def torn(plugin: Plugin) -> None:
    write(plugin.root, ".claude-plugin/plugin.json", '{"name": ')


def outside(plugin: Plugin) -> None:
    write(plugin.root, ".claude-plugin/plugin.json", '{"hooks": "./../../hooks.json"}')


def link(plugin: Plugin) -> None:
    (plugin.root / "skills/tidy/link").symlink_to("SKILL.md")


def bad_hooks(plugin: Plugin) -> None:
    write(plugin.root, "hooks/hooks.json", '{"hooks": []}')


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (twice, "give themselves one name: house and House"),
        (elsewhere, "names components outside of their own folders"),
        (no_name, "gives a name that is none: my house"),
        (torn, "is not JSON"),
        (outside, r"names a file that is not below the plugin: ./../../hooks.json"),
        (link, "is a link or a special file"),
        (bad_hooks, "holds no hooks that can be read"),
    ],
)
def test_a_plugin_that_a_trial_could_not_account_for_is_refused(
    layout: RunLayout, house: Plugin, spoil: Callable[[Plugin], None], problem: str
) -> None:
    """Otherwise the client would load more, less or other than results say."""
    other = make_plugin(house.root.parent, "other", "wash")
    spoil(house)

    with pytest.raises(SetupError, match=problem):
        stage(layout, house, other)


def test_a_copy_that_was_changed_before_the_session_is_refused(
    staged: Staged, layout: RunLayout
) -> None:
    """The proof is that the client will find the author's words."""
    (staged.plugins[0] / "skills/tidy/SKILL.md").write_text("other")

    with pytest.raises(SetupError, match="is not what the plugin holds"):
        PLUGIN.verify(staged)


def test_a_project_that_offers_skills_is_refused(staged: Staged, layout: RunLayout) -> None:
    """They would be told as the plugin's."""
    write(layout.project, ".claude/skills/own/SKILL.md", "x")

    with pytest.raises(SetupError, match="must be empty before the client starts"):
        PLUGIN.verify(staged)


def test_the_shipped_plugins_can_be_loaded_together(layout: RunLayout) -> None:
    """Noise offers all of them, so none may be in another's way."""
    shipped = plugins_in(Path(__file__).parents[2] / "evals/plugins")

    staged = stage(layout, *shipped)

    assert staged.offers.plugins == tuple(plugin.name for plugin in shipped)
    assert set(staged.offers.skills) == {f"{name}:{name}" for name in staged.offers.plugins}
    PLUGIN.verify(staged)


def witness(layout: RunLayout, *records: tuple[str, int]) -> None:
    lines = (
        json.dumps({"plugin": "house", "event": event, "command": 0, "status": status})
        for event, status in records
    )
    (layout.evidence / FILE).write_text("".join(f"{line}\n" for line in lines))


def verdicts(
    staged: Staged,
    layout: RunLayout,
    *calls: ToolCall,
    hooks: tuple[HookRun, ...] = (),
    offered: Offered | None = OFFERED,
    expected: Expected = EXPECTED,
) -> dict[str, str | None]:
    transcript = session(*calls, hooks=hooks).model_copy(update={"offered": offered})
    evidence = PLUGIN.collect(staged, layout, transcript)
    decisions = PLUGIN.decide(expected, evidence).decisions
    assert all(decision.rests_on for decision in decisions)
    return {decision.name: decision.verdict for decision in decisions}


@pytest.mark.parametrize(
    "form",
    [
        call("skill", "house:tidy"),
        call("skill", "/house:tidy"),
        call("skill", "tidy"),
        call("read", "PLUGINS/house-plugin/skills/tidy/SKILL.md"),
    ],
)
def test_a_skill_is_used_in_every_form_that_the_client_has_for_it(
    staged: Staged, layout: RunLayout, form: ToolCall
) -> None:
    """A plugin's skills have a longer name, and lie outside of the project."""
    target = form.target.replace("PLUGINS", str(layout.root / "plugins"))
    used = form.model_copy(update={"target": target})

    found = verdicts(staged, layout, used)

    assert found == {"installed-tidy": "pass", "used-tidy": "pass"}


def test_a_skill_of_another_plugin_of_like_name_is_no_use(
    staged: Staged, layout: RunLayout
) -> None:
    """Its text is another's."""
    found = verdicts(staged, layout, call("skill", "garden:tidy"))

    assert found["used-tidy"] == "fail"


@pytest.mark.parametrize(
    ("offered", "verdict"),
    [
        (OFFERED, "pass"),
        (Offered(plugins=("house",)), "fail"),
        (Offered(skills=("tidy",), plugins=("house",)), "fail"),
        (Offered(), "fail"),
        (None, "inconclusive"),
    ],
)
def test_installed_is_judged_by_what_the_client_lists(
    staged: Staged, layout: RunLayout, offered: Offered | None, verdict: str
) -> None:
    """A plugin that its client did not load is of no effect, however well it was copied."""
    found = verdicts(staged, layout, offered=offered)

    assert found["installed-tidy"] == verdict


EXPECT_START = Expected(hooks=("SessionStart",))


@pytest.mark.parametrize(
    ("records", "hooks", "verdict"),
    [
        ([("SessionStart", 0)], (ran("SessionStart"),), "pass"),
        ([("SessionStart", 1)], (ran("SessionStart", False),), "fail"),
        ([], (), "fail"),
        ([("SessionStart", 0)], (), "inconclusive"),
        ([("SessionStart", 0)], (ran("SessionStart", False),), "inconclusive"),
        ([], (ran("SessionStart"),), "inconclusive"),
        ([("Stop", 0)], (ran("SessionStart"),), "inconclusive"),
    ],
)
def test_a_hook_is_proven_by_its_client_and_its_witness_together(
    staged: Staged,
    layout: RunLayout,
    records: list[tuple[str, int]],
    hooks: tuple[HookRun, ...],
    verdict: str,
) -> None:
    """Either alone may be wrong: one is a file that the agent can write."""
    witness(layout, *records)

    found = verdicts(staged, layout, hooks=hooks, expected=EXPECT_START)

    assert found == {"hook-SessionStart": verdict}


@pytest.mark.parametrize(
    "line",
    [
        '{"plugin": "garden", "event": "SessionStart", "command": 0, "status": 0}',
        '{"plugin": "house", "event": "SessionStart", "command": 1, "status": 0}',
        '{"plugin": "house", "event": "SessionStart", "command": true, "status": 0}',
        '{"plugin": "house", "event": "SessionStart", "command": 0, "status": "0"}',
        '{"plugin": "house", "event": "SessionStart", "command": 0, "status": false}',
        '{"plugin": "house", "event": "SessionStart", "command": 0}',
    ],
)
def test_a_record_that_no_hook_of_the_trial_writes_decides_nothing(
    staged: Staged, layout: RunLayout, line: str
) -> None:
    """Somebody else wrote there, and may have written the right one as well."""
    (layout.evidence / FILE).write_text(line + "\n")

    found = verdicts(staged, layout, hooks=(ran("SessionStart"),), expected=EXPECT_START)

    assert found == {"hook-SessionStart": "inconclusive"}


def test_a_hook_that_no_plugin_has_fails_and_one_that_is_no_command_is_inconclusive(
    layout: RunLayout, house: Plugin
) -> None:
    """The first cannot have run, and of the second nothing but the client could know."""
    prompt = {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "done?"}]}]}}
    write(house.root, "hooks/hooks.json", json.dumps(prompt))
    staged = stage(layout, house)
    expected = Expected(hooks=("SessionStart", "Stop"))

    found = verdicts(staged, layout, hooks=(ran("Stop"),), expected=expected)

    assert found == {"hook-SessionStart": "fail", "hook-Stop": "inconclusive"}


def test_what_the_session_adds_to_the_skill_folder_is_told(
    staged: Staged, layout: RunLayout
) -> None:
    """It reached the rest of the session beside what was planned."""
    write(layout.project, ".claude/skills/own/SKILL.md", "own")

    evidence = PLUGIN.collect(staged, layout, session())

    assert evidence.config_changes == (".claude/skills/own: added",)
    assert PLUGIN.collect(None, layout, session()).config_changes == ()


@pytest.mark.parametrize(
    ("needs", "embedded", "why"),
    [
        (CLAUDE, False, None),
        (CLAUDE, True, "an embedded client loads no plugins and starts no hooks"),
        (Needs(), False, "it has no option that loads a plugin folder"),
    ],
)
def test_only_a_client_that_loads_plugins_is_treated(
    needs: Needs, embedded: bool, why: str | None
) -> None:
    """Elsewhere both configurations would be the same."""
    assert PLUGIN.supports(needs, embedded=embedded) == why


SCRIPT = Script(
    [
        turn(Skill("tidy")),
        turn(Run("echo work")),
        turn(Say("Done.")),
    ]
)


@pytest.mark.slow
@needs_claude
def test_claude_loads_the_copy_by_these_names_and_fires_its_hooks(
    staged: Staged, layout: RunLayout
) -> None:
    """The names and the wrapper are the real program's business, and it must agree."""
    with ModelServer({"s": SCRIPT}) as server:
        events = claude_session(layout, server.url("s"), plugins=staged.plugins)
    (start,) = (event for event in events if event.get("subtype") == "init")
    loaded = [plugin["name"] for plugin in start["plugins"] if plugin["path"] != "builtin"]
    offered = Offered(
        plugins=tuple(loaded),
        skills=tuple(name for name in start["skills"] if ":" in name),
        agents=tuple(name for name in start["agents"] if ":" in name),
        mcp_servers=tuple(server["name"] for server in start["mcp_servers"]),
    )
    transcript = Transcript(
        events=len(events),
        interpreted=True,
        hooks=hooks_in(events),
        offered=offered,
        tool_calls=(call("skill", "house:tidy"),),
    )
    expected = Expected(installed=("tidy",), used=("tidy",), hooks=("SessionStart", "PreToolUse"))

    decided = PLUGIN.decide(expected, PLUGIN.collect(staged, layout, transcript))

    assert offered.beyond(staged.offers) == Offered()
    assert staged.offers.beyond(offered) == Offered()
    assert {decision.name: decision.verdict for decision in decided.decisions} == {
        "installed-tidy": "pass",
        "used-tidy": "pass",
        "hook-SessionStart": "pass",
        # The plugin's own command for it ends with status 1.
        "hook-PreToolUse": "fail",
    }
    assert decided.skills["tidy"].observed_load is Load.LOADED
    results = [event for event in events if event.get("type") == "user"]
    assert "Launching skill: house:tidy" in json.dumps(results)
