"""Where `claude` takes configuration from that no trial planned, and what a trial watches."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_evalarc.clients.protocol import Places, Watched

_MACHINE = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": "C:\\Program Files\\ClaudeCode",
}
"""The folder of an administrator, by platform. It holds all there is for every user of a machine:
`managed-settings.json`, `managed-settings.d`, `managed-mcp.json`, `CLAUDE.md` and `.claude` with
skills, agents, commands and rules; and whatever a later version looks for there."""

_LINUX = "/etc/claude-code"

_ABOVE = ("CLAUDE.md", "CLAUDE.local.md", ".claude", ".mcp.json")
"""What it takes from every folder above the one that it works in."""

_WATCHED = (
    # A session rewrites its own state into this file, and leaves the servers of users alone.
    Watched(file="home/.claude.json", keys=("mcpServers",)),
    Watched(file="home/.claude/settings.json"),
    Watched(file="home/.claude/settings.local.json"),
    Watched(file="home/.claude/plugins/installed_plugins.json"),
    Watched(file="home/.claude/plugins/known_marketplaces.json"),
    Watched(file="home/.claude/agents"),
    Watched(file="home/.claude/skills"),
    Watched(file="project/.mcp.json"),
    Watched(file="project/.claude/settings.json"),
    Watched(file="project/.claude/settings.local.json"),
)


def places(platform: str = sys.platform) -> Places:
    """Return the places of a platform.

    Args:
        platform: As `sys.platform` says it.
    """
    return Places(machine=(Path(_MACHINE.get(platform, _LINUX)),), above=_ABOVE, watched=_WATCHED)
