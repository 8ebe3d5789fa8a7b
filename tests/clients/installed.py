"""Agents as npm installs them, each a file that only looks like a program."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_evalarc.isolation.toolset import _PLATFORM

PLACES = {
    "claude": (f"@anthropic-ai/claude-code-{_PLATFORM}", "claude"),
    "codex": (f"@openai/codex-{_PLATFORM}", "vendor/x/bin/codex"),
}
"""The package that holds each agent's program on this platform, and where in it."""


def install(name: str, tools: Path, version: str, content: bytes = b"\x7fELF program") -> Path:
    """Put an npm package there that holds a program, and return that."""
    package, place = PLACES[name]
    root = tools / "node_modules" / package
    program = root / place
    program.parent.mkdir(parents=True)
    (root / "package.json").write_text(json.dumps({"version": version}))
    program.write_bytes(content)
    program.chmod(0o755)
    return program
