"""Where `codex` takes configuration from that no trial planned, and what a trial watches."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_evalarc.clients.protocol import Places, Watched

_MACHINE = {
    "darwin": ("/etc/codex", "/Library/Managed Preferences/com.openai.codex.plist"),
    "win32": ("C:\\ProgramData\\OpenAI\\Codex",),
}
"""What an administrator sets for every user of a machine, by platform. The folder holds all of it:
`config.toml`, `managed_config.toml`, `requirements.toml`, `hooks.json`, skills, agents and rules;
and whatever a later version looks for there."""

_LINUX = ("/etc/codex",)

_KEYS = (
    *("agents", "apps", "developer_instructions", "features", "hooks", "instructions"),
    *("marketplaces", "mcp_servers", "model_instructions_file", "notify", "orchestrator"),
    *("plugins", "project_doc_fallback_filenames", "project_doc_max_bytes", "projects"),
    "skills",
)
"""What decides what a session is offered and what is run beside it. The rest of the file is left
out, for the client keeps there what it has once told its user."""

_WATCHED = (
    Watched(file="home/.codex/hooks.json"),
    Watched(file="home/.codex/config.toml", keys=_KEYS),
    Watched(file="home/.codex/AGENTS.md"),
    Watched(file="home/.codex/AGENTS.override.md"),
    Watched(file="home/.codex/agents"),
    Watched(file="home/.codex/plugins"),
    Watched(file="home/.agents"),
    Watched(file="project/.codex/hooks.json"),
    Watched(file="project/.codex/config.toml"),
)
"""None of these is written by a session itself."""


def places(platform: str = sys.platform) -> Places:
    """Return the places of a platform.

    Args:
        platform: As `sys.platform` says it.
    """
    machine = _MACHINE.get(platform, _LINUX)
    return Places(machine=tuple(Path(place) for place in machine), watched=_WATCHED)
