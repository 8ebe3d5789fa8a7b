"""A run folder, plugins and calls for tests of treatments."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Plugin, Task, TaskBrief
from pytest_evalarc.model.transcript import HookRun, ToolCall, Transcript

Kind = Literal["skill", "read", "edit", "command", "other"]


def make_layout(root: Path) -> RunLayout:
    """Return a run folder whose writable folders are there and empty."""
    layout = RunLayout(root=root)
    for folder in (*layout.writable, layout.bin):
        folder.mkdir(parents=True)
    return layout


def write(root: Path, path: str, content: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def skill_text(name: str) -> str:
    return f"---\nname: {name}\ndescription: How to {name}.\n---\n# {name}\n"


def make_plugin(root: Path, name: str, *skills: str, depends_on: str = '["*"]') -> Plugin:
    """Return a plugin for every treatment."""
    folder = root / name
    write(folder, "SYMPOSIUM.toml", MANIFEST.format(name=name, depends_on=depends_on))
    for skill in skills:
        write(folder, f"skills/{skill}/SKILL.md", skill_text(skill))
        write(folder, f"skills/{skill}/scripts/run.sh", "#!/bin/sh\n").chmod(0o755)
    return Plugin(name=name, root=folder)


MANIFEST = 'name = "{name}"\ndepends-on = {depends_on}\n\n[[skills]]\nsource.path = "skills"\n'


def make_task(*plugins: Plugin) -> Task:
    return Task(
        brief=TaskBrief(name="t", prompt="p"),
        kind="capability",
        root=Path("/nowhere"),
        toolchain="rust",
        plugins=plugins,
        weights={},
        sha256="0" * 64,
    )


def call(
    kind: Kind, target: str, *, is_error: bool | None = False, result: str | None = None
) -> ToolCall:
    return ToolCall(
        id="x", kind=kind, name=kind.title(), target=target, is_error=is_error, result=result
    )


def session(
    *calls: ToolCall, hooks: tuple[HookRun, ...] | None = None, interpreted: bool = True
) -> Transcript:
    return Transcript(events=len(calls), tool_calls=calls, hooks=hooks, interpreted=interpreted)


def ran(event: str, succeeded: bool | None = True) -> HookRun:
    return HookRun(event=event, succeeded=succeeded)
