from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.model.task import Task
from pytest_evalarc.reporting.imports.tasks import front_matter
from pytest_evalarc.tasks.load import load_task

SKILL = "---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n"
PROMPT = """\
---
max_turns: 10
timeout_seconds: 120
tags: [smoke, "two words"]
---

Say hello to Ada.
"""
FIRED = """\
---
type: tool_used
tool: Skill
input_match: '"skill"\\s*:\\s*"(?:[\\w-]+:)?greet"'
---
"""
TASK = Path("evals/tasks/greet-ada")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current folder that is a project with a plugin of one skill."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"pytest.ini": "[pytest]\n", "plug/skills/greet/SKILL.md": SKILL})
    write(tmp_path, {"plug/.claude-plugin/plugin.json": '{"name": "plug"}'})
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


def loaded(root: Path, name: str = "greet-ada") -> Task:
    return load_task(root / "evals/tasks" / name, root=root, toolchains=("python",))


def test_a_case_of_claude_plugin_eval_becomes_a_valid_task(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether the skill fires is decided here too, and from evidence."""
    case = "plug/evals/first"
    graders = {
        f"{case}/graders/fired.md": FIRED,
        f"{case}/graders/quiet.md": "---\ntype: llm\n---\nPASS if it greets.\n",
        f"{case}/case.yaml": 'schema_version: "1.1"\nname: first\n',
    }
    write(project, {f"{case}/prompt.md": PROMPT, **graders})

    assert main(["import", case, "--into", str(TASK)]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "made evals/tasks/greet-ada",
        "  not carried over: case.yaml: put into starter/ what its workspace begins with",
        "  not carried over: grader quiet (llm): write a hidden check for it in checks/",
        "  not carried over: prompt.md: max_turns, which a run sets here and no task does",
    ]
    task = loaded(project)
    assert task.brief.prompt == "Say hello to Ada.\n"
    assert task.expected.used == ("greet",)
    assert task.brief.agent_deadline_s == 120.0
    assert task.tags == ("smoke",)
    assert [plugin.root for plugin in task.plugins] == [project / "plug"]


def test_a_skill_that_must_not_fire_is_expected_not_to_be_used(project: Path) -> None:
    """The same grader with the bounds 0 and 0 asks for the opposite."""
    never = FIRED.replace("tool: Skill\n", "tool: Skill\nmin: 0\nmax: 0\n")
    case = "plug/evals/first"
    write(project, {f"{case}/prompt.md": PROMPT, f"{case}/graders/fired.md": never})

    assert main(["import", case, "--into", str(TASK)]) == 0

    assert loaded(project).expected.not_used == ("greet",)


def test_evals_of_the_skill_creator_become_a_task_each(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a model would have judged is listed, since hidden checks judge here."""
    skill = project / "plug/skills/greet"
    evals = [
        {
            "id": 1,
            "prompt": "Greet Ada.",
            "expected_output": "A greeting",
            "files": ["evals/files/names.txt", "../../../../secret.txt"],
            "expectations": ["It says hello"],
        },
        {"id": 2, "prompt": "Greet Bob."},
    ]
    write(skill, {"evals/files/names.txt": "Ada\n"})
    write(project, {"secret.txt": "x"})
    document = {"skill_name": "greet", "evals": evals}
    write(skill, {"evals/evals.json": json.dumps(document)})

    assert main(["import", "plug/skills/greet/evals/evals.json", "--into", str(TASK)]) == 0

    said = capsys.readouterr().out.splitlines()
    assert said[1:4] == [
        "  not carried over: file ../../../../secret.txt, which is not in the skill",
        "  not carried over: expectation 'A greeting': write a hidden check for it in checks/",
        "  not carried over: expectation 'It says hello': write a hidden check for it in checks/",
    ]
    first, second = loaded(project, "greet-ada-1"), loaded(project, "greet-ada-2")
    assert (first.starter / "names.txt").read_text("utf-8") == "Ada\n"
    assert [path.name for path in first.starter.iterdir()] == ["names.txt"]
    assert (first.expected.used, second.brief.prompt) == (("greet",), "Greet Bob.\n")


def test_a_task_of_harbor_keeps_its_bounds_and_says_what_it_lacks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a check there is nothing to judge by, and the author must know."""
    toml = """\
version = "1.0"
[metadata]
tags = ["sums"]
[agent]
timeout_sec = 900.0
[verifier]
timeout_sec = 90
[environment]
memory_mb = 4096
cpus = 2
"""
    write(
        project,
        {
            "add/instruction.md": "Add the numbers.\n",
            "add/task.toml": toml,
            "add/tests/test.sh": "exit 0\n",
            "add/environment/Dockerfile": "FROM scratch\n",
            "add/solution/solve.sh": "true\n",
        },
    )

    assert main(["import", "add", "--into", "evals/tasks/add"]) == 0

    said = capsys.readouterr().out
    assert "  not carried over: tests: write a hidden check for each of its tests" in said
    assert "  not carried over: environment: put into starter/ what its image holds" in said
    assert "  not carried over: solution: write its outcome, as files, into solution/" in said
    assert said.count("  left to you: ") == 1
    check = "def test_adds(submission):\n    assert submission.call('app:add', 1) == 1\n"
    write(project, {"evals/tasks/add/checks/adds.py": check})
    path = project / "evals/tasks/add/task.toml"
    path.write_text(
        path.read_text("utf-8").replace("toolchain", 'editable = ["app.py"]\ntoolchain', 1), "utf-8"
    )
    task = loaded(project, "add")
    assert (task.deadlines.agent, task.deadlines.grading) == (900.0, 90.0)
    assert (task.limits.memory_mib, task.limits.cpus, task.tags) == (4096, 2.0, ("sums",))


@pytest.mark.parametrize(
    ("source", "into", "sentence"),
    [
        ("empty", "evals/tasks/x", "empty: is no case that is known here"),
        ("none.json", "evals/tasks/x", "none.json: is no case that is known here"),
        ("torn.json", "evals/tasks/x", "torn.json: line 1 column 2: is not JSON"),
        ("list.json", "evals/tasks/x", "list.json: evals: is no list of evals"),
        ("case", "evals/tasks/a b", "name 'a b': is none that a task can have"),
        ("case", "evals/tasks/there", "evals/tasks/there: is there already"),
        ("late", "evals/tasks/x", "late/prompt.md: timeout_seconds: is soon, and no number of"),
        ("twins.json", "evals/tasks/x", "evals/tasks/x-1: is there already"),
    ],
)
def test_what_cannot_be_imported_leaves_nothing_behind(
    project: Path, capsys: pytest.CaptureFixture[str], source: str, into: str, sentence: str
) -> None:
    """Half of a task would be taken for one."""
    twins = {"evals": [{"id": 1, "prompt": "a"}, {"id": 1, "prompt": "b"}]}
    write(
        project,
        {
            "empty/readme": "",
            "torn.json": "{",
            "list.json": "[]",
            "twins.json": json.dumps(twins),
            "case/prompt.md": "Do it.\n",
            "late/prompt.md": "---\ntimeout_seconds: soon\n---\nDo it.\n",
            "evals/tasks/there/task.toml": "",
        },
    )

    assert main(["import", source, "--into", into]) == 1

    assert capsys.readouterr().err.startswith(f"pytest-evalarc: {sentence}")
    assert [path.name for path in (project / "evals/tasks").iterdir()] == ["there"]


@pytest.mark.parametrize(
    ("text", "facts", "body"),
    [
        ("Do it.\n", {}, "Do it.\n"),
        ("---\na: 1\n---\n\nDo it.\n", {"a": "1"}, "Do it.\n"),
        ("---\na: 'x: y'\nb:\n  c: 1\n---\nDo\n", {"a": "x: y", "b": ""}, "Do\n"),
        ("---\nnever closed\n", {}, "---\nnever closed\n"),
        ("---\n# a: 1\n---\nDo\n", {}, "Do\n"),
    ],
)
def test_front_matter_is_what_stands_between_two_lines(
    text: str, facts: dict[str, str], body: str
) -> None:
    """A prompt that only begins with a rule is a prompt."""
    assert front_matter(text) == (facts, body)
