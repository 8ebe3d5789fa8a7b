"""The command line of `codex`: what every session is told, in all configurations alike.

All is said by options, which outrank every file; so no variable is added to the environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from pytest_evalarc.clients.codex.settings import HOST, CodexSettings
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import JsonObject

KEY = "CODEX_API_KEY"
"""The variable that the client's own provider of models takes a key from."""
PROVIDER = "evalarc"
"""The name of a provider that a table describes: the client's own cannot be told anything."""

OFF = ("plugins", "unbounded_connection_retries", "api_key_model_discovery")
"""Features of the client that are switched off.

The first and the last call other hosts than the model's. Without the second, a session whose
model cannot be reached would wait for it until its deadline.
"""

CONFIG: Mapping[str, bool | str | list[str]] = MappingProxyType(
    {
        # Nobody else is called.
        "analytics.enabled": False,
        "otel.metrics_exporter": "none",
        "check_for_update_on_startup": False,
        # What the model's host fetches has passed no boundary of ours, and might be a solution.
        "web_search": "disabled",
        # What a sub-agent does and uses is told by no event: it could load a skill unseen.
        "agents.enabled": False,
        # A login shell takes the machine's own PATH in place of the trial's.
        "allow_login_shell": False,
        # Instructions and skills are looked for in the project alone. In the folders around it,
        # up to a repository, they would be found as well.
        "project_root_markers": [],
    }
)
"""Settings of the client that every session gets."""


def exec_words(
    *,
    model: str,
    settings: CodexSettings,
    key_env: tuple[str, ...],
    confined: RunLayout | None,
) -> tuple[str, ...]:
    """Return the words after the program; the prompt comes by standard input.

    Args:
        model: The model to use.
        settings: What the client's table says.
        key_env: The variables that carry its credentials, that of the model's API first.
        confined: The trial's folders, where the client's own sandbox is to keep to them; None
            where it is off.
    """
    return (
        *("exec", "--json", "--model", model),
        *("--sandbox", "danger-full-access" if confined is None else "workspace-write"),
        *("--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
        *(word for feature in OFF for word in ("--disable", feature)),
        *(
            word
            for key, value in _config(settings, key_env, confined).items()
            for word in ("-c", f"{key}={_toml(value)}")
        ),
        "-",
    )


def _config(
    settings: CodexSettings, key_env: tuple[str, ...], confined: RunLayout | None
) -> JsonObject:
    config: JsonObject = {
        key: list(value) if isinstance(value, list) else value for key, value in CONFIG.items()
    }
    # The client has the key in its own environment, and what the agent runs needs none.
    config["shell_environment_policy.exclude"] = list(key_env)
    if settings.reasoning_effort is not None:
        config["model_reasoning_effort"] = settings.reasoning_effort
    if (settings.base_url, settings.max_retries, key_env[0]) != (None, None, KEY):
        config["model_provider"] = PROVIDER
        config[f"model_providers.{PROVIDER}"] = _provider(settings, key_env[0])
    if confined is not None:
        roots = (confined.cargo_home, confined.home, confined.evidence)
        config["sandbox_workspace_write.writable_roots"] = [str(root) for root in roots]
        # TMPDIR can be written without a word; the machine's /tmp need not be.
        config["sandbox_workspace_write.exclude_slash_tmp"] = True
    return config


def _provider(settings: CodexSettings, key: str) -> JsonObject:
    """Return the model's API as the client wants it described."""
    retries = settings.max_retries
    asked: JsonObject = {"request_max_retries": retries, "stream_max_retries": retries}
    return {
        "name": PROVIDER,
        "base_url": settings.base_url or f"https://{HOST}/v1",
        "env_key": key,
        "wire_api": "responses",
        **({} if retries is None else asked),
    }


def _toml(value: object) -> str:
    """Return a value as TOML on one line."""
    match value:
        case dict():
            return "{" + ",".join(f"{key}={_toml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ",".join(_toml(inner) for inner in value) + "]"
        case _:
            # Numbers, truth and quotes are those of JSON, but for one control that it lets stand.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
