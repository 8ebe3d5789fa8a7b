from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.model.transcript import ToolCall
from tests.clients.claude.recorded import answer, init, read, result, say, stream, tell, use


def calls(folder: Path, *events: dict[str, Any]) -> tuple[ToolCall, ...]:
    return read(folder, stream(init(), *events, result())).tool_calls


def only(folder: Path, *events: dict[str, Any]) -> ToolCall:
    (found,) = calls(folder, *events)
    return found


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "target"),
    [
        ("Skill", {"skill": "greet", "args": "x"}, "skill", "greet"),
        ("Skill", {"skill": "/greet"}, "skill", "greet"),
        ("Skill", {"skill": "house:greet"}, "skill", "house:greet"),
        ("Read", {"file_path": "/run/project/src/a.py"}, "read", "src/a.py"),
        ("Read", {"file_path": "./src/../a.py", "limit": 1}, "read", "a.py"),
        ("Read", {"file_path": "/etc/hosts"}, "read", "/etc/hosts"),
        ("Write", {"file_path": "a.py", "content": ""}, "edit", "a.py"),
        ("Edit", {"file_path": "/run/project/a.py"}, "edit", "a.py"),
        ("MultiEdit", {"file_path": "a.py", "edits": []}, "edit", "a.py"),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, "edit", "a.ipynb"),
        ("Bash", {"command": "ls -l"}, "command", "ls -l"),
        ("Task", {"subagent_type": "Explore", "prompt": "Read SKILL.md"}, "other", "Explore"),
        ("Agent", {"subagent_type": "Explore", "prompt": "p"}, "other", "Explore"),
        ("Grep", {"pattern": "é", "path": "a"}, "other", '{"pattern": "é", "path": "a"}'),
        ("mcp__x__y", {}, "other", "{}"),
        ("Read", {"path": "a"}, "other", '{"path": "a"}'),
        ("Skill", {"skill": ["greet"]}, "other", '{"skill": ["greet"]}'),
    ],
)
def test_a_call_is_what_its_tool_does_and_to_what(
    name: str, arguments: dict[str, Any], kind: str, target: str, tmp_path: Path
) -> None:
    """Whatever compares calls of several clients knows kinds and targets, and no tool by name."""
    call = only(tmp_path, say(use(name, **arguments)), answer())

    assert (call.kind, call.name, call.target) == (kind, name, target)
    assert (call.arguments, call.result, call.is_error) == (arguments, "ok", False)


@pytest.mark.parametrize(
    ("given", "is_error"),
    [
        ({}, False),
        ({"is_error": False}, False),
        ({"is_error": None}, False),
        ({"is_error": True}, True),
        ({"content": "<tool_use_error>Unknown skill: x</tool_use_error>"}, True),
        ({"content": "it printed <tool_use_error> itself"}, False),
    ],
)
def test_an_answer_is_an_error_when_it_says_so(
    given: dict[str, Any], is_error: bool, tmp_path: Path
) -> None:
    """What went well is mostly not said to have."""
    assert only(tmp_path, say(use("Bash", command="x")), answer(**given)).is_error is is_error


def test_an_answer_is_told_as_text(tmp_path: Path) -> None:
    """A picture has no words, and its place is kept."""
    parts = [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]

    assert only(tmp_path, say(use("Read", file_path="a")), answer(content=parts)).result == (
        "a\n[image]"
    )


def test_a_call_without_an_answer_has_neither_failed_nor_succeeded(tmp_path: Path) -> None:
    """The session may have been ended in the middle of it."""
    call = only(tmp_path, say(use("Skill", skill="greet")))

    assert (call.result, call.is_error) == (None, None)


# A command that only prints one file.

SKILL_FILE = ".claude/skills/greet/SKILL.md"


@pytest.mark.parametrize(
    "command",
    [f"cat {SKILL_FILE}", f" cat  -- {SKILL_FILE}\n", f"cat /run/project/{SKILL_FILE}"],
)
def test_a_command_that_does_nothing_but_print_a_file_reads_it(
    command: str, tmp_path: Path
) -> None:
    """Many agents never use the tool for it."""
    call = only(tmp_path, say(use("Bash", command=command)), answer())

    assert (call.kind, call.target) == ("read", SKILL_FILE)


@pytest.mark.parametrize(
    "command",
    [
        f"cat {SKILL_FILE} | head -1",
        f"cat {SKILL_FILE} > /dev/null",
        f"cat -n {SKILL_FILE}",
        f"cat a.txt {SKILL_FILE}",
        f"cat {SKILL_FILE}; true",
        f"cat {SKILL_FILE} &",
        f"cat $HOME/{SKILL_FILE}",
        f"cat ~/{SKILL_FILE}",
        "cat .claude/skills/*/SKILL.md",
        f"cat '{SKILL_FILE}'",
        f"cat {SKILL_FILE}\ntrue",
        f"head {SKILL_FILE}",
        f"true {SKILL_FILE}",
        "cat",
    ],
)
def test_any_other_command_is_a_command(command: str, tmp_path: Path) -> None:
    """What a shell makes of it is not guessed; that it names the file is seen all the same."""
    call = only(tmp_path, say(use("Bash", command=command)), answer())

    assert (call.kind, call.target) == ("command", command)


def test_a_file_is_not_read_by_a_command_in_the_background(tmp_path: Path) -> None:
    """Its answer comes before anything is printed."""
    background = use("Bash", command=f"cat {SKILL_FILE}", run_in_background=True)

    assert only(tmp_path, say(background), answer()).kind == "command"


def test_relative_paths_are_followed_until_a_command_could_have_changed_folders(
    tmp_path: Path,
) -> None:
    """A shell keeps its folder from one command to the next."""
    commands = ("cat a", "cd src", "cat a", "cat /run/project/a")
    uses = [use("Bash", id=str(place), command=it) for place, it in enumerate(commands)]

    found = calls(tmp_path, *(say(each) for each in uses))

    assert [call.kind for call in found] == ["read", "command", "command", "read"]


# Skills that are loaded without a call.


def expanded(name: str) -> str:
    return (
        f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n"
        "<command-args>now</command-args>"
    )


@pytest.mark.parametrize("name", ["greet", "house:greet"])
def test_a_prompt_that_begins_with_a_skill_loads_it(name: str, tmp_path: Path) -> None:
    """The client replaces the prompt by the skill, and calls no tool."""
    call = only(tmp_path, tell(expanded(name), isReplay=True))

    assert (call.kind, call.name, call.target, call.is_error) == ("skill", "prompt /", name, False)


@pytest.mark.parametrize(
    "event",
    [
        tell("Run <command-name>/greet</command-name> for me.", isReplay=True),
        tell("/etc/hosts is wrong", isReplay=True),
        tell(expanded("greet")),
        tell(expanded("greet"), parent="t9"),
    ],
)
def test_words_that_only_look_so_load_nothing(event: dict[str, Any], tmp_path: Path) -> None:
    """Only the prompt is replaced, and only as a whole."""
    assert calls(tmp_path, event) == ()


@pytest.mark.parametrize(
    ("prompt", "paths"),
    [
        (f"@{SKILL_FILE}", [SKILL_FILE]),
        (f"See @{SKILL_FILE}, and\n@/run/project/b/SKILL.md#L1-2.", [SKILL_FILE, "b/SKILL.md"]),
        ('See @"my skills/a b/SKILL.md"!', ["my skills/a b/SKILL.md"]),
        (f"Mail me@{SKILL_FILE}", []),
        ("@dataclass, @src/app.py and SKILL.md", []),
        ("@.claude/skills/greet", []),
    ],
)
def test_of_a_skill_that_the_prompt_mentions_it_is_not_known_whether_it_was_read(
    prompt: str, paths: list[str], tmp_path: Path
) -> None:
    """The client adds the file to the prompt, if it is there, and tells of neither."""
    found = calls(tmp_path, tell(prompt, isReplay=True))

    assert [(call.kind, call.target, call.is_error) for call in found] == [
        ("read", path, None) for path in paths
    ]


def delivered(folder: str) -> dict[str, Any]:
    words = f"Base directory for this skill: {folder}\n\n# Greet\n"
    return tell([{"type": "text", "text": words}], isSynthetic=True)


def test_a_skill_that_the_client_adds_by_itself_is_loaded(tmp_path: Path) -> None:
    """However it came about: its content was delivered."""
    call = only(tmp_path, delivered("/run/project/.claude/skills/greet"))

    assert (call.kind, call.name, call.target, call.is_error) == ("skill", "added", "greet", False)


@pytest.mark.parametrize("name", ["greet", "/greet", "house:greet"])
def test_the_content_that_follows_a_call_is_that_of_the_call(name: str, tmp_path: Path) -> None:
    """One load is told once."""
    call = only(
        tmp_path,
        say(use("Skill", skill=name)),
        answer(),
        delivered("/run/house/skills/greet"),
    )

    assert call.name == "Skill"


def test_words_of_the_agent_s_user_deliver_nothing(tmp_path: Path) -> None:
    """Only what the client marks as its own is the client's."""
    words = "Base directory for this skill: /x/greet\n\nText"

    assert calls(tmp_path, tell(words), tell(words, isReplay=True)) == ()


def test_loads_stand_where_they_happened(tmp_path: Path) -> None:
    """Whether a skill was changed before it was loaded is decided by their order."""
    found = calls(
        tmp_path,
        tell(expanded("first"), isReplay=True),
        say(use("Bash", id="1", command="a")),
        delivered("/run/project/.claude/skills/second"),
        delivered("/run/project/.claude/skills/third"),
        say(use("Bash", id="2", command="b")),
    )

    assert [call.target for call in found] == ["first", "a", "second", "third", "b"]
    assert len({call.id for call in found}) == len(found)
