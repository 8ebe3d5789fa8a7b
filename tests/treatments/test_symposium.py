"""The treatment with the stand-in for cargo-agents, its hooks started as a client starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.grading.toolchains.rust import Rust
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin
from pytest_evalarc.model.transcript import HookRun, Load, Offered, ToolCall
from pytest_evalarc.model.trial import Expectations
from pytest_evalarc.treatments.protocol import Staged
from pytest_evalarc.treatments.snapshot import changes, snapshot
from pytest_evalarc.treatments.symposium import Symposium
from tests.cargo_agents.build import build
from tests.model_server import ModelServer, Read, Run, Say, Script, turn
from tests.needs import needs, needs_claude
from tests.treatments.bench import call, make_layout, make_plugin, make_task, session, write
from tests.treatments.real_claude import claude_session, hooks_in

CLAUDE = Needs(skill_folder=".claude/skills", agent="claude")
CODEX = Needs(skill_folder=".agents/skills", agent="codex")
LOCK = 'version = 3\n\n[[package]]\nname = "app"\nversion = "0.1.0"\n'
MANIFEST = '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n'
EXPECTED = Expected(installed=("tidy",), used=("tidy",), hooks=("SessionStart", "PreToolUse"))
READ_TIDY = call("read", ".claude/skills/tidy/SKILL.md")


Meddling = Callable[[RunLayout], object]


@dataclass
class Bench:
    """One trial of the treatment: its folders, its plugin, and what a client does in it."""

    symposium: Symposium
    tools: Path
    """The staged program's folder, as `fill` leaves it."""
    layout: RunLayout
    tidy: Plugin

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.layout.home),
            "PATH": f"{self.layout.bin}:/usr/bin:/bin",
            "CARGO_HOME": str(self.layout.cargo_home),
            "SYMPOSIUM_HOOK_TRACE": str(self.layout.evidence / "hook-trace.jsonl"),
        }

    def staged(self, client: Needs = CLAUDE, *, noise: tuple[Plugin, ...] = ()) -> Staged:
        task = make_task(self.tidy)
        return self.symposium.stage(
            task, client, self.layout, env=self.env, tools=self.tools, noise=noise
        )

    def initialised(self, client: Needs = CLAUDE, *, noise: tuple[Plugin, ...] = ()) -> Staged:
        """Stage the treatment and run what it asks for, as a trial does."""
        staged = self.staged(client, noise=noise)
        for name, program in staged.links.items():
            (self.layout.bin / name).symlink_to(program)
        for command in staged.init:
            subprocess.run(command.argv, cwd=command.cwd, env=dict(command.env), check=True)
        self.symposium.verify(staged)
        return staged

    def fired(self, *events: str) -> tuple[HookRun, ...]:
        """Start the registered hooks of some events as a client does, and report their ends."""
        path = os.pathsep.join((self.env["PATH"], *(str(folder) for folder in cargo_folders())))
        return tuple(self._fired(events, {**self.env, "PATH": path}))

    def _fired(self, events: tuple[str, ...], env: dict[str, str]) -> Iterator[HookRun]:
        home, project = self.layout.home, self.layout.project
        files = (home / ".claude/settings.json", home / ".codex/hooks.json")
        (file,) = (file for file in files if file.exists())
        registered = json.loads(file.read_text())["hooks"]
        for event in events:
            payload = json.dumps({"hook_event_name": event, "cwd": str(project)}).encode()
            for hook in (hook for group in registered[event] for hook in group["hooks"]):
                argv = ["/bin/sh", "-c", hook["command"]]
                done = subprocess.run(argv, input=payload, cwd=project, env=env, check=False)
                yield HookRun(event=event, succeeded=done.returncode == 0)

    def decided(
        self,
        staged: Staged,
        *calls: ToolCall,
        hooks: tuple[HookRun, ...] | None,
        expected: Expected = EXPECTED,
        meddle: Meddling = lambda _: None,
    ) -> Expectations:
        """Return the verdicts on a session that made these calls, and meddled like that."""
        before = snapshot(self.layout, ())
        meddle(self.layout)
        evidence = self.symposium.collect(
            staged,
            self.layout,
            session(*calls, hooks=hooks),
            config=changes(before, snapshot(self.layout, ())),
        )
        return self.symposium.decide(expected, evidence)


def cargo_folders() -> tuple[Path, ...]:
    rust = Rust()
    return () if rust.missing() else rust.tools(Path()).bins


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    Symposium(program=build(tmp_path_factory.mktemp("host"))).fill(folder)
    return folder


@pytest.fixture(scope="module")
def symposium(tools: Path) -> Symposium:
    return Symposium(program=tools / "cargo-agents")


@pytest.fixture
def bench(tmp_path: Path, tools: Path, symposium: Symposium) -> Bench:
    layout = make_layout(tmp_path / "run")
    write(layout.project, "Cargo.toml", MANIFEST)
    write(layout.project, "Cargo.lock", LOCK)
    write(layout.project, "src/lib.rs", "")
    tidy = make_plugin(tmp_path / "plugins", "house", "tidy", depends_on='["app"]')
    return Bench(symposium=symposium, tools=tools, layout=layout, tidy=tidy)


@pytest.fixture
def staged(bench: Bench) -> Staged:
    return bench.initialised()


def verdicts(expectations: Expectations) -> dict[str, str | None]:
    return {decision.name: decision.verdict for decision in expectations.decisions}


IDEAL = {
    "installed-tidy": "pass",
    "used-tidy": "pass",
    "hook-SessionStart": "pass",
    "hook-PreToolUse": "pass",
    "sync-skill_dir_empty_before": "pass",
    "sync-session_start": "pass",
    "sync-sync_recorded": "pass",
}


def test_the_registry_and_the_configuration_are_those_of_the_trial_alone(bench: Bench) -> None:
    """A registry of the user's, or an update, would be part of what is compared."""
    staged = bench.staged()

    assert (bench.layout.home / ".symposium/config.toml").read_text() == (
        'auto-sync = true\nhook-scope = "global"\nauto-update = "off"\n\n'
        "[defaults]\nsymposium-recommendations = false\nuser-plugins = false\n\n"
        f'[[registry]]\nname = "eval"\npath = "{bench.layout.registry}"\n'
    )
    assert (bench.layout.registry / "house/skills/tidy/SKILL.md").is_file()
    assert (bench.layout.registry / "house/SYMPOSIUM.toml").is_file()
    assert [command.argv[1:] for command in staged.init] == [("init", "--add-agent", "claude")]
    assert staged.links == {"cargo-agents": bench.tools / "cargo-agents"}
    assert staged.reads == (bench.tools,)
    assert staged.offers == Offered(skills=("tidy",), mcp_servers=("symposium",))
    assert not (bench.layout.project / ".claude").exists()


def test_the_program_is_named_by_version_and_digest(bench: Bench, staged: Staged) -> None:
    """Two builds go by one version, and a batch runs on one of them."""
    assert staged.symposium is not None
    assert staged.symposium.version == "cargo-agents 0.4.0"
    assert bench.symposium.version == f"cargo-agents 0.4.0 {staged.symposium.sha256}"
    assert bench.symposium.missing() is None
    assert bench.symposium.programs == ("cargo-agents",)


@pytest.mark.parametrize("client", [CLAUDE, CODEX])
def test_init_registers_hooks_with_the_client_and_installs_nothing(
    bench: Bench, client: Needs
) -> None:
    """What is installed before the session is no behaviour of the treatment's."""
    bench.initialised(client)

    assert (bench.layout.home / ".claude").exists() == (client is CLAUDE)
    assert (bench.layout.home / ".codex").exists() == (client is CODEX)
    assert not (bench.layout.project / client.skill_folder).exists()


@pytest.mark.slow
@needs("cargo")
@pytest.mark.parametrize("client", [CLAUDE, CODEX])
def test_all_expectations_of_an_ideal_session_pass(bench: Bench, client: Needs) -> None:
    """Hooks fire, the sync installs what the crate asks for, and the agent reads it."""
    staged = bench.initialised(client)
    hooks = bench.fired("SessionStart", "PreToolUse")
    read = call("read", f"{client.skill_folder}/tidy/SKILL.md")

    # One of both clients does not report its hooks.
    found = bench.decided(staged, read, hooks=hooks if client is CLAUDE else None)

    assert verdicts(found) == IDEAL
    assert found.hooks == {"SessionStart": "pass", "PreToolUse": "pass"}
    assert found.sync.session_start == found.sync.sync_recorded == "pass"
    assert found.skills["tidy"].observed_load is Load.LOADED
    assert all(decision.rests_on for decision in found.decisions)


@pytest.mark.slow
@needs("cargo")
def test_in_noise_only_what_applies_is_installed(bench: Bench) -> None:
    """The other plugins are in the registry too, and it is Symposium that chooses."""
    root = bench.tidy.root.parent
    alien = make_plugin(root, "alien", "mow", depends_on='["serde"]')
    common = make_plugin(root, "common", "wash")
    staged = bench.initialised(noise=(alien, common))
    hooks = bench.fired("SessionStart")
    expected = Expected(installed=("tidy", "wash"), not_installed=("mow",), not_used=("wash",))

    found = bench.decided(staged, hooks=hooks, expected=expected)

    assert staged.offers.skills == ("tidy", "mow", "wash")
    assert verdicts(found) == {
        "installed-tidy": "pass",
        "installed-wash": "pass",
        "not_installed-mow": "pass",
        "not_used-wash": "pass",
        "sync-skill_dir_empty_before": "pass",
        "sync-session_start": "pass",
        "sync-sync_recorded": "pass",
    }
    wrong = Expected(installed=("mow",), not_installed=("wash",))
    found = bench.decided(staged, hooks=hooks, expected=wrong)
    assert verdicts(found)["installed-mow"] == verdicts(found)["not_installed-wash"] == "fail"


def test_without_a_workspace_hooks_succeed_and_no_sync_is_recorded(
    bench: Bench, staged: Staged
) -> None:
    """A failed sync is logged and no error of the hook's, so a session's end proves no sync."""
    (bench.layout.project / "Cargo.toml").unlink()
    hooks = bench.fired("SessionStart")

    found = bench.decided(staged, hooks=hooks, expected=Expected(installed=("tidy",)))

    assert verdicts(found) == {
        "installed-tidy": "fail",
        "sync-skill_dir_empty_before": "pass",
        "sync-session_start": "pass",
        "sync-sync_recorded": "fail",
    }
    assert (bench.layout.home / ".symposium/logs").is_dir()


def test_a_session_without_hooks_fails_what_rests_on_them(bench: Bench, staged: Staged) -> None:
    """A missing hook is a failure of the treatment, and no point in the baseline's favour."""
    found = bench.decided(staged, hooks=())

    assert verdicts(found) == {
        **dict.fromkeys(IDEAL, "fail"),
        "sync-skill_dir_empty_before": "pass",
    }


@pytest.fixture
def worked(bench: Bench, staged: Staged) -> tuple[HookRun, ...]:
    """The hooks of an ideal session, after which tests let the agent meddle."""
    return bench.fired("SessionStart", "PreToolUse")


def pipe_for_trace(layout: RunLayout) -> None:
    (layout.evidence / "hook-trace.jsonl").unlink()
    os.mkfifo(layout.evidence / "hook-trace.jsonl")


def link_for_trace(layout: RunLayout) -> None:
    trace = layout.evidence / "hook-trace.jsonl"
    trace.rename(layout.evidence / "real")
    trace.symlink_to("real")


def torn_trace(layout: RunLayout) -> None:
    trace = layout.evidence / "hook-trace.jsonl"
    trace.write_bytes(trace.read_bytes()[:-3])


def foreign_record(layout: RunLayout) -> None:
    with (layout.evidence / "hook-trace.jsonl").open("a") as trace:
        trace.write('{"event": "Stop", "agent": "codex", "input": {}, "output": null}\n')


def state_of(layout: RunLayout) -> Path:
    (state,) = (layout.home / ".symposium/cache/workspaces").glob("*/state.json")
    return state


def link_for_state(layout: RunLayout) -> None:
    state = state_of(layout)
    state.rename(state.with_name("real"))
    state.symlink_to("real")


def state_of_another(layout: RunLayout) -> None:
    state = state_of(layout)
    state.write_text(state.read_text().replace(str(layout.project), "/elsewhere"))


def torn_state(layout: RunLayout) -> None:
    state = state_of(layout)
    state.write_text(state.read_text()[:20])


def changed_config(layout: RunLayout) -> None:
    with (layout.home / ".symposium/config.toml").open("a") as file:
        file.write("[telemetry]\nenabled = true\n")


def no_symposium(layout: RunLayout) -> None:
    shutil.rmtree(layout.home / ".symposium")


HOOK_NAMES = ("hook-SessionStart", "hook-PreToolUse", "sync-session_start")
MEDDLINGS: dict[str, tuple[Meddling, tuple[str, ...]]] = {
    "pipe for trace": (pipe_for_trace, HOOK_NAMES),
    "link for trace": (link_for_trace, HOOK_NAMES),
    "torn trace": (torn_trace, HOOK_NAMES),
    "record of another agent": (foreign_record, HOOK_NAMES),
    "link for state": (link_for_state, ("sync-sync_recorded",)),
    "state of another workspace": (state_of_another, ("sync-sync_recorded",)),
    "torn state": (torn_state, ("sync-sync_recorded",)),
    "changed configuration": (changed_config, (*HOOK_NAMES, "sync-sync_recorded")),
    "all of Symposium gone": (no_symposium, (*HOOK_NAMES, "sync-sync_recorded")),
}


@pytest.mark.slow
@needs("cargo")
@pytest.mark.parametrize(("meddle", "affected"), MEDDLINGS.values(), ids=MEDDLINGS)
def test_what_the_session_tampered_with_decides_nothing_and_all_else_stands(
    bench: Bench,
    staged: Staged,
    worked: tuple[HookRun, ...],
    meddle: Meddling,
    affected: tuple[str, ...],
) -> None:
    """Neither a pass nor a fail can be bought by writing where hooks write."""
    found = bench.decided(staged, READ_TIDY, hooks=worked, meddle=meddle)

    assert verdicts(found) == {**IDEAL, **dict.fromkeys(affected, "inconclusive")}


@pytest.mark.slow
@needs("cargo")
@pytest.mark.parametrize(
    "touching",
    [
        call("command", "echo '{}' >> $SYMPOSIUM_HOOK_TRACE"),
        call("edit", "../evidence/hook-trace.jsonl"),
        call("edit", "../home/.claude/settings.json"),
    ],
)
def test_a_call_that_may_have_forged_records_makes_them_inconclusive(
    bench: Bench, staged: Staged, worked: tuple[HookRun, ...], touching: ToolCall
) -> None:
    """The transcript is the primary record; what it shows outweighs what stands in a file."""
    found = bench.decided(staged, READ_TIDY, touching, hooks=worked)

    affected = dict.fromkeys((*HOOK_NAMES, "sync-sync_recorded"), "inconclusive")
    assert verdicts(found) == {**IDEAL, **affected}


def test_a_forged_record_of_a_hook_that_never_ran_is_inconclusive(
    bench: Bench, staged: Staged
) -> None:
    """The client started none, whatever a file says."""
    line = {"event": "SessionStart", "agent": "claude", "input": {}, "output": None}
    (bench.layout.evidence / "hook-trace.jsonl").write_text(json.dumps(line) + "\n")

    found = bench.decided(staged, hooks=())

    assert verdicts(found)["sync-session_start"] == "inconclusive"
    assert verdicts(found)["hook-SessionStart"] == "inconclusive"
    assert verdicts(found)["hook-PreToolUse"] == "fail"


UNDECIDED = ("inconclusive", "inconclusive")
Case = tuple[Callable[[Path], object], tuple[ToolCall, ...], tuple[str, str]]
"""What becomes of the installed skill, the session's calls, and both verdicts."""


def own_words(folder: Path) -> None:
    (folder / "SKILL.md").write_text("own words")


def no_mark(folder: Path) -> None:
    (folder / ".symposium").unlink()


def link_for_mark(folder: Path) -> None:
    (folder / ".symposium").unlink()
    (folder / ".symposium").symlink_to("SKILL.md")


def suffixed(folder: Path) -> None:
    folder.rename(folder.with_name("tidy-1a2b3c4d"))


def linked(folder: Path) -> None:
    folder.rename(folder.with_name("real"))
    folder.symlink_to("real")


@pytest.mark.slow
@needs("cargo")
@pytest.mark.parametrize(
    "case",
    [
        (lambda _: None, (), ("pass", "fail")),
        (suffixed, (), ("pass", "fail")),
        (own_words, (), ("fail", "fail")),
        (no_mark, (), ("fail", "fail")),
        (link_for_mark, (), ("fail", "fail")),
        (linked, (), ("fail", "fail")),
        (shutil.rmtree, (), ("fail", "pass")),
        # What the agent did itself is no behaviour of the treatment's.
        (own_words, (call("edit", ".claude/skills/tidy/SKILL.md"),), UNDECIDED),
        (lambda _: None, (call("edit", ".claude/skills/tidy/x"),), UNDECIDED),
        (shutil.rmtree, (call("command", "rm -r .claude"),), UNDECIDED),
        (shutil.rmtree, (call("command", "ls -a .claude"),), ("fail", "pass")),
        (no_mark, (call("command", "cp -r x .claude/skills/tidy"),), UNDECIDED),
        (lambda _: None, (call("command", "cat .claude/skills/tidy/x"),), ("pass", "inconclusive")),
    ],
)
def test_installed_is_decided_from_content_and_mark(
    bench: Bench, staged: Staged, worked: tuple[HookRun, ...], case: Case
) -> None:
    """It is compared with the plugin, which the trial cannot write."""
    change, calls, (installed, not_installed) = case
    change(bench.layout.project / ".claude/skills/tidy")

    for expected, verdict in (
        (Expected(installed=("tidy",)), installed),
        (Expected(not_installed=("tidy",)), not_installed),
    ):
        found = bench.decided(staged, *calls, hooks=worked, expected=expected)
        assert found.decisions[0].verdict == verdict


def test_a_load_from_a_suffixed_folder_is_seen(bench: Bench, staged: Staged) -> None:
    """A sync takes another name where the skill's own is somebody's."""
    shutil.copytree(
        bench.tidy.root / "skills/tidy", bench.layout.project / ".claude/skills/tidy-1a2b3c4d"
    )
    (bench.layout.project / ".claude/skills/tidy-1a2b3c4d/.symposium").touch()
    used = Expected(used=("tidy",), installed=("tidy",))

    for form in (
        call("skill", "tidy-1a2b3c4d"),
        call("read", ".claude/skills/tidy-1a2b3c4d/SKILL.md"),
    ):
        found = bench.decided(staged, form, hooks=(), expected=used)
        assert verdicts(found)["used-tidy"] == "pass"
        assert verdicts(found)["installed-tidy"] == "pass"


def test_changes_of_the_skill_folder_are_told_and_a_sync_s_own_are_not(
    bench: Bench, staged: Staged
) -> None:
    """A skill that was never installed was not removed by the session."""
    folder = bench.layout.project / ".claude/skills"
    nothing = bench.symposium.collect(staged, bench.layout, session())
    shutil.copytree(bench.tidy.root / "skills/tidy", folder / "tidy")
    (folder / "tidy/.symposium").touch()
    (folder / "tidy/.gitignore").write_text("*\n")
    (folder / ".gitignore").write_text("*\n")
    synced = bench.symposium.collect(staged, bench.layout, session())
    (folder / "tidy/SKILL.md").write_text("own")
    write(folder, "own/SKILL.md", "own")

    assert nothing.config_changes == synced.config_changes == ()
    assert bench.symposium.collect(staged, bench.layout, session()).config_changes == (
        ".claude/skills/own: added",
        ".claude/skills/tidy: altered",
    )


def test_the_baseline_has_no_evidence_of_symposium(bench: Bench) -> None:
    """Nothing was put in place, so nothing is looked for."""
    evidence = bench.symposium.collect(None, bench.layout, session(), config=("x was added",))

    assert (evidence.planned, evidence.config_changes) == ({}, ("x was added",))


def other_hook(layout: RunLayout) -> None:
    file = layout.home / ".claude/settings.json"
    text = file.read_text().replace("cargo-agents hook claude stop", "x")
    file.write_text(text.replace("cargo-agents hook claude pre-tool-use", "curl evil"))


def prefixed_hook(layout: RunLayout) -> None:
    file = layout.home / ".claude/settings.json"
    file.write_text(file.read_text().replace("session-start", "session-start; id"))


def no_start(layout: RunLayout) -> None:
    file = layout.home / ".claude/settings.json"
    file.write_text(file.read_text().replace('"SessionStart"', '"SessionStarted"'))


def no_hooks(layout: RunLayout) -> None:
    (layout.home / ".claude/settings.json").unlink()


def torn_hooks(layout: RunLayout) -> None:
    (layout.home / ".claude/settings.json").write_text('{"hooks": [')


def linked_hooks(layout: RunLayout) -> None:
    file = layout.home / ".claude/settings.json"
    file.rename(file.with_name("real"))
    file.symlink_to("real")


def both_clients(layout: RunLayout) -> None:
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}
    write(layout.home, ".codex/hooks.json", json.dumps(hooks))


def early_skill(layout: RunLayout) -> None:
    write(layout.project, ".claude/skills/tidy/SKILL.md", "early")


def other_registry(layout: RunLayout) -> None:
    file = layout.home / ".symposium/config.toml"
    file.write_text(file.read_text().replace(str(layout.registry), "/elsewhere"))


def updates(layout: RunLayout) -> None:
    file = layout.home / ".symposium/config.toml"
    file.write_text(file.read_text().replace('auto-update = "off"', 'auto-update = "on"'))


def other_agent(layout: RunLayout) -> None:
    file = layout.home / ".symposium/config.toml"
    file.write_text(file.read_text() + '\n[[agent]]\nname = "codex"\n')


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (other_hook, "home/.claude/settings.json: PreToolUse"),
        (prefixed_hook, "home/.claude/settings.json: SessionStart"),
        (no_start, "home/.claude/settings.json"),
        (no_hooks, "home/.claude/settings.json"),
        (torn_hooks, "home/.claude/settings.json"),
        (linked_hooks, "home/.claude/settings.json"),
        (both_clients, "home/.codex/hooks.json"),
        (early_skill, "project/.claude/skills"),
        (other_registry, "home/.symposium/config.toml: registry"),
        (updates, "home/.symposium/config.toml: auto-update"),
        (other_agent, "home/.symposium/config.toml: agent"),
    ],
)
def test_a_trial_that_was_not_prepared_as_planned_is_refused_by_name(
    bench: Bench, staged: Staged, spoil: Meddling, where: str
) -> None:
    """Hooks of somebody else's, or none, would be told as the treatment's effect."""
    bench.symposium.verify(staged)
    spoil(bench.layout)

    with pytest.raises(SetupError) as caught:
        bench.symposium.verify(staged)

    assert caught.value.where == f"{bench.layout.root}/{where}"


def test_a_later_version_may_register_more_events_with_hooks_of_its_own_alone(
    bench: Bench, staged: Staged
) -> None:
    """Which events there are is Symposium's choice; whose hooks they are is not."""
    file = bench.layout.home / ".claude/settings.json"
    settings = json.loads(file.read_text())
    assert "Later" not in settings["hooks"]

    def register(command: str) -> None:
        hooks = [{"type": "command", "command": command}]
        settings["hooks"]["Later"] = [{"matcher": "*", "hooks": hooks}]
        file.write_text(json.dumps(settings))

    register("cargo-agents hook claude later")
    bench.symposium.verify(staged)
    register("later")
    with pytest.raises(SetupError) as caught:
        bench.symposium.verify(staged)

    assert caught.value.where == f"{file}: Later"
    assert caught.value.problem == "runs later, which is not a hook of Symposium's"


def test_a_skill_is_looked_for_by_the_name_that_it_gives_itself(bench: Bench) -> None:
    """A sync names the folder by the front matter, and tasks by the plugin's folder."""
    skill = bench.tidy.root / "skills/tidy/SKILL.md"
    skill.write_text(skill.read_text().replace("name: tidy", "name: tidy-up"))
    staged = bench.initialised()
    shutil.copytree(skill.parent, bench.layout.project / ".claude/skills/tidy-up")
    (bench.layout.project / ".claude/skills/tidy-up/.symposium").touch()

    found = bench.decided(
        staged,
        call("skill", "tidy-up"),
        hooks=(),
        expected=Expected(installed=("tidy",), used=("tidy",)),
    )

    assert staged.offers.skills == ("tidy-up",)
    assert verdicts(found)["installed-tidy"] == verdicts(found)["used-tidy"] == "pass"


def test_servers_of_plugins_may_be_listed(bench: Bench) -> None:
    """Symposium registers them with the client, which lists them at its start."""
    with (bench.tidy.root / "SYMPOSIUM.toml").open("a") as manifest:
        manifest.write('\n[[mcp_servers]]\nname = "oven"\ncommand = "/bin/true"\n')

    staged = bench.staged()

    assert staged.offers.mcp_servers == ("symposium", "oven")


def test_a_plugin_with_a_link_is_refused(bench: Bench) -> None:
    """The registry would hold less than the author wrote."""
    (bench.tidy.root / "skills/tidy/link").symlink_to("SKILL.md")

    with pytest.raises(SetupError, match="tidy/link: is a link or a special file"):
        bench.staged()


@pytest.mark.parametrize(
    ("client", "embedded", "why"),
    [
        (CLAUDE, False, None),
        (CODEX, False, None),
        (CLAUDE, True, "an embedded client starts no hooks"),
        (Needs(), False, "checked for claude, codex alone"),
        (replace(CLAUDE, agent="goose"), False, "checked for claude, codex alone"),
    ],
)
def test_only_a_client_whose_hooks_can_be_checked_is_treated(
    bench: Bench, client: Needs, embedded: bool, why: str | None
) -> None:
    """Elsewhere nothing would ever start Symposium, and that would be told as its failure."""
    said = bench.symposium.supports(client, embedded=embedded)

    assert (said is None) == (why is None)
    assert why is None or why in (said or "")


def test_a_program_that_is_not_there_is_told_with_the_option(tmp_path: Path) -> None:
    """The reader must know what to install, or how to name what is installed."""
    gone = Symposium().with_program(tmp_path / "gone")

    assert gone.version is None
    assert f"{tmp_path}/gone" in (gone.missing() or "")
    assert "--evalarc-symposium" in (gone.missing() or "")


def test_a_program_that_does_not_tell_its_version_is_missing(tmp_path: Path) -> None:
    """Results name what was evaluated, so it must say what it is."""
    mute = tmp_path / "cargo-agents"
    mute.write_text("#!/bin/sh\nexit 3\n")
    mute.chmod(0o755)

    assert "does not answer --version" in (Symposium(program=mute).missing() or "")
    assert Symposium(program=mute).version is None


def test_what_is_staged_is_a_copy_of_what_a_link_leads_to(tmp_path: Path) -> None:
    """A sandbox matches its rules with the path that is opened, and a link leads out of them."""
    real = build(tmp_path / "real")
    link = tmp_path / "cargo-agents"
    link.symlink_to(real)
    (tmp_path / "tools").mkdir()

    Symposium(program=link).fill(tmp_path / "tools")

    copy = tmp_path / "tools/cargo-agents"
    assert not copy.is_symlink()
    assert copy.read_bytes() == real.read_bytes()
    assert os.access(copy, os.X_OK)


@pytest.mark.slow
@needs("cargo")
@needs_claude
def test_claude_starts_the_hooks_and_its_agent_reads_what_the_sync_installs(
    bench: Bench, staged: Staged
) -> None:
    """Hooks are found by their bare name on PATH, and the first one installs before all else."""
    script = Script(
        [turn(Read(".claude/skills/tidy/SKILL.md")), turn(Run("echo work")), turn(Say("Done."))]
    )
    with ModelServer({"s": script}) as server:
        events = claude_session(bench.layout, server.url("s"), path=cargo_folders())

    found = bench.decided(staged, READ_TIDY, hooks=hooks_in(events))

    assert verdicts(found) == IDEAL
    assert "# tidy" in json.dumps(events)
