"""Lines of tables and keys in a TOML file that is full of traps."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.errors import TaskError
from pytest_evalarc.tasks.toml import Key, read_toml

TRAPS = '''\
# [comment] = 1
kind = "a # no comment"

prompt = """
[weights]
fake = 1
[[mutants]]
"""
other = \'\'\'
[fake]\'\'\'
editable = [
  "a", # ] not the end
  "b = [",
]
a.b = 1
a."c.d" = 2

[ checks . "quoted name" ]
  deadline = 5
[checks.x]

[[mutants]]
name = "one"
edits = [
  { file = "x", find = """
name = 1
""", replace = "" },
]
[[mutants]]
name = "two"
[mutants.more]
deep = 1
[expected] # last
hooks = []'''


@pytest.mark.parametrize(
    ("key", "start"),
    [
        (("kind",), "kind ="),
        (("prompt",), "prompt ="),
        (("other",), "other ="),
        (("editable",), "editable ="),
        (("a",), "a.b ="),
        (("a", "b"), "a.b ="),
        (("a", "c.d"), 'a."c.d"'),
        (("checks",), "[ checks"),
        (("checks", "quoted name"), "[ checks"),
        (("checks", "quoted name", "deadline"), "  deadline"),
        (("checks", "x"), "[checks.x]"),
        (("checks", "x", "missing"), "[checks.x]"),
        (("mutants",), '[[mutants]]\nname = "one"'),
        (("mutants", 0), '[[mutants]]\nname = "one"'),
        (("mutants", 0, "name"), 'name = "one"'),
        (("mutants", 0, "edits", 0, "find"), "edits = ["),
        (("mutants", 1), '[[mutants]]\nname = "two"'),
        (("mutants", 1, "name"), 'name = "two"'),
        (("mutants", 1, "more", "deep"), "deep ="),
        (("expected",), "[expected] # last"),
        (("expected", "hooks"), "hooks = []"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_key_has_the_line_an_editor_shows(
    tmp_path: Path, key: Key, start: str, newline: str
) -> None:
    """Text that only looks like TOML, in strings and comments, must not move a line."""
    path = tmp_path / "task.toml"
    path.write_bytes(TRAPS.replace("\n", newline).encode())

    line = read_toml(path, where="task.toml").line(key)

    before, found, _ = TRAPS.partition(start)
    assert found
    assert line == before.count("\n") + 1


def test_a_key_that_is_nowhere_is_told_at_the_top(tmp_path: Path) -> None:
    """A missing key has no line of its own."""
    path = tmp_path / "task.toml"
    path.write_text("\n\n[deadlines]\n")

    document = read_toml(path, where="task.toml")

    assert document.line(("kind",)) == 1
    assert document.line(("deadlines", "agent")) == 3


@pytest.mark.parametrize(
    "text", ["a = 1\na = 2", "[t]\n[t]", "t = {}\n[t]", "[[t]]\n[t]", "t = 1\n[t.u]", "a.b=1\na=1"]
)
def test_no_key_or_table_is_there_twice(tmp_path: Path, text: str) -> None:
    """The one that wins would depend on the parser, so neither does."""
    path = tmp_path / "task.toml"
    path.write_text(text)

    with pytest.raises(TaskError, match=r"^task\.toml:\d+: is not TOML: "):
        read_toml(path, where="task.toml")
