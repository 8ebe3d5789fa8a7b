"""Commands on the pages can be typed: each names options and commands that are there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import command_parsers, main
from pytest_evalarc.plugin.options import OPTIONS
from tests.shown import PAGES, ROOT, SHELL

FLAGS = {option.flag for option in OPTIONS}


def calls(text: str) -> Iterator[list[str]]:
    """Yield each call of pytest and of ours in the shell blocks of a page."""
    for block in SHELL.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|\||;|\|", line):
                words = shlex.split(part, comments=True)
                starts = [n for n, word in enumerate(words) if Path(word).name in PROGRAMS]
                if starts and all("=" in word for word in words[: starts[0]]):
                    yield [Path(words[starts[0]]).name, *words[starts[0] + 1 :]]


PROGRAMS = ("pytest", "pytest-evalarc")
SHOWN = [
    pytest.param(call, id=f"{path.relative_to(ROOT)}-{n}")
    for path in PAGES
    for n, call in enumerate(calls(path.read_text("utf-8")))
]


def test_calls_are_found_behind_variables_and_before_others() -> None:
    """A call that is not found is not looked at."""
    lines = ["KEY=a .venv/bin/pytest -x \\", "  -q && pytest-evalarc doctor  # why", "ls pytest"]
    text = "\n".join(["```bash", *lines, "```", ""])

    assert list(calls(text)) == [["pytest", "-x", "-q"], ["pytest-evalarc", "doctor"]]
    assert len(SHOWN) > 60


@pytest.mark.parametrize("call", SHOWN)
def test_a_shown_call_names_options_and_commands_that_are_there(
    call: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that was renamed goes on to be pasted from a page that nobody looked at."""
    program, *words = call
    if program == "pytest":
        ours = {word.partition("=")[0] for word in words if word.startswith("--evalarc-")}
        assert ours <= FLAGS
        return
    parsers = command_parsers()
    names = [name for name in parsers if words[: len(name.split())] == name.split()]
    assert names, f"{words} begin with no command"
    longest = max(names, key=len)
    rest = words[len(longest.split()) :]
    # Raises SystemExit, with what is wrong on standard error, for an unknown or missing word.
    parsers[longest].parse_args(rest)


SKILL = "---\nname: pdf\ndescription: How to read a PDF.\n---\nUse the tools.\n"
SOURCES = {
    "pytest.ini": "[pytest]\n",
    "my-plugin/.claude-plugin/plugin.json": '{"name": "my-plugin"}',
    "my-plugin/skills/pdf/SKILL.md": SKILL,
    "my-plugin/skills/pdf/evals/evals.json": json.dumps(
        {
            "skill_name": "pdf",
            "evals": [{"id": 1, "prompt": "Count the pages.", "expected_output": "3"}],
        }
    ),
    "my-plugin/evals/first-case/prompt.md": "---\ntimeout_seconds: 60\n---\n\nCount the pages.\n",
    "harbor-tasks/add/task.toml": 'version = "1.0"\n\n[agent]\ntimeout_sec = 120.0\n',
    "harbor-tasks/add/instruction.md": "Add two numbers.\n",
}


def test_what_other_programs_have_is_imported_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thing that whoever comes over does must not be an error."""
    for path, text in SOURCES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "migrating.md").read_text("utf-8")
    imports = [words for _, *words in calls(page) if words[:1] == ["import"]]

    assert [main(words) for words in imports] == [0, 0, 0]

    made = {path.parent.name for path in (tmp_path / "evals" / "tasks").glob("*/task.toml")}
    assert made == {"pdf", "first-case", "add"}


def test_every_call_of_the_table_on_evalarc_can_be_typed() -> None:
    """Who comes over types the right column."""
    page = (ROOT / "docs" / "migrating.md").read_text("utf-8")
    cells = re.findall(r"^\| `[^|]+` \| `((?:pytest|pytest-evalarc) [^`]+)`", page, re.MULTILINE)

    assert len(cells) == 7
    for program, *words in map(shlex.split, cells):
        if program == "pytest":
            ours = {word.partition("=")[0] for word in words if word.startswith("--evalarc-")}
            assert ours <= FLAGS
        else:
            command_parsers()[words[0]].parse_args(words[1:])
