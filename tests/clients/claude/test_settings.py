from __future__ import annotations

from typing import Any

import pytest

from pytest_evalarc.clients.claude.client import ClaudeClient
from pytest_evalarc.errors import UsageError


def client(**settings: Any) -> ClaudeClient:
    return ClaudeClient().configured("mine", command=(), key_env=(), model="m-1", settings=settings)


@pytest.mark.parametrize(
    ("settings", "domains"),
    [
        ({}, ("api.anthropic.com",)),
        ({"base_url": "https://gateway.example.com/anthropic"}, ("gateway.example.com",)),
        ({"base_url": "http://127.0.0.1:8080/s/x"}, ("127.0.0.1:8080",)),
        ({"base_url": "http://[::1]:8080"}, ("[::1]:8080",)),
        ({"base_url": "https://A.example.com"}, ("a.example.com",)),
        ({"domains": ["bedrock.example.com"]}, ("bedrock.example.com",)),
        (
            {"base_url": "https://a.example.com", "domains": ["b.example.com", "a.example.com"]},
            ("a.example.com", "b.example.com"),
        ),
    ],
)
def test_a_session_reaches_its_models_and_what_it_is_given_beside(
    settings: dict[str, Any], domains: tuple[str, ...]
) -> None:
    """A cloud's own hosts take the place of Anthropic's, which would be open for nothing."""
    assert client(**settings).needs.domains == domains


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"efort": "high"}, "client mine: takes no setting 'efort'; nearest: effort"),
        ({"effort": "huge"}, "client mine: setting effort: is 'huge'; .*'max'"),
        ({"max_turns": 0}, "setting max_turns: is 0"),
        ({"max_retries": -1}, "setting max_retries: is -1"),
        ({"env": ["A=1"]}, r"setting env: is \['A=1'\]"),
        ({"domains": [""]}, "setting domains: "),
        ({"base_url": "gateway.example.com"}, "setting base_url: .*; write a URL as https://"),
        ({"base_url": "ftp://example.com"}, "setting base_url: .*; write a URL"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_told_in_one_sentence(
    settings: dict[str, Any], sentence: str
) -> None:
    """A setting that has no effect would be paid for and compared."""
    with pytest.raises(UsageError, match=sentence):
        client(**settings)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"env": ["IS_SANDBOX"]}, "IS_SANDBOX"),
        ({"env": ["DISABLE_AUTOUPDATER"]}, "DISABLE_AUTOUPDATER"),
        ({"env": ["ANTHROPIC_BASE_URL"], "base_url": "http://a.b"}, "ANTHROPIC_BASE_URL"),
        ({"env": ["CLAUDE_CODE_MAX_RETRIES"], "max_retries": 0}, "CLAUDE_CODE_MAX_RETRIES"),
    ],
)
def test_a_variable_that_every_session_is_given_cannot_be_passed_on(
    settings: dict[str, Any], name: str
) -> None:
    """Its value would be overruled without a word."""
    with pytest.raises(UsageError, match=f"client mine: env: names {name}, which is .*take it out"):
        client(**settings)


def test_a_variable_is_passed_on_where_no_setting_says_it() -> None:
    """An operator's own gateway may be known by its variable alone."""
    made = client(env=["ANTHROPIC_BASE_URL"], domains=["a.example.com"])

    assert made.needs.env == ("ANTHROPIC_BASE_URL",)
