"""The pages say what the adapter does: their tables are played, and compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.claude.calls import TOOLS
from pytest_evalarc.clients.claude.client import ALWAYS, UNCONFINED, ClaudeClient
from pytest_evalarc.clients.claude.confinement import confined_env
from pytest_evalarc.clients.claude.settings import ClaudeSettings
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.toolset import MINIMUM
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.treatments.loads import Known, observe_load
from tests.clients.claude.recorded import (
    answer,
    init,
    read,
    result,
    say,
    stream,
    system,
    tell,
    use,
)

DOCS = Path(__file__).parents[3] / "docs"


def section() -> str:
    page = (DOCS / "reference" / "clients.md").read_text("utf-8")
    return page.partition("\n## claude\n")[2].partition("\n## codex\n")[0]


def table(heads: str) -> list[list[str]]:
    """Return the cells of the section's one table with these heads."""
    _, found, rest = section().partition(f"\n| {heads} |\n")
    assert found, f"there is no table of {heads!r}"
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


FILE = ".claude/skills/tidy/SKILL.md"
ELSEWHERE = Known(
    skill="tidy",
    names=frozenset({"tidy", "house:tidy"}),
    folders=(".claude/skills/tidy",),
)
FAILED = answer(is_error=True)
DENIED = answer(content="<tool_use_error>Denied.</tool_use_error>")

Events = tuple[dict[str, Any], ...]


def sub_agent(*inside: dict[str, Any]) -> Events:
    started = system("task_started", task_id="a", task_type="local_agent", tool_use_id="t0")
    return say(use("Task", id="t0", subagent_type="x")), started, *inside, answer(id="t0")


def called(name: str, **arguments: str) -> Events:
    return say(use(name, **arguments)), answer()


PLAYED: dict[str, tuple[Events, ...]] = {
    "the tool `Skill` is called with its name, as `tidy`, `/tidy` or `house:tidy`": tuple(
        called("Skill", skill=name) for name in ("tidy", "/tidy", "house:tidy")
    ),
    "such a call fails, or is denied": (
        (say(use("Skill", skill="tidy")), FAILED),
        (say(use("Skill", skill="tidy")), DENIED),
    ),
    "such a call has no answer": ((say(use("Skill", skill="tidy")),),),
    "the tool `Read` is called with its `SKILL.md`": (
        called("Read", file_path=FILE),
        called("Read", file_path=f"/run/project/{FILE}"),
    ),
    "such a read fails, or is denied": (
        (say(use("Read", file_path=FILE)), FAILED),
        (say(use("Read", file_path=FILE)), DENIED),
    ),
    "a command does nothing but `cat` its `SKILL.md`": (called("Bash", command=f"cat {FILE}"),),
    "another command names its `SKILL.md`": (
        called("Bash", command=f"head -50 {FILE}"),
        called("Bash", command=f"cat {FILE} | head"),
    ),
    "another tool is given its `SKILL.md`": (called("Grep", pattern="x", path=FILE),),
    "a sub-agent does any of this": (
        sub_agent(say(use("Skill", skill="tidy"), parent="t0"), answer()),
        sub_agent(say(use("Read", file_path=FILE), parent="t0"), answer()),
    ),
    "a sub-agent works where the stream does not show it": (sub_agent(),),
    "the prompt begins with its name behind a slash": (
        (tell("<command-message>tidy</command-message>\n<command-name>/tidy</command-name>"),),
    ),
    "the prompt mentions its `SKILL.md` behind an `@`": ((tell(f"See @{FILE}."),),),
    "the client adds its content by itself": (
        (
            tell(
                "Base directory for this skill: /run/project/.claude/skills/tidy\n\nTidy up.",
                isSynthetic=True,
            ),
        ),
    ),
    "none of this, in a stream that was wholly understood": (
        (),
        called("Skill", skill="other"),
        called("Bash", command="ls .claude/skills/tidy"),
        sub_agent(say(use("Bash", command="true"), parent="t0"), answer()),
    ),
}


def seen(folder: Path, played: Events) -> str:
    prompt = [{**event, "isReplay": "isSynthetic" not in event} for event in played[:1]]
    first = prompt if played and played[0]["type"] == "user" else list(played[:1])
    found = read(folder, stream(init(), *first, *played[1:], result()))
    return observe_load(found, ELSEWHERE).load.value


def test_the_page_says_how_each_load_is_seen(tmp_path: Path) -> None:
    """Whoever reads a load in a benchmark must be able to trust the word."""
    rows = table("what happens in a session | load of the skill")

    assert [what for what, _ in rows] == list(PLAYED)
    for what, load in rows:
        expected = "loaded" if load == "as if the agent did it" else load
        assert [seen(tmp_path, played) for played in PLAYED[what]] == [expected] * len(
            PLAYED[what]
        ), what


def test_the_page_lists_every_tool_that_is_known() -> None:
    """A tool that is new is told as `other` until this table knows it."""
    rows = table("tool | kind | what it is done to")

    assert {name.strip("`"): (kind.strip("`"), to.strip("`")) for name, kind, to in rows} == TOOLS


def test_the_page_lists_every_setting() -> None:
    """A setting that no page names is found by nobody."""
    listed = [name.strip("`") for name, *_ in table("setting | default | meaning")]

    assert listed == list(ClaudeSettings.model_fields)
    assert f"from version {MINIMUM['claude']} on" in section()


@pytest.fixture
def command(tmp_path: Path) -> Any:
    """Return the command of a session with all that a table can ask for."""
    (tmp_path / "claude").touch()
    asked = {"base_url": "http://127.0.0.1:1", "max_retries": 1}
    made = ClaudeClient().configured("mine", command=(), key_env=(), model="m-1", settings=asked)
    return made.launch(
        TaskBrief(name="fix", prompt="Fix it."),
        RunLayout(root=Path("/run")),
        python=Path("/python"),
        program_dir=tmp_path,
        env={"ANTHROPIC_API_KEY": "test-key-not-real"},
        model="m-1",
        settings={},
        script=None,
    )


def test_the_page_lists_every_option(command: Any) -> None:
    """A difference between arms cannot come from an option that is told in all."""
    words = [option.strip("`") for option, _ in table("option | why")]

    assert " ".join(words) == " ".join(command.argv[1:]).replace("--model m-1 ", "")


def test_the_page_on_the_environment_lists_every_variable(command: Any) -> None:
    """A variable that is set and told nowhere is a difference nobody can find."""
    page = (DOCS / "environment.md").read_text("utf-8")
    rows = re.findall(r"^\| claude \| `(\w+)` \| (.*?) \|", page, re.MULTILINE)
    exploratory = confined_env(RunLayout(root=Path("<run>")))

    assert {name for name, _ in rows} == set(command.env) - {"ANTHROPIC_API_KEY"} | set(exploratory)
    for name, value in {**ALWAYS, **UNCONFINED, **exploratory}.items():
        assert dict(rows)[name].startswith(f"`{value}`")
