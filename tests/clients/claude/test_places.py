from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.clients.claude.places import places
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.snapshot import snapshot


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", "/etc/claude-code"),
        ("freebsd14", "/etc/claude-code"),
        ("darwin", "/Library/Application Support/ClaudeCode"),
        ("win32", "C:\\Program Files\\ClaudeCode"),
    ],
)
def test_an_administrator_s_folder_is_known_on_every_platform(platform: str, folder: str) -> None:
    """Whatever lies there configures both arms of every comparison."""
    assert places(platform).machine == (Path(folder),)


@pytest.mark.parametrize(
    ("file", "content", "place"),
    [
        ("home/.claude/settings.json", '{"hooks": {}}', "home/.claude/settings.json"),
        ("home/.claude.json", '{"mcpServers": {}}', "home/.claude.json: mcpServers"),
        ("home/.claude/skills/a/SKILL.md", "a", "home/.claude/skills"),
        ("home/.claude/agents/a.md", "a", "home/.claude/agents"),
        ("project/.mcp.json", "{}", "project/.mcp.json"),
        ("project/.claude/settings.local.json", "{}", "project/.claude/settings.local.json"),
    ],
)
def test_what_decides_what_reaches_a_session_is_watched(
    file: str, content: str, place: str, tmp_path: Path
) -> None:
    """A hook or a server that was added in between may have fired, or hidden what did."""
    layout, watched = RunLayout(root=tmp_path), places().watched
    before = snapshot(layout, watched)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(content)

    after = snapshot(layout, watched)

    assert {name for name in after if after[name] != before[name]} == {place}


def test_what_every_session_writes_is_not_watched(tmp_path: Path) -> None:
    """The client keeps its own state beside what users configure."""
    layout, watched = RunLayout(root=tmp_path), places().watched
    before = snapshot(layout, watched)
    written = {
        "home/.claude.json": '{"userID": "x", "pluginUsage": {}}',
        "home/.claude/projects/-run-project/x.jsonl": "{}",
        "home/.claude/plugins/store/x.json": "{}",
        "home/.claude/backups/.claude.json.backup.1": "{}",
        "project/CLAUDE.md": "# Notes",
    }
    for name, content in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)

    assert snapshot(layout, watched) == before
