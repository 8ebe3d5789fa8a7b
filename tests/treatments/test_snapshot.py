from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_evalarc.clients.protocol import Watched
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.snapshot import ABSENT, UNREADABLE, changes, snapshot
from tests.treatments.bench import make_layout, write

SETTINGS = Watched(file="home/.claude/settings.json", keys=("hooks", "enabledPlugins"))
HOOKS = Watched(file="home/.codex/hooks.json")
CONFIG = Watched(file="home/.codex/config.toml", keys=("mcp_servers",))
MEMORY = Watched(file="home/.claude/CLAUDE.md")
FOLDER = Watched(file="home/.claude/plugins")
ALL = (SETTINGS, HOOKS, CONFIG, MEMORY, FOLDER)
OWN = "home/.symposium/config.toml"


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return make_layout(tmp_path / "run")


def test_a_bare_home_has_nothing_that_is_watched(layout: RunLayout) -> None:
    """Symposium's own configuration is always among it: a baseline has none."""
    assert snapshot(layout, ALL) == {
        "home/.claude/settings.json: hooks": ABSENT,
        "home/.claude/settings.json: enabledPlugins": ABSENT,
        "home/.codex/hooks.json": ABSENT,
        "home/.codex/config.toml: mcp_servers": ABSENT,
        "home/.claude/CLAUDE.md": ABSENT,
        "home/.claude/plugins": ABSENT,
        OWN: ABSENT,
    }


def test_each_change_is_a_sentence_with_file_and_key(layout: RunLayout) -> None:
    """A reader must see which part of the configuration a session changed, and how."""
    root = layout.root
    write(root, "home/.claude/settings.json", '{"hooks": {"Stop": []}, "theme": 1}')
    write(root, "home/.codex/hooks.json", "{}")
    write(root, "home/.codex/config.toml", '[mcp_servers.a]\ncommand = "a"\n')
    write(root, "home/.claude/plugins/a/file", "1")
    before = snapshot(layout, ALL)

    write(root, "home/.claude/settings.json", '{"enabledPlugins": {}, "theme": 2}')
    write(root, "home/.codex/hooks.json", '{"hooks": {}}')
    write(root, "home/.codex/config.toml", '[mcp_servers.a]\ncommand = "b"\n')
    write(root, "home/.claude/CLAUDE.md", "remember")
    write(root, "home/.claude/plugins/a/file", "2")
    write(root, OWN, "auto-sync = true\n")

    assert changes(before, snapshot(layout, ALL)) == (
        "home/.claude/CLAUDE.md was added",
        "home/.claude/plugins was altered",
        "home/.claude/settings.json: enabledPlugins was added",
        "home/.claude/settings.json: hooks was removed",
        "home/.codex/config.toml: mcp_servers was altered",
        "home/.codex/hooks.json was altered",
        "home/.symposium/config.toml was added",
    )
    assert changes(before, before) == ()


@pytest.mark.parametrize(
    ("file", "one", "other"),
    [
        ("home/.codex/hooks.json", '{"a": 1, "b": [2]}', '{ "b" : [2],\n "a": 1 }'),
        ("home/.codex/hooks.toml", "a = 1\nb = 1979-05-27\n", "b = 1979-05-27\na=1"),
    ],
)
def test_order_and_layout_are_no_change(layout: RunLayout, file: str, one: str, other: str) -> None:
    """A client that rewrites its own settings has changed nothing."""
    watched = (Watched(file=file),)
    write(layout.root, file, one)
    before = snapshot(layout, watched)
    write(layout.root, file, other)

    assert changes(before, snapshot(layout, watched)) == ()


def pipe(file: Path) -> None:
    os.mkfifo(file)


def link(file: Path) -> None:
    (file.parent / "secret").write_text('{"hooks": {}}')
    file.symlink_to("secret")


def loop(file: Path) -> None:
    file.symlink_to(file.name)


def torn(file: Path) -> None:
    file.write_text('{"hooks": {')


def doubled(file: Path) -> None:
    file.write_text('{"hooks": {}, "hooks": {}}')


def listed(file: Path) -> None:
    file.write_text("[]")


def deep(file: Path) -> None:
    file.write_text('{"hooks": ' + "[" * 100_000)


def huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(1 << 40)


def folder(file: Path) -> None:
    file.mkdir()


PLANTS = [pipe, link, loop, torn, doubled, listed, deep, huge, folder]


@pytest.mark.parametrize("plant", PLANTS)
def test_what_was_planted_is_unreadable_and_told(
    layout: RunLayout, plant: Callable[[Path], None]
) -> None:
    """It may hold any hook, so it is as good as a change; and reading it must end."""
    before = snapshot(layout, (SETTINGS,))
    file = layout.home / ".claude/settings.json"
    file.parent.mkdir()
    plant(file)

    after = snapshot(layout, (SETTINGS,))

    assert after["home/.claude/settings.json: hooks"] == UNREADABLE
    assert changes(before, after) == (
        "home/.claude/settings.json: enabledPlugins cannot be read",
        "home/.claude/settings.json: hooks cannot be read",
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=st.binary(max_size=200), suffix=st.sampled_from([".json", ".toml", ".md"]))
def test_no_content_ever_raises(layout: RunLayout, content: bytes, suffix: str) -> None:
    """Whatever a session writes there, its trial still ends with a result."""
    (layout.home / f"file{suffix}").write_bytes(content)
    watched = (
        Watched(file=f"home/file{suffix}"),
        Watched(file=f"home/file{suffix}", keys=("hooks",)),
    )

    found = snapshot(layout, watched)

    assert all(len(state) == 64 or state in (ABSENT, UNREADABLE) for state in found.values())
