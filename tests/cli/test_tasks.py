"""`pytest-evalarc tasks`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from pytest_evalarc.cli.tasks_listing import BrokenPack, InvalidTask, KnownPack, Listing, ValidTask
from tests.distribution import install
from tests.evals import Evals

PACK_TASK = 'kind = "regression"\ntags = ["slow", "kv"]\n[pack]\nname = "durable-kv"\n'
BROKEN = 'kind = "regresion"\ntoolchain = "python"\n[pack]\nname = "durable-kw"\n'
FOREIGN = '[metadata]\ndifficulty = "easy"\n'
DURABLE_KV = ["durable-kv", "0.1.0", "coding", "15 x 6", "8", "python, javascript"]


class Project:
    """A project with the valid task `tiny`, in which commands are run."""

    def __init__(self, root: Path) -> None:
        self.root = Evals(root).project

    @property
    def tasks(self) -> Path:
        return self.root / "evals/tasks"

    def add(self, name: str, text: str) -> None:
        (self.tasks / name).mkdir()
        (self.tasks / name / "task.toml").write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path)
    monkeypatch.chdir(project.root)
    return project


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line)


def test_each_task_is_a_line_of_the_table(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a project measures, and by what, is seen at one look."""
    project.add("kv", PACK_TASK)

    assert main(["tasks"]) == 0

    table, _, packs = capsys.readouterr().out.partition("\n\n")
    assert table.splitlines() == [
        "task  kind        graded by             checks x dimensions  mutants  tags",
        "kv    regression  durable-kv in python  15 x 6               8        slow, kv",
        "tiny  capability  python                2 x 2                2",
    ]
    head, *rows = map(cells, packs.splitlines())
    assert head == ["pack", "version", "domain", "cases x dimensions", "mutants", "languages"]
    assert DURABLE_KV in rows


def test_an_invalid_task_is_told_with_its_first_problem(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """It hides no valid one, and the status says that something is to be mended."""
    project.add("broken", BROKEN)
    project.add("empty", "")
    project.add("typo", f"{PACK_TASK}seed = 3\n")

    assert main(["tasks"]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("tiny ")
    assert lines[2] == (
        "broken: 4 problems, the first: evals/tasks/broken/task.toml:1 kind: must be one of "
        '"capability", "regression", found "regresion"; nearest: regression'
    )
    assert lines[3].startswith("empty: ") and "problems, the first: evals/tasks/empty" in lines[3]
    assert lines[4] == (
        "typo: 1 problem: evals/tasks/typo/task.toml:5 [pack] seed: is no key that is known here; "
        "nearest: seeds"
    )
    assert lines[5].endswith("pytest --evalarc-check-tasks")


def test_json_holds_every_problem_and_every_name(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program wants all of it, and knows by the version how to read it."""
    project.add("broken", BROKEN)
    project.add("kv", f'{PACK_TASK}language = "javascript"\n')
    project.add("theirs", FOREIGN)

    assert main(["tasks", "--json"]) == 1

    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == "1.0"
    assert document["folder"] == str(project.tasks)
    (kv, tiny) = document["tasks"]
    assert re.fullmatch("[0-9a-f]{64}", tiny.pop("content_hash"))
    assert tiny == {
        "name": "tiny",
        "kind": "capability",
        "version": "0.1.0",
        "toolchain": "python",
        "pack": None,
        "language": None,
        "checks": ["adds", "empty"],
        "dimensions": ["sums", "edges"],
        "mutants": ["first-only", "empty-is-one"],
        "tags": [],
    }
    assert (kv["toolchain"], kv["pack"], kv["language"]) == ("node", "durable-kv", "javascript")
    (broken,) = document["invalid"]
    assert broken["name"] == "broken"
    assert len(broken["problems"]) == 4
    assert any("nearest: durable-kv" in problem for problem in broken["problems"])
    assert document["skipped"] == ["theirs"]
    (pack,) = (pack for pack in document["packs"] if pack["name"] == "durable-kv")
    assert pack["languages"] == ["python", "javascript"]
    assert pack["mutants"] == kv["mutants"]
    assert pack["cases"] == kv["checks"]


def test_a_task_of_another_tool_is_skipped_with_one_line(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not ours to complain about."""
    project.add("theirs", FOREIGN)

    assert main(["tasks"]) == 0

    assert "theirs: skipped, its task.toml belongs to another tool\n" in capsys.readouterr().out


def test_what_pytest_collects_no_task_from_is_no_task(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files, folders without a task.toml and hidden ones lie there in any project."""
    project.add(".draft", BROKEN)
    (project.tasks / "notes").mkdir()
    (project.tasks / "README.md").write_text("")

    assert main(["tasks"]) == 0

    table, _, _ = capsys.readouterr().out.partition("\n\n")
    assert [cells(line)[0] for line in table.splitlines()] == ["task", "tiny"]


def test_a_project_without_tasks_still_learns_which_packs_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One looks here before there is a first task."""
    monkeypatch.chdir(tmp_path)

    assert main(["tasks"]) == 0

    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"no tasks in {tmp_path}/evals/tasks; pytest-evalarc init NAME makes one"
    assert DURABLE_KV in map(cells, others)


@pytest.mark.parametrize("name", ["none", "file"])
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Who names a folder expects tasks in it; the status differs from that of an invalid task."""
    (tmp_path / "file").write_text("")

    assert main(["tasks", str(tmp_path / name)]) == 4

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"pytest-evalarc: {tmp_path / name}: is no folder; name a folder of tasks\n"
    )


def test_plugins_are_named_from_the_root_wherever_the_command_is_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same task must not be valid in one folder and invalid in another."""
    (project.root / "pyproject.toml").write_text("")
    path = project.tasks / "tiny/task.toml"
    text = path.read_text()
    path.write_text(text.replace('plugins = ["guide"]', 'plugins = ["evals/plugins/guide"]'))

    for folder in (project.root, project.tasks, tmp_path):
        monkeypatch.chdir(folder)
        assert main(["tasks", str(project.tasks)]) == 0


ORDERS = """\
from pathlib import Path
from pytest_evalarc.model.pack import Language, PackInfo

class Orders:
    info = PackInfo(
        name="acme-orders", version="3.1", domain="shop", code=Path(__file__).parent / "orders",
        prompt="Take orders.", weights={"right": 1.0}, cases={"a": ("right",), "b": ("right",)},
        mutants=[], languages={"python": Language(toolchain="python", command=("{python}",))},
    )

def pytest_evalarc_packs():
    return {"acme-orders": Orders}
"""


def test_a_pack_of_an_installed_package_is_known(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A task that it grades is as valid here as it is to pytest."""
    install(monkeypatch, tmp_path / "site", "acme", ORDERS)
    (tmp_path / "site/orders").mkdir()
    project.add("orders", PACK_TASK.replace("durable-kv", "acme-orders"))

    assert main(["tasks"]) == 0

    lines = [cells(line) for line in capsys.readouterr().out.splitlines()]
    assert ["orders", "regression", "acme-orders in python", "2 x 1", "0", "slow, kv"] in lines
    assert ["acme-orders", "3.1", "shop", "2 x 1", "0", "python"] in lines


def test_a_pack_that_fails_is_one_sentence_and_hides_no_other(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its code is foreign, and a traceback would seem to be ours."""
    source = "def pytest_evalarc_packs():\n    return {'acme': lambda: 1 / 0}\n"
    install(monkeypatch, tmp_path / "site", "acme", source)

    project.add("orders", PACK_TASK.replace("durable-kv", "acme"))

    assert main(["tasks"]) == 1

    told = capsys.readouterr()
    sentence = (
        "pack 'acme': fails: ZeroDivisionError: division by zero; mend it, or "
        "uninstall what offers it"
    )
    lines = told.out.splitlines()
    assert told.err == ""
    assert sentence in lines and f"orders: 1 problem: {sentence}" in lines
    assert any(line.startswith("durable-kv ") for line in lines)


def test_the_page_on_tasks_lists_every_key_of_the_document() -> None:
    """Programs are written against this list."""
    page = (Path(__file__).parents[2] / "docs/tasks.md").read_text("utf-8")
    section = page.partition("\n## What there is\n")[2].partition("\n## ")[0]

    listed = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)

    assert [key for key, _ in listed] == list(Listing.model_fields)
    parts = {"tasks": ValidTask, "invalid": InvalidTask, "packs": KnownPack, "broken": BrokenPack}
    for key, model in parts.items():
        assert re.findall("`([a-z_]+)`", dict(listed)[key]) == list(model.model_fields)
