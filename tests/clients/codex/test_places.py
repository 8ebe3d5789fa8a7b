from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.clients.codex.places import places
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.snapshot import changes, snapshot


@pytest.mark.parametrize(
    ("platform", "machine"),
    [
        ("linux", ("/etc/codex",)),
        ("darwin", ("/etc/codex", "/Library/Managed Preferences/com.openai.codex.plist")),
        ("win32", ("C:\\ProgramData\\OpenAI\\Codex",)),
    ],
)
def test_what_an_administrator_sets_is_known(platform: str, machine: tuple[str, ...]) -> None:
    """A skill of the machine's would reach both configurations."""
    assert places(platform).machine == tuple(Path(place) for place in machine)


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("home/.codex/hooks.json", '{"hooks": {}}', "home/.codex/hooks.json was added"),
        ("home/.codex/config.toml", "[mcp_servers.x]", "home/.codex/config.toml: mcp_servers"),
        ("home/.codex/config.toml", "[features]", "home/.codex/config.toml: features"),
        ("home/.codex/config.toml", '[projects."/x"]', "home/.codex/config.toml: projects"),
        ("home/.codex/AGENTS.md", "Use tidy.", "home/.codex/AGENTS.md was added"),
        ("home/.agents/skills/x/SKILL.md", "x", "home/.agents was added"),
        ("project/.codex/config.toml", "x = 1", "project/.codex/config.toml was added"),
        ("home/.codex/config.toml", "[notice]", None),
        ("home/.codex/sessions/x.jsonl", "x", None),
        ("home/.codex/skills/.system/x", "x", None),
        ("project/AGENTS.md", "x", None),
    ],
)
def test_what_decides_what_reaches_a_session_is_watched(
    tmp_path: Path, path: str, content: str, told: str | None
) -> None:
    """An agent that changes its hooks leaves records that prove nothing."""
    layout, watched = RunLayout(root=tmp_path), places().watched
    before = snapshot(layout, watched)
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(content)

    found = changes(before, snapshot(layout, watched))

    assert len(found) == (told is not None)
    assert all(sentence.startswith(told or "") for sentence in found)
