"""The generated reference leaves nothing out, and says it in the code's own words."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from docsite import reference
from docsite.reference import PAGES, kind
from pytest_evalarc import hookspecs
from pytest_evalarc.cli.main import command_parsers
from pytest_evalarc.cli.schemas import DOCUMENTS, schema
from pytest_evalarc.plugin import fixtures
from pytest_evalarc.plugin.options import OPTIONS

ROOT = Path(__file__).parents[2]


def headings(text: str, level: int) -> list[str]:
    return re.findall(rf"^{'#' * level} (.+)$", text, re.MULTILINE)


def test_every_option_is_told_with_its_ini_twin() -> None:
    """The command line and the ini file are two spellings of one thing."""
    rows = re.findall(r"^\| `(--\S+?)(?: .+?)?` \| `(\w+)` \|", reference.options(), re.MULTILINE)

    assert rows == [(option.flag, option.key) for option in OPTIONS]


def test_every_command_is_told_with_each_of_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page must not change with the width of the terminal that builds it."""
    monkeypatch.setenv("COLUMNS", "40")
    narrow = reference.commands()
    monkeypatch.setenv("COLUMNS", "200")

    assert reference.commands() == narrow
    assert headings(narrow, 2) == list(command_parsers())
    assert {"benchmark", "tools install", "import", "doctor"} <= set(headings(narrow, 2))
    assert "--budget-seconds B" in narrow


def test_every_hook_is_told_with_its_signature_and_arguments() -> None:
    """A plugin's author writes down what is shown here."""
    text = reference.hooks()

    assert headings(text, 2) == [n for n in vars(hookspecs) if n.startswith("pytest_evalarc_")]
    assert "def pytest_evalarc_audit(audit: 'Audit', path: 'Path')" in text
    assert "**Args:**\n\n- result: The whole result.\n- folder: Its result folder" in text


def test_every_fixture_is_told_with_its_scope() -> None:
    """A test that asks for one in a wider scope fails, so the scope is part of the promise."""
    text = reference.fixture_page()

    assert headings(text, 2) == [name for name in vars(fixtures) if name.startswith("evalarc_")]
    assert "## evalarc_trial\n\nScope: `class`.\n\nOne trial:" in text


def test_every_document_is_told_with_every_key() -> None:
    """A reader of a document finds each of its keys, those of its parts included."""
    text = reference.documents()
    rows = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    schemas = [schema(model) for model in DOCUMENTS.values()]
    objects = [one for found in schemas for one in (found, *found.get("$defs", {}).values())]

    assert {key for one in objects for key in one.get("properties", {})} == rows
    assert set(DOCUMENTS) <= set(headings(text, 2))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"type": "string"}, "string"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number or null"),
        ({"enum": ["full", "fast"]}, "`full` or `fast`"),
        ({"const": 1}, "`1`"),
        ({"type": "array", "items": {"$ref": "#/$defs/Cause"}}, "list of [Cause](#cause)"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "table of integer"),
        ({"type": "object", "additionalProperties": False}, "table"),
        ({}, "any value"),
    ],
)
def test_a_type_is_told_in_words(found: dict[str, object], words: str) -> None:
    """JSON Schema is for programs."""
    assert kind(found) == words


def test_every_public_name_is_told() -> None:
    """The list says which names may be leaned on, and this page what they do."""
    listed = (ROOT / "docs" / "public-api.md").read_text("utf-8")
    names = re.findall(r"^\| `pytest_evalarc\.[\w.]+\.(\w+)` \|", listed, re.MULTILINE)

    text = reference.public_names()

    assert headings(text, 2) == names
    assert "### Pack.cases" in text


def test_no_page_tells_of_the_machine_that_wrote_it() -> None:
    """The same commit gives the same site everywhere."""
    texts = [page.write() for page in PAGES]

    assert [text for text in texts if re.search(r" at 0x[0-9a-f]+>", text)] == []
    assert [text for text in texts if str(ROOT) in text] == []
    assert json.dumps(texts) == json.dumps([page.write() for page in PAGES])
