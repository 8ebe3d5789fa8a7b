"""A session of the real `claude` with a scripted model: names and hooks are its business."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.toolset import require
from pytest_evalarc.model.transcript import HookRun
from tests.model_server import KEY

OPTIONS = (
    *("--output-format", "stream-json", "--verbose", "--include-hook-events"),
    *("--permission-mode", "bypassPermissions", "--model", "claude-sonnet-4-5"),
)


def claude_session(
    layout: RunLayout,
    url: str,
    *,
    plugins: Sequence[Path] = (),
    path: Sequence[Path] = (),
) -> list[dict[str, Any]]:
    """Run one session in a run folder and return its events; nothing confines it.

    Args:
        layout: The run folder.
        url: The scripted model.
        plugins: Plugin folders to load.
        path: Folders for PATH beside those of the trial and the system.
    """
    loads = [word for folder in plugins for word in ("--plugin-dir", str(folder))]
    env = {
        "HOME": str(layout.home),
        "PATH": ":".join((str(layout.bin), *(str(folder) for folder in path), "/usr/bin:/bin")),
        "TMPDIR": str(layout.tmp),
        "CARGO_HOME": str(layout.cargo_home),
        "CLAUDE_CODE_TMPDIR": str(layout.tmp),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
        "EVAL_EVIDENCE_DIR": str(layout.evidence),
        "SYMPOSIUM_HOOK_TRACE": str(layout.evidence / "hook-trace.jsonl"),
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
    }
    done = subprocess.run(
        [require("claude").path, "-p", *OPTIONS, *loads, "--", "Tidy up."],
        cwd=layout.project,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def hooks_in(events: Sequence[dict[str, Any]]) -> tuple[HookRun, ...]:
    """Return the runs of hooks that a session reports."""
    return tuple(
        HookRun(event=event["hook_event"], succeeded=event["exit_code"] == 0)
        for event in events
        if event.get("subtype") == "hook_response"
    )
