from __future__ import annotations

import pytest

from pytest_evalarc.counting.differences import ABSENT, differences, shown


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, [("a.b.1.c", 2, 3)]),
        ({"a": [1]}, {"a": [1, 2]}, [("a", [1], [1, 2])]),
        ({"a": 1}, {"b": 1}, [("a", 1, ABSENT), ("b", ABSENT, 1)]),
        ({"a": None}, {}, [("a", None, ABSENT)]),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
        ({"a": [0]}, {"a": [False]}, [("a.0", 0, False)]),
        ({"a": "1"}, {"a": 1}, [("a", "1", 1)]),
        ([{"a": 1}], [{"a": 2}], [("0.a", 1, 2)]),
        ({}, [], [("the document", {}, [])]),
    ],
)
def test_each_field_that_differs_is_named_with_both_values(first, second, found) -> None:
    """Python takes true for 1 and a missing key for null; a reader of documents must not."""
    assert [tuple(difference) for difference in differences(first, second)] == found


def test_a_value_is_shown_as_it_stands_and_short() -> None:
    """A document may hold megabytes, and text that styles a terminal."""
    assert [shown(value) for value in (True, None, "a", ABSENT)] == [
        "true",
        "null",
        '"a"',
        "nothing",
    ]
    assert "characters dropped" in shown("a" * 1000)
    assert "\x1b" not in shown("\x1b[31m")
