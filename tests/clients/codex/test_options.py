from __future__ import annotations

import tomllib
from typing import Any

import pytest

from pytest_evalarc.clients.codex.options import CONFIG, KEY, OFF, exec_words
from pytest_evalarc.clients.codex.settings import CodexSettings
from tests.clients.codex.recorded import LAYOUT

Words = tuple[str, ...]


def words(*, key_env: Words = (KEY,), confined: bool = False, **settings: Any) -> Words:
    return exec_words(
        model="m-1",
        settings=CodexSettings(**settings),
        key_env=key_env,
        confined=LAYOUT if confined else None,
    )


def config(given: Words) -> dict[str, Any]:
    """Return the settings that the words set, read as the client reads them."""
    set_by = [given[place + 1] for place, word in enumerate(given) if word == "-c"]
    found: dict[str, Any] = {}
    for key, _, value in (word.partition("=") for word in set_by):
        assert key not in found
        found[key] = tomllib.loads(f"value = {value}")["value"]
    return found


EVERY_SESSION = {
    "analytics.enabled": False,
    "otel.metrics_exporter": "none",
    "check_for_update_on_startup": False,
    "web_search": "disabled",
    "agents.enabled": False,
    "allow_login_shell": False,
    "project_root_markers": [],
    "shell_environment_policy.exclude": ["CODEX_API_KEY"],
}


def test_a_session_is_told_all_that_it_must_keep_to() -> None:
    """What one trial is not told, it does in its own way."""
    given = words()

    options = " ".join(word for word in given if "=" not in word)
    assert options.replace(" -c", "") == (
        "exec --json --model m-1 --sandbox danger-full-access --skip-git-repo-check "
        "--dangerously-bypass-hook-trust --disable plugins "
        "--disable unbounded_connection_retries --disable api_key_model_discovery -"
    )
    assert config(given) == EVERY_SESSION
    assert {*OFF} < {*given}
    assert CONFIG.items() <= EVERY_SESSION.items()


def test_the_prompt_comes_by_standard_input_alone() -> None:
    """An argument has a bound, and one that begins with a dash would be an option."""
    assert words()[-1] == "-"
    assert words().count("-") == 1


def test_a_table_s_settings_reach_the_client() -> None:
    """A setting that never arrives would be compared as if it had."""
    found = config(words(reasoning_effort="high", base_url="http://127.0.0.1:8080/s/a/v1"))

    assert found == {
        **EVERY_SESSION,
        "model_reasoning_effort": "high",
        "model_provider": "evalarc",
        "model_providers.evalarc": {
            "name": "evalarc",
            "base_url": "http://127.0.0.1:8080/s/a/v1",
            "env_key": "CODEX_API_KEY",
            "wire_api": "responses",
        },
    }


@pytest.mark.parametrize(
    ("facts", "provider"),
    [
        ({}, None),
        ({"key_env": (KEY, "MORE")}, None),
        ({"key_env": ("OPENAI_API_KEY",)}, {"env_key": "OPENAI_API_KEY"}),
        ({"max_retries": 0}, {"request_max_retries": 0, "stream_max_retries": 0}),
        ({"max_retries": 3}, {"request_max_retries": 3, "stream_max_retries": 3}),
    ],
)
def test_the_client_s_own_provider_is_used_where_it_takes_what_is_asked(
    facts: dict[str, Any], provider: dict[str, Any] | None
) -> None:
    """It looks for one variable, and its retries cannot be set: for those it is described anew."""
    found = config(words(**facts))

    usual = {
        "name": "evalarc",
        "base_url": "https://api.openai.com/v1",
        "env_key": KEY,
        "wire_api": "responses",
    }
    described = found.get("model_providers.evalarc")
    assert described == (None if provider is None else {**usual, **provider})
    assert found.get("model_provider") == (None if provider is None else "evalarc")
    assert found["shell_environment_policy.exclude"] == list(facts.get("key_env", (KEY,)))


def test_its_own_sandbox_keeps_it_to_the_trial_s_folders() -> None:
    """Without a sandbox around it, it is as restricted as it can be."""
    given = words(confined=True)

    assert given[given.index("--sandbox") + 1] == "workspace-write"
    assert config(given) == {
        **EVERY_SESSION,
        "sandbox_workspace_write.writable_roots": [
            "/eval/run/cargo-home",
            "/eval/run/home",
            "/eval/run/evidence",
        ],
        "sandbox_workspace_write.exclude_slash_tmp": True,
    }


@pytest.mark.parametrize("text", ['a"b', "a\\b", "é\t\n", "\x7f\x1b", "}, x = [1]", "😀"])
def test_text_of_any_kind_is_one_value(text: str) -> None:
    """What ends a value early would become a setting of its own."""
    from pytest_evalarc.clients.codex.options import _toml

    assert tomllib.loads(f"v = {_toml({'k': [text, 1, True]})}") == {"v": {"k": [text, 1, True]}}
