from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.runs.request import ClientLabel, client_label, sandbox_name, setting
from tests.evals import Evals

KNOWN = ("oracle", "nop", "replay")


def label(
    name: str = "fast",
    table: Any = None,
    *,
    model: str | None = None,
    settings: dict[str, object] | None = None,
    **others: Any,
) -> ClientLabel:
    tables = {**others} if table is None else {name: table, **others}
    return client_label(name, tables, known=KNOWN, model=model, settings=settings or {})


def test_a_registered_client_is_its_own_label() -> None:
    """Nothing has to be written down for the built-in clients."""
    assert label("oracle") == ClientLabel(label="oracle", kind="oracle")


def test_a_table_names_client_model_settings_key_and_command() -> None:
    """Several models of one client run side by side under labels of their own."""
    table = {
        "client": "replay",
        "model": "m-1",
        "settings": {"recording": "old", "depth": {"a": [1, 2.5, None, True]}},
        "key_env": "MY_KEY",
        "command": ["agent", "--print"],
    }

    assert label(table=table) == ClientLabel(
        label="fast",
        kind="replay",
        model="m-1",
        settings={"recording": "old", "depth": {"a": [1, 2.5, None, True]}},
        key_env=("MY_KEY",),
        command=("agent", "--print"),
    )


def test_options_override_the_table() -> None:
    """The command line is the more recent wish; what it does not name stays."""
    table = {"client": "nop", "model": "m-1", "settings": {"a": 1, "b": 1}}

    found = label(table=table, model="m-2", settings={"b": 2, "c": 3})

    assert (found.model, found.settings) == ("m-2", {"a": 1, "b": 2, "c": 3})


def test_a_table_may_stand_over_the_client_it_is_named_after() -> None:
    """So a project can set the model of a client once."""
    found = label("nop", {"client": "nop", "model": "m-1"})

    assert (found.label, found.kind, found.model) == ("nop", "nop", "m-1")


WHERE = r"pyproject.toml \[tool.evalarc.clients.fast\]"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"client": "nop", "modle": "m"}, f"{WHERE} modle: unknown key; nearest: model"),
        ({"client": "oracel"}, f"{WHERE} client: no client 'oracel'; nearest: oracle"),
        ({}, f"{WHERE} client: is missing"),
        ({"client": 3}, f"{WHERE} client: is 3"),
        ({"client": ["nop"]}, f"{WHERE} client: is \\['nop'\\]"),
        ({"client": "nop", "model": 4}, f"{WHERE} model: is 4; write a text"),
        ({"client": "nop", "model": ""}, f"{WHERE} model: is ''"),
        ({"client": "nop", "model": True}, f"{WHERE} model: is True"),
        ({"client": "nop", "settings": []}, f"{WHERE} settings: is \\[\\]"),
        ({"client": "nop", "settings": "a=1"}, f"{WHERE} settings: is 'a=1'"),
        ({"client": "nop", "key_env": [1]}, f"{WHERE} key_env: is \\[1\\]"),
        ({"client": "nop", "command": "agent"}, f"{WHERE} command: is 'agent'"),
        ({"client": "nop", "command": [1]}, f"{WHERE} command: is \\[1\\]"),
        (
            {"client": "nop", "settings": {"since": datetime.date(2024, 1, 1)}},
            f"{WHERE} settings since: is datetime.* no JSON value",
        ),
        (
            {"client": "nop", "settings": {"t": float("inf")}},
            f"{WHERE} settings t: is inf, which is no JSON value",
        ),
        (
            {"client": "nop", "settings": {"t": {"deep": [float("nan")]}}},
            f"{WHERE} settings t: .*no JSON value",
        ),
    ],
)
def test_a_wrong_table_is_told_in_one_sentence(table: dict[str, Any], sentence: str) -> None:
    """A typo must not silently run another model, and a paid one at that."""
    with pytest.raises(UsageError, match=sentence):
        label(table=table)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("audit", "'audit' has a meaning in node ids"),
        ("Submission", "'Submission' has a meaning in node ids"),
        ("../oracle", "is not a name"),
        ("a b", "is not a name"),
        ("a::b", "is not a name"),
        ("", "is not a name"),
        ("x" * 101, "is not a name"),
        ("Oracle", "differs from client 'oracle' in case alone"),
    ],
)
def test_a_label_that_cannot_be_a_folder_of_its_own_is_refused(name: str, sentence: str) -> None:
    """It names a folder of results and a part of node ids, beside all other labels."""
    with pytest.raises(UsageError, match=sentence):
        label(name, {"client": "nop"})


def test_an_unknown_label_names_the_nearest_client_or_table() -> None:
    """A misspelt client is the user's to fix."""
    with pytest.raises(UsageError, match="no client 'oracel'; nearest: oracle"):
        label("oracel")
    with pytest.raises(UsageError, match="no client 'fsat'; nearest: fast"):
        client_label("fsat", {"fast": {}}, known=KNOWN, model=None, settings={})


@pytest.mark.parametrize("text", ["\udcff", "\ud800x"])
def test_text_that_no_document_can_hold_is_refused(text: str) -> None:
    """Bytes of an argument that are not UTF-8 would end the session when the plan is written."""
    with pytest.raises(UsageError, match=r"--evalarc-model: .*no JSON value"):
        label("nop", model=text)
    with pytest.raises(UsageError, match="--evalarc-model-setting key: "):
        label("nop", settings={"key": text})


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("temperature=0.2", ("temperature", 0.2)),
        ("n=3", ("n", 3)),
        ("on=true", ("on", True)),
        ("none=null", ("none", None)),
        ('name="3"', ("name", "3")),
        ("words=a b", ("words", "a b")),
        ("list=[1, 2]", ("list", [1, 2])),
        ("a=b=c", ("a", "b=c")),
        ("empty=", ("empty", "")),
        ("big=NaN", ("big", "NaN")),
        ("huge=1e999", ("huge", "1e999")),
        ('twice={"a": 1, "a": 2}', ("twice", '{"a": 1, "a": 2}')),
    ],
)
def test_a_setting_is_json_where_it_is_json_and_text_otherwise(
    text: str, pair: tuple[str, object]
) -> None:
    """What JSON readers do not read alike stays text, so every client is told the same."""
    assert setting(text) == pair


@pytest.mark.parametrize("text", ["temperature", "=0.2", ""])
def test_a_setting_without_key_or_value_is_refused(text: str) -> None:
    """Half a setting means nothing."""
    with pytest.raises(UsageError, match="is not KEY=VALUE"):
        setting(text)


@pytest.mark.parametrize(
    ("sandbox", "trust", "name"),
    [
        ("auto", False, "bwrap"),
        ("auto", True, "local"),
        ("bwrap", True, "bwrap"),
        ("local", True, "local"),
    ],
)
def test_the_sandbox_is_what_was_asked_for(
    tmp_path: Path, sandbox: str, trust: bool, name: str
) -> None:
    """Only the user's own trust takes the boundary away."""
    options = {"sandbox": sandbox, "trust_local": trust}

    assert sandbox_name(Evals(tmp_path, options=options).request) == name


def test_no_sandbox_without_trust_is_refused(tmp_path: Path) -> None:
    """A submission could read and write all that its user can."""
    request = Evals(tmp_path, options={"sandbox": "local"}).request

    with pytest.raises(UsageError, match="add --evalarc-trust-local if you trust them"):
        sandbox_name(request)
