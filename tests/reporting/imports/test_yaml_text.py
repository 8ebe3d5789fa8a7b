from __future__ import annotations

from typing import Any

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.reporting.imports.yaml_text import front_matter, read_yaml


@pytest.mark.parametrize(
    ("text", "facts", "body"),
    [
        ("Do it.\n", {}, "Do it.\n"),
        ("---\na: 1\n---\n\nDo it.\n", {"a": 1}, "Do it.\n"),
        ("---\na: 'x: y'\nb:\n  c: 1\n---\nDo\n", {"a": "x: y", "b": {"c": 1}}, "Do\n"),
        ("---\n{type: tool_used, max: 0}\n---\n", {"type": "tool_used", "max": 0}, "\n"),
        ("---\ntags:\n  - a\n---\nDo\n\n---\nmore\n", {"tags": ["a"]}, "Do\n\n---\nmore\n"),
        ("---\nnever closed\n", {}, "---\nnever closed\n"),
        ("Do it.\n---\na: 1\n---\n", {}, "Do it.\n---\na: 1\n---\n"),
        ("---\n# a: 1\n---\nDo\n", {}, "Do\n"),
        ("---\r\na: 1\r\n---\r\nDo\r\n", {"a": 1}, "Do\n"),
        ("\ufeff---\na: 1\n---\nDo\n", {"a": 1}, "Do\n"),
    ],
)
def test_front_matter_is_what_stands_between_two_lines(
    text: str, facts: dict[str, Any], body: str
) -> None:
    """A prompt that only begins with a rule is a prompt."""
    assert front_matter(text, where="prompt.md") == (facts, body)


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: b: c", "a: !!python/object/apply:os.getcwd []", "[" * 5000, "a: 2026-02-31"],
)
def test_what_is_no_plain_yaml_is_refused_with_a_sentence(text: str) -> None:
    """A case is foreign text: it makes no object, and ends in no traceback."""
    with pytest.raises(DocumentError, match=r"^case\.yaml: is no YAML: "):
        read_yaml(text, where="case.yaml")
