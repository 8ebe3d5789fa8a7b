"""Sessions of the real clients without a sandbox and without the harness around them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Exit, Wrapped
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.isolation.toolset import require
from tests.model_server import KEY, ModelServer
from tests.system.evaluation import MODELS

PROMPT = "Please do the task."
LONGEST_S = 150.0
"""So long that only a session that would never end is ended."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that has ended."""

    exit: Exit
    events: list[dict[str, Any]]
    stderr: str

    @property
    def last(self) -> dict[str, Any]:
        """The last event."""
        return self.events[-1] if self.events else {}


class BareClient:
    """A real client whose home and project are folders of one test."""

    def __init__(self, name: str, folder: Path, server: ModelServer) -> None:
        self.name = name
        self.server = server
        self.project = folder / "project"
        self.home = folder / "home"
        self.tmp = folder / "tmp"
        for made in (self.project, self.home, self.tmp):
            made.mkdir()

    def add_skill(self, name: str, text: str) -> None:
        """Put a skill where the client looks for a project's own."""
        folder = {"claude": ".claude", "codex": ".agents"}[self.name]
        file = self.project / folder / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nname: {name}\ndescription: How to {name}.\n---\n{text}\n", "utf-8")

    def run(
        self,
        script: str,
        *,
        key: str = KEY,
        total_s: float = LONGEST_S,
        cancelled: threading.Event | None = None,
    ) -> Session:
        """Run one session that plays a script of the server."""
        argv, env = {"claude": self._claude, "codex": self._codex}[self.name](script, key)
        stdout, stderr = Capture(1 << 24), Capture(1 << 20)
        wrapped = Wrapped(argv=argv, cwd=self.project, env=env)
        watch = Watch(total_s=total_s, cancelled=cancelled or threading.Event())
        exit = supervise(wrapped, watch, stdout=stdout, stderr=stderr)
        lines = stdout.data().decode().splitlines()
        return Session(
            exit=exit,
            events=[json.loads(line) for line in lines],
            stderr=stderr.data().decode(errors="replace"),
        )

    @property
    def _env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "TMPDIR": str(self.tmp)}

    def _claude(self, script: str, key: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        program = str(require("claude").path)
        options = ("--output-format", "stream-json", "--verbose", "--model", MODELS["claude"])
        argv = (program, "-p", *options, "--permission-mode", "bypassPermissions", "--", PROMPT)
        own = {
            "ANTHROPIC_API_KEY": key,
            "ANTHROPIC_BASE_URL": self.server.url(script, "claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # Ten times else, which takes minutes.
            "CLAUDE_CODE_MAX_RETRIES": "1",
            # Without it the mode is refused to root.
            "IS_SANDBOX": "1",
        }
        return argv, {**self._env, **own}

    def _codex(self, script: str, key: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        provider = {
            "name": "scripted",
            "base_url": self.server.url(script, "codex"),
            "env_key": "OPENAI_API_KEY",
            "wire_api": "responses",
            "request_max_retries": 1,
            "stream_max_retries": 1,
        }
        table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())
        argv = (
            *(str(require("codex").path), "exec", "--json", "--model", MODELS["codex"]),
            *("--sandbox", "danger-full-access", "--skip-git-repo-check"),
            *("--disable", "plugins", "--disable", "unbounded_connection_retries"),
            *("-c", 'model_provider="scripted"'),
            *("-c", f"model_providers.scripted={{{table}}}", "--", PROMPT),
        )
        return argv, {**self._env, "OPENAI_API_KEY": key}
