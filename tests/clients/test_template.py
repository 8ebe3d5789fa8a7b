from __future__ import annotations

import pytest

from pytest_evalarc.clients.template import filled, places_in
from pytest_evalarc.errors import UsageError

VALUES = {"prompt": "say {model} $HOME '\"\n", "model": "m-1", "project": "/run/project"}


@pytest.mark.parametrize(
    ("word", "places", "text"),
    [
        ("", set(), ""),
        ("--print", set(), "--print"),
        ("{prompt}", {"prompt"}, VALUES["prompt"]),
        ("--model={model}", {"model"}, "--model=m-1"),
        ("{project}/{model}:{model}", {"project", "model"}, "/run/project/m-1:m-1"),
        ('{{"cwd": "{project}"}}', {"project"}, '{"cwd": "/run/project"}'),
        ("{{prompt}}", set(), "{prompt}"),
        ("{{{prompt}}}", {"prompt"}, "{" + VALUES["prompt"] + "}"),
        ("$HOME %s \\n", set(), "$HOME %s \\n"),
    ],
)
def test_places_are_filled_once_and_all_else_stays(word: str, places: set[str], text: str) -> None:
    """A prompt is free text: what looks like a place in it must not be filled again."""
    assert places_in(word, where="command") == places
    assert filled(word, VALUES) == text


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("{promt}", "command: names {promt}, which is no place; nearest: prompt"),
        ("{}", "names {}, which is no place"),
        ("{0}", r"names \{0\}, which is no place"),
        ("{prompt.__class__}", "has a single brace in '{prompt.__class__}'"),
        ("{prompt!r}", "single brace"),
        ('{"a": 1}', "single brace in .*double a literal brace"),
        ("}", "single brace"),
        ("a\0b", "holds a NUL, which no argument can"),
    ],
)
def test_a_word_that_is_no_template_is_told(word: str, sentence: str) -> None:
    """A brace that silently vanished would hand the agent another command."""
    with pytest.raises(UsageError, match=sentence):
        places_in(word, where="command")
