from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.model.task import Task
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
        f"{case}/graders/README.md": "Notes of the author.\n",
        f"{case}/names.txt": "Ada\n",
        "plug/evals/mocks/mail/send.md": "sent\n",
        f"{case}/mocks/mail/read.md": "nothing\n",
    }
    write(project, {f"{case}/prompt.md": PROMPT, **graders})

    assert main(["import", case, "--into", str(TASK)]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "made evals/tasks/greet-ada",
        "  not carried over: ../mocks: answers of MCP servers, which are not played here",
        "  not carried over: grader quiet (llm): write a hidden check for it in checks/",
        "  not carried over: mocks: answers of MCP servers, which are not played here",
        "  not carried over: names.txt: put into starter/ what its workspace begins with",
        "  not carried over: prompt.md: max_turns, which a run sets here and no task does",
        "  not carried over: tag two words: a tag here is letters, digits, _, + and -",
    ]
    task = loaded(project)
    assert task.brief.prompt == "Say hello to Ada.\n"
    assert task.expected.used == ("greet",)
    assert task.brief.agent_deadline_s == 120.0
    assert task.tags == ("smoke",)
    assert [plugin.root for plugin in task.plugins] == [project / "plug"]


CASE_YAML = """\
schema_version: "1.1"
name: greet-ada
description: Greets whoever is in the list.
tags: [smoke, "case:greet"]
plugins: [../other]
context:
  scaffold_script: setup/fixture.sh
  history_file: history.jsonl
  add_dirs:
    - fixtures/lists
    - ../../shared
    - /etc
    - .
    - ../..
execution:
  prompt: |
    Greet everybody in lists/names.txt.
  timeout_seconds: 240
  max_turns: 20
  model: opus
  allowed_tools: [Read, Skill]
  env: {GREETING: hello}
runs: 5
graders:
  - {type: tool_used, name: fired, tool: Skill, input_match: '"(?:[\\w-]+:)?greet"', arm: both}
  - type: tool_used
    name: no-farewell
    tool: Skill
    input_match: part
    min: 0
    max: 0
  - {type: tool_used, name: maybe, tool: Skill, input_match: part, min: 0}
  - {type: tool_used, name: read, tool: Read}
  - {type: file_exists, name: written, path: "*.txt"}
  - {type: regex, name: said, pattern: Ada}
  - {type: tool_order, name: order, before: Read, after: Write}
  - {type: llm, name: tone, criteria: It is friendly.}
  - {type: baseline, name: better, baseline_file: old.md, criteria: It is better.}
expected_outcome: A greeting.
"""


def test_a_case_that_is_written_in_case_yaml_becomes_a_valid_task(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prompt, deadline, tags, readable folders and what is asked of skills are in there."""
    case = "plug/evals/suite/first"
    write(
        project,
        {
            f"{case}/case.yaml": CASE_YAML,
            f"{case}/setup/fixture.sh": "touch a\n",
            f"{case}/history.jsonl": "{}\n",
            f"{case}/fixtures/lists/names.txt": "Ada\n",
            "plug/evals/shared/more.txt": "Bob\n",
            "plug/skills/part/SKILL.md": SKILL.replace("greet", "part"),
        },
    )

    assert main(["import", case, "--into", str(TASK)]) == 0

    left = "  not carried over: "
    told = [
        line.removeprefix(left)
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(left)
    ]
    run = "which a run sets here and no task does"
    check = "write a hidden check for it in checks/"
    assert told == [
        f"case.yaml: execution.allowed_tools, {run}",
        f"case.yaml: execution.env, {run}",
        f"case.yaml: execution.max_turns, {run}",
        f"case.yaml: execution.model, {run}",
        "case.yaml: plugin ../other: add its folder to plugins",
        f"case.yaml: runs, {run}",
        "context.add_dirs ., which holds the graders as well",
        "context.add_dirs ../.., which holds the graders as well",
        "context.add_dirs ../../shared: its files are at shared of the workspace",
        "context.add_dirs /etc, which is no folder of the case or its plugin",
        "context.history_file history.jsonl: an earlier conversation, and a trial here begins with"
        " the prompt",
        "context.scaffold_script setup/fixture.sh: put into starter/ what it makes",
        f"grader better (baseline): {check}",
        f"grader maybe (tool_used): {check}",
        f"grader order (tool_order): {check}",
        f"grader read (tool_used): {check}",
        f"grader said (regex): {check}",
        f"grader tone (llm): {check}",
        f"grader written (file_exists): {check}",
        "tag case:greet: a tag here is letters, digits, _, + and -",
    ]
    task = loaded(project)
    assert task.brief.prompt == "Greet everybody in lists/names.txt.\n"
    assert (task.brief.agent_deadline_s, task.tags) == (240.0, ("smoke",))
    assert (task.expected.used, task.expected.not_used) == (("greet",), ("part",))
    assert (task.starter / "fixtures/lists/names.txt").read_text("utf-8") == "Ada\n"
    assert (task.starter / "shared/more.txt").read_text("utf-8") == "Bob\n"


def test_what_prompt_md_says_goes_before_case_yaml(project: Path) -> None:
    """As the program that the case was written for has it; the graders of both count."""
    case = "plug/evals/first"
    part = SKILL.replace("greet", "part")
    files = {f"{case}/case.yaml": CASE_YAML, f"{case}/prompt.md": PROMPT}
    never = FIRED.replace("greet", "late").replace("tool: Skill\n", "tool: Skill\nmax: 0\n")
    write(project, {**files, f"{case}/graders/late.md": never})
    write(project, {"plug/skills/part/SKILL.md": part})
    write(project, {"plug/skills/late/SKILL.md": SKILL.replace("greet", "late")})

    assert main(["import", case, "--into", str(TASK)]) == 0

    task = loaded(project)
    assert (task.brief.prompt, task.brief.agent_deadline_s) == ("Say hello to Ada.\n", 120.0)
    assert task.tags == ("smoke",)
    assert (task.expected.used, task.expected.not_used) == (("greet",), ("part", "late"))


def test_a_grader_that_names_no_skill_means_any_of_the_plugin(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one skill it is that one; of several none may be used, or it is not said which."""
    write(project, {"plug/evals/one/prompt.md": "Greet.\n"})
    write(project, {"plug/evals/one/graders/skill.md": "---\ntype: tool_used\ntool: Skill\n---\n"})
    assert main(["import", "plug/evals/one", "--into", "evals/tasks/one"]) == 0
    write(project, {"plug/skills/part/SKILL.md": SKILL.replace("greet", "part")})
    never = "---\ntype: tool_used\ntool: Skill\nmin: 0\nmax: 0\n---\n"
    write(project, {"plug/evals/none/prompt.md": "Greet.\n"})
    write(project, {"plug/evals/none/graders/skill.md": never})
    assert main(["import", "plug/evals/none", "--into", "evals/tasks/none"]) == 0
    assert "not carried over" not in capsys.readouterr().out

    assert main(["import", "plug/evals/one", "--into", "evals/tasks/several"]) == 0

    assert "not carried over: grader skill (tool_used): " in capsys.readouterr().out
    assert loaded(project, "one").expected.used == ("greet",)
    assert loaded(project, "none").expected.not_used == ("greet", "part")


def test_without_pyyaml_a_sentence_says_how_to_install_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most projects import nothing, and need no reader of YAML."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    write(project, {"plug/evals/first/case.yaml": CASE_YAML, "plug/evals/plain/prompt.md": "Go.\n"})

    assert main(["import", "plug/evals/first", "--into", str(TASK)]) == 1

    assert capsys.readouterr().err == (
        "pytest-evalarc: plug/evals/first/case.yaml: is read with PyYAML, which is not installed; "
        "install it with `pip install 'pytest-evalarc[yaml]'`\n"
    )
    assert main(["import", "plug/evals/plain", "--into", str(TASK)]) == 0


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


def test_evals_as_they_are_written_in_practice_are_read(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list alone, ids that are no names, objects for statements, and inputs beside the file."""
    evals = [
        {
            "id": "TC 01",
            "name": "first",
            "category": "core",
            "prompt": "Greet the list.",
            "input_file": "inputs/names.txt",
            "files": ["evals/inputs/more", "inputs/more/names.txt", ".", "evals/evals.json"],
            "expected": "PASS",
            "assertions": [{"id": "a", "text": "It greets", "type": "judge"}, "It is short"],
            "expected_behaviors": ["It is polite"],
        },
        {"id": "TC02", "prompt": "Greet Bob."},
    ]
    skill = project / "plug/skills/greet"
    write(skill, {"evals/inputs/names.txt": "Ada\n", "evals/inputs/more/names.txt": "Bob\n"})
    write(skill, {"evals/evals.json": json.dumps(evals)})

    assert main(["import", "plug/skills/greet/evals/evals.json", "--into", str(TASK)]) == 0

    said = capsys.readouterr().out.splitlines()
    check = "write a hidden check for it in checks/"
    assert said[1:9] == [
        "  not carried over: file ., which holds the expectations as well",
        "  not carried over: file evals/evals.json, which holds the expectations as well",
        "  not carried over: file inputs/names.txt, beside which another one has the same name",
        f"  not carried over: expectation 'PASS': {check}",
        f"  not carried over: expectation 'It greets': {check}",
        f"  not carried over: expectation 'It is short': {check}",
        f"  not carried over: expectation 'It is polite': {check}",
        "  not carried over: category, for which a task has no word",
    ]
    first, second = loaded(project, "greet-ada-1"), loaded(project, "greet-ada-TC02")
    assert (first.starter / "names.txt").read_text("utf-8") == "Bob\n"
    assert (first.starter / "more/names.txt").read_text("utf-8") == "Bob\n"
    assert second.brief.prompt == "Greet Bob.\n"


def test_trigger_evals_say_when_the_skill_must_not_be_used(project: Path) -> None:
    """The skill-creator tries a description with queries of both kinds."""
    evals = [
        {"query": "Say hello to Ada", "should_trigger": True},
        {"query": "Add two numbers", "should_trigger": False},
    ]
    write(project, {"plug/skills/greet/evals/trigger.json": json.dumps(evals)})

    assert main(["import", "plug/skills/greet/evals/trigger.json", "--into", str(TASK)]) == 0

    first, second = loaded(project, "greet-ada-1"), loaded(project, "greet-ada-2")
    assert (first.expected.used, first.expected.not_used) == (("greet",), ())
    assert (second.expected.used, second.expected.not_used) == ((), ("greet",))
    assert second.brief.prompt == "Add two numbers\n"


HARBOR_TOML = """\
schema_version = "1.1"
artifacts = []

[task]
name = "org/mend-notes"
description = "Mends notes."
keywords = ["notes", "version-control"]
[[task.authors]]
name = "A. Author"

[metadata]
difficulty = "easy"
tags = ["notes", "two words"]

[verifier]
timeout_sec = 300.0

[agent]
timeout_sec = 600.0
user = "agent"

[environment]
build_timeout_sec = 600.0
docker_image = "org/mend-notes:1"
cpus = 1
memory = "{memory}"
storage_mb = 10240
gpus = 0
allow_internet = true
mcp_servers = []

[verifier.env]

[environment.env]
KEY = "value"

[solution.env]
"""


@pytest.mark.parametrize(
    ("memory", "mib"), [("2G", 2048), ("512m", 512), ("1.5 GiB", 1536), ("plenty", None)]
)
def test_what_a_published_task_of_harbor_sets_beyond_ours_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], memory: str, mib: int | None
) -> None:
    """An image, a network and a user make up what its agent met, and are no file to be copied."""
    text = HARBOR_TOML.replace("{memory}", memory)
    canary = "<!-- data canary GUID 1 -->\n# more canary\n\n"
    write(project, {"mend/instruction.md": f"{canary}# Notes\n", "mend/task.toml": text})

    assert main(["import", "mend", "--into", "evals/tasks/mend"]) == 0

    said = capsys.readouterr().out
    told = [line for line in said.splitlines() if "task has no word" in line]
    assert ("environment.memory plenty, which is no amount" in said) is (mib is None)
    keys = ["agent.user"]
    keys += [
        f"environment.{key}" for key in ("docker_image", "storage_mb", "allow_internet", "env")
    ]
    assert sorted(told) == sorted(
        f"  not carried over: task.toml: {key}, for which a task has no word" for key in keys
    )
    check = "def test_mended(submission):\n    assert submission.call('app:mend', 1) == 1\n"
    write(project, {"evals/tasks/mend/checks/mended.py": check})
    path = project / "evals/tasks/mend/task.toml"
    toml = path.read_text("utf-8").replace("toolchain", 'editable = ["app.py"]\ntoolchain', 1)
    path.write_text(toml, "utf-8")
    task = loaded(project, "mend")
    assert task.brief.prompt == "# Notes\n"
    assert task.tags == ("notes", "version-control")
    assert (task.deadlines.agent, task.deadlines.grading) == (600.0, 300.0)
    assert (task.limits.memory_mib if mib else None) == mib


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
        ("yaml", "evals/tasks/x", "yaml/case.yaml: is no YAML: while parsing"),
        ("day", "evals/tasks/x", "day/prompt.md: is no YAML: "),
        ("words", "evals/tasks/x", "words/case.yaml: is no YAML mapping"),
        ("mute", "evals/tasks/x", "mute: has no prompt"),
        ("bool", "evals/tasks/x", "bool/case.yaml: execution.timeout_seconds: is True, and no"),
        ("steps", "evals/tasks/x", "steps: has several steps, and a task here has one prompt"),
        ("silent.json", "evals/tasks/x", "silent.json: evals.0: has no prompt"),
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
            "yaml/case.yaml": "execution: {prompt",
            "day/prompt.md": "---\nday: 2026-02-31\n---\nDo it.\n",
            "words/case.yaml": "- a\n",
            "mute/case.yaml": "execution: {prompt: ' '}\n",
            "bool/case.yaml": "execution: {prompt: a, timeout_seconds: true}\n",
            "steps/instruction.md": "Do it.\n",
            "steps/task.toml": '[[steps]]\nname = "one"\n',
            "silent.json": json.dumps([{"id": 1}]),
            "late/prompt.md": "---\ntimeout_seconds: soon\n---\nDo it.\n",
            "evals/tasks/there/task.toml": "",
        },
    )

    assert main(["import", source, "--into", into]) == 1

    assert capsys.readouterr().err.startswith(f"pytest-evalarc: {sentence}")
    assert [path.name for path in (project / "evals/tasks").iterdir()] == ["there"]
