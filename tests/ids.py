"""Ids of tests that tell what a test is given, where pytest would only number it."""

from __future__ import annotations

from enum import Enum
from pathlib import PurePath

import pytest

MOST_CHARACTERS = 48


def pytest_make_parametrize_id(config: pytest.Config, val: object) -> str | None:
    """Return the words of a value that is made of others, as far as a line has room for them."""
    if not isinstance(val, tuple | list | dict) or not _is_plain(val):
        return None
    text = _words(val).encode("unicode_escape").decode("ascii").replace("::", ":")
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS - 3]}..."
    # What has no words is numbered after all.
    return text or None


def _is_plain(value: object) -> bool:
    """Whether a value is told in the same words by every worker: no set and no object is."""
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bytes | int | float | PurePath | Enum)


def _words(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_words(each)}" for name, each in value.items())
    if isinstance(value, tuple | list):
        return " ".join(map(_words, value))
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value.value if isinstance(value, Enum) else value)
