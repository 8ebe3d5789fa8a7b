"""What Symposium is configured with, and which hooks it registers with a client."""

from __future__ import annotations

import json
import re
import tomllib
from types import MappingProxyType
from typing import Any

from pytest_evalarc.errors import EvalArcError, SetupError, SubmissionError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.left import read_left
from pytest_evalarc.treatments.prelaunch import CARGO_AGENTS

HOOK_FILES = MappingProxyType(
    {"claude": "home/.claude/settings.json", "codex": "home/.codex/hooks.json"}
)
"""Where Symposium registers its hooks, by the name that it has for an agent."""

_CONFIG = "home/.symposium/config.toml"
_MOST_BYTES = 1 << 20
_HINT = "see what cargo-agents init --add-agent does by hand"


def config_of(layout: RunLayout) -> bytes:
    """Return Symposium's configuration for a trial, as TOML."""
    # A JSON string is a TOML string too.
    registry = json.dumps(str(layout.registry), ensure_ascii=False)
    return f"""\
auto-sync = true
hook-scope = "global"
auto-update = "off"

[defaults]
symposium-recommendations = false
user-plugins = false

[[registry]]
name = "eval"
path = {registry}
""".encode()


def require_config(layout: RunLayout, agent: str) -> None:
    """Prove that Symposium is configured as it was told to be, for one agent alone.

    Raises:
        SetupError: A key differs; names it.
    """
    try:
        found = tomllib.loads((_read(layout, _CONFIG) or b"").decode())
    except ValueError as error:
        where = str(layout.root / _CONFIG)
        raise SetupError(where, f"is no TOML any more: {error}", _HINT) from error
    wanted = tomllib.loads(config_of(layout).decode()) | {"agent": [{"name": agent}]}
    changed = sorted(key for key, value in wanted.items() if found.get(key) != value)
    if changed:
        where = f"{layout.root / _CONFIG}: {changed[0]}"
        raise SetupError(where, "is not what the trial was configured with", _HINT)


def require_hooks(layout: RunLayout, agent: str) -> None:
    """Prove that Symposium's hooks are registered with one agent, and no other hooks with any.

    Raises:
        SetupError: One is missing, or is not Symposium's; names its file.
    """
    for name, file in HOOK_FILES.items():
        where = str(layout.root / file)
        registered = _registered(layout, file)
        if name != agent and registered:
            problem = f"holds hooks of {name}, which is not the client of this trial"
            raise SetupError(where, problem, _HINT)
        if name == agent and not any(event == "SessionStart" for event, _ in registered):
            raise SetupError(where, "registers no hook for SessionStart", _HINT)
        for event, command in registered:
            if not re.fullmatch(rf"{CARGO_AGENTS} hook {agent} [A-Za-z-]+", command):
                shown = printable(command, limit=200)
                problem = f"runs {shown}, which is not a hook of Symposium's"
                raise SetupError(f"{where}: {event}", problem, _HINT)


def commands_of(hooks: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - what was read is checked here.
    """Return (event, command) of every hook in the value that clients keep under `hooks`.

    Raises:
        TypeError, AttributeError or KeyError: It has another shape.
    """
    return [
        (event, str(hook["command"]))
        for event, groups in hooks.items()
        for group in groups
        for hook in group["hooks"]
    ]


def _registered(layout: RunLayout, file: str) -> list[tuple[str, str]]:
    data = _read(layout, file)
    if data is None:
        return []
    try:
        document: Any = loads(data, where=file)
        return commands_of(document.get("hooks", {}))
    except (EvalArcError, AttributeError, KeyError, TypeError) as error:
        where = str(layout.root / file)
        raise SetupError(where, "holds no hooks that can be read", _HINT) from error


def _read(layout: RunLayout, file: str) -> bytes | None:
    try:
        return read_left(layout.root, file, limit=_MOST_BYTES)
    except SubmissionError as error:
        raise SetupError(str(layout.root / file), error.problem, _HINT) from error
