from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from tests.ids import MOST_CHARACTERS, pytest_make_parametrize_id


class Word(StrEnum):
    FAILED = "failed"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (["--json", "page"], "--json page"),
        ({"limit": 3, "of": ("a", None)}, "limit=3 of=a None"),
        ((Word.FAILED, b"\xff"), r"failed \xff"),
        (["tests/a.py::test_a", "two\nlines"], r"tests/a.py:test_a two\nlines"),
        (["x" * 100], "x" * (MOST_CHARACTERS - 3) + "..."),
    ],
)
def test_what_is_made_of_words_is_told_by_them(
    value: Any, told: str, pytestconfig: pytest.Config
) -> None:
    """Whoever reads that one of twenty cases failed need not count down a list in the source."""
    assert pytest_make_parametrize_id(pytestconfig, value) == told


@pytest.mark.parametrize("value", ["text", 3, [], {"a", "b"}, [{"a", "b"}], [object()]])
def test_what_pytest_tells_or_workers_would_tell_otherwise_is_left_to_it(
    value: Any, pytestconfig: pytest.Config
) -> None:
    """Sets have another order, and objects another address, in each worker."""
    assert pytest_make_parametrize_id(pytestconfig, value) is None
