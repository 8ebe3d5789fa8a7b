"""Names that mean something already, or cannot be told apart."""

from __future__ import annotations

import pytest

from pytest_evalarc.tasks.names import is_reserved, is_reserved_item, path_twins


@pytest.mark.parametrize("name", ["run", "RUN", "success", "reference", "nul", "Com1", "latest"])
def test_words_of_ours_and_of_windows_are_reserved(name: str) -> None:
    """A result folder or an item of that name is there already, or cannot be made."""
    assert is_reserved(name)


@pytest.mark.parametrize("name", ["runs", "console", "com", "success2", "store-durability"])
def test_what_only_begins_like_a_reserved_word_is_free(name: str) -> None:
    """A rule that takes too much is worked around with worse names."""
    assert not is_reserved_item(name)


@pytest.mark.parametrize("name", ["installed-x", "Not_Used-x", "trial-001", "with-skills"])
def test_a_task_may_be_named_as_no_check_may(name: str) -> None:
    """Such words stand among the items of a trial alone, where tasks do not."""
    assert is_reserved_item(name)
    assert not is_reserved(name)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a/B", "A/b"), ("caf\u00e9", "cafe\u0301"), ("straße", "STRASSE"), ("\u212bx", "\u00e5X")],
)
def test_paths_that_some_file_system_takes_for_one_are_twins(first: str, second: str) -> None:
    """One of the two would be lost on the machine of a colleague."""
    assert list(path_twins([first, "other", second])) == [(first, second)]
