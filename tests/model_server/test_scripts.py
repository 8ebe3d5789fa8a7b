"""Which turn of a script a session has reached, and what it is in that session."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import Error, Offers, Quota, Run, Say, Says, Script, Skill, Usage, Write
from tests.model_server.anthropic import conversation as claude_says
from tests.model_server.conversation import Conversation
from tests.model_server.openai import conversation as codex_says
from tests.model_server.scripts import LAST, Edit, Read, Step, Turn, slow, turn
from tests.model_server.tasks import by_task, half, solve, taught

TASKS = Path(__file__).parents[2] / "evals" / "tasks"
SHIPPED = ("store-durability", "settings-durability")


def session(turn: int = 0, opening: str = "", **skills: str) -> Conversation:
    return Conversation(opening=opening, folder="/w", skills=skills, turn=turn)


def played(script: Script, opening: str = "", **skills: str) -> list[tuple[Step, ...]]:
    """Return the steps of a whole session, the last word aside."""
    turns: list[Turn] = []
    while (reached := script.next_turn(session(len(turns), opening, **skills))) != LAST:
        turns.append(reached)
    return [reached.steps for reached in turns]


def test_a_skill_that_is_not_offered_leaves_no_turn_behind() -> None:
    """With and without a treatment play one script, and the turns are counted all the same."""
    script = Script.of(Skill("greet"), (Skill("greet"), Run("a")), Say("b"))

    assert played(script) == [(Run("a"),), (Say("b"),)]
    assert played(script, greet="greet") == [tuple(entry.steps) for entry in script.turns]
    assert played(Script.of(Skill("greet", anyway=True))) == [(Skill("greet", anyway=True),)]


def test_a_turn_is_for_the_sessions_that_fit_its_conditions() -> None:
    """One script serves several tasks and trials, told by what the session began with."""
    first = Script.of(Say("1")).only(when=Says("/trial-1-"))
    later = Script.of(Say("2")).only(unless=Says("/trial-1-"))
    taught = Script.of(turn(Say("3"), when=Offers("greet"), unless=Says("alone")))

    script = first + later + taught

    assert played(script, "cwd: /trial-1-with") == [(Say("1"),)]
    assert played(script, "cwd: /trial-2-with", greet="x") == [(Say("2"),), (Say("3"),)]
    assert played(script, "alone", greet="x") == [(Say("2"),)]


def test_an_error_passes_after_so_many_refusals() -> None:
    """A client that tries again after a busy moment goes on as if nothing had happened."""
    busy = turn(Error(529, times=2), Say("a"))

    assert busy.after(1).steps == busy.steps
    assert busy.after(2).steps == (Say("a"),)
    assert turn(Error(529)).after(9).steps == (Error(529),)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Write("a", "no newline"),
        lambda: Write("a", ""),
        lambda: Edit("a", "old\r\n", "new\n"),
        lambda: turn(Say("a"), Quota()),
        lambda: turn(Error(529, times=1)),
    ],
)
def test_what_the_clients_would_do_differently_is_refused(make: Any) -> None:
    """A script that one client plays otherwise would compare nothing."""
    with pytest.raises(ValueError, match=r"whole lines|first step|something must come"):
        make()


def test_a_script_in_json_says_the_same() -> None:
    """Scripts are also written by hand, for the server on the command line."""
    document = {
        "turns": [
            [{"say": "a"}, {"edit": {"path": "f", "old": "x\n", "new": ""}}],
            {
                "steps": [{"slow": 3}],
                "when": [{"offers": "greet"}],
                "unless": [{"says": "no"}],
                "usage": {"input_tokens": 7},
            },
            [{"error": {"status": 529, "times": 1}}, {"broken": {}}],
        ]
    }

    script = Script.from_json(document)

    first, second, third = script.turns
    assert first.steps == (Say("a"), Edit("f", "x\n", ""))
    assert second.steps == (slow(3),)
    assert (second.when, second.unless) == ((Offers("greet"),), (Says("no"),))
    assert second.usage == Usage(input_tokens=7)
    assert third.steps[0] == Error(529, times=1)


# What a request tells.


def test_a_request_of_claude_tells_folder_skills_and_turn() -> None:
    """The server remembers nothing of a session, so a request must say it all."""
    reminder = (
        "The following skills are available for use with the Skill tool:\n\n"
        "- greet: How to greet.\n- guide:bow: How to bow: deeply.\n- bare\n"
    )
    opening = [
        {"type": "text", "text": " - Primary working directory: /w/project\n - Platform: linux"},
        {"type": "text", "text": reminder},
    ]
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}]}
    body = {
        "system": "You help.",
        "tools": [{"name": "Bash"}],
        "messages": [
            {"role": "user", "content": opening},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result, {"type": "text", "text": "later"}]},
        ],
    }

    told = claude_says(body)

    assert told.folder == "/w/project"
    assert told.skills == {"greet": "greet", "bow": "guide:bow", "bare": "bare"}
    assert (told.turn, told.results, told.tools) == (1, ("r",), {"Bash"})
    assert "You help." in told.opening
    assert "later" not in told.opening


def test_a_request_of_codex_tells_folder_skills_and_turn() -> None:
    """A turn of several calls is one turn, and a wait for a command is none."""
    skills = "- `r1` = `/w/.agents/skills`\n- greet: How to greet. (file: r1/greet/SKILL.md)"
    still_runs = "Chunk ID: 1\nProcess running with session ID 7\nOutput:\n"
    body = {
        "tools": [{"name": "exec_command"}, {"type": "web_search"}],
        "input": [
            {"type": "message", "role": "developer", "content": [{"text": skills}]},
            {"type": "message", "role": "user", "content": [{"text": "<cwd>/w</cwd>"}]},
            {"type": "message", "role": "assistant", "content": [{"text": "Hi."}]},
            {"type": "custom_tool_call", "name": "apply_patch", "call_id": "1", "input": ""},
            {"type": "function_call", "name": "exec_command", "call_id": "2", "arguments": ""},
            {"type": "custom_tool_call_output", "call_id": "1", "output": "ok"},
            {"type": "function_call_output", "call_id": "2", "output": still_runs},
        ],
    }
    waited = [
        {"type": "function_call", "name": "write_stdin", "call_id": "3", "arguments": ""},
        {"type": "function_call_output", "call_id": "3", "output": "Process exited with code 0"},
    ]

    told = codex_says(body)
    later = codex_says({**body, "input": [*body["input"], *waited]})

    assert told.folder == "/w"
    assert told.skills == {"greet": "/w/.agents/skills/greet/SKILL.md"}
    assert (told.turn, told.unfinished, told.tools) == (1, (7,), {"exec_command"})
    assert told.results == ("ok", still_runs)
    assert (later.turn, later.unfinished) == (1, ())


# Scripts of the shipped tasks.


def tree(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


def left_by(script: Script, task: Path, **skills: str) -> dict[str, str]:
    """Return what a session leaves of the starter, each overwritten file read in a turn before."""
    files, read = tree(task / "starter"), set[str]()
    for steps in played(script, **skills):
        for step in steps:
            if isinstance(step, Write):
                assert step.path in read or step.path not in files
                files[step.path] = step.content
        read |= {step.path for step in steps if isinstance(step, Read)}
    return files


@pytest.mark.parametrize("name", SHIPPED)
def test_a_solved_task_is_the_authors_own_solution(name: str, tmp_path: Path) -> None:
    """What a real client then leaves must pass every check, or the harness is at fault."""
    task = TASKS / name
    shutil.copytree(task / "starter", tmp_path / "solved")
    shutil.copytree(task / "solution", tmp_path / "solved", dirs_exist_ok=True)

    assert left_by(solve(task), task) == tree(tmp_path / "solved")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_half_solved_task_differs_by_one_mutant(name: str) -> None:
    """It must fail for the fault that its author declared, and for nothing else."""
    task = TASKS / name
    solved = left_by(solve(task), task)

    left = left_by(half(task), task)
    other = left_by(half(task, "commit-only-in-set"), task)

    assert [path for path in solved if solved[path] != left[path]] != []
    assert solved.keys() == left.keys()
    assert other not in (left, solved)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_taught_session_solves_the_task_only_with_its_skill(name: str) -> None:
    """So the two configurations of a task differ, with one script for both."""
    task = TASKS / name
    skill = f"fixture-{name.removesuffix('-durability')}"
    script = taught(task)

    with_skill = {skill: skill}
    assert left_by(script, task, **with_skill) == left_by(solve(task), task)
    assert left_by(script, task) == left_by(half(task), task)
    assert played(script, **with_skill)[0] == (Skill(skill),)
    assert not any(isinstance(step, Skill) for steps in played(script) for step in steps)


def test_one_script_serves_several_tasks() -> None:
    """A label has one base URL, and pytest gives its client every task that is asked for."""
    tasks = [TASKS / name for name in SHIPPED]
    script = by_task(tasks, solve)

    for task in tasks:
        prompt = (task / "prompt.md").read_text("utf-8")
        assert played(script, opening=prompt) == played(solve(task))
