"""What editors show of the tree, and what they run of it: VS Code's adapter, PyCharm's messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import TASK, TASK_ID, Project, Session

ADAPTER = Path(__file__).with_name("adapter.py")


class Editor:
    """VS Code with a project open: it knows of the tree what its adapter has sent."""

    def __init__(self, project: Project, sent: Path) -> None:
        self.project = project
        self._sent = sent
        project.write("adapter.py", ADAPTER.read_text("utf-8"))

    def run(self, *arguments: str) -> tuple[Session, dict[str, Any]]:
        """Start pytest as the editor does, and return what it said and what the adapter sent."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ADAPTER_FILE", str(self._sent))
            rootdir = f"--rootdir={self.project.root}"
            session = self.project.pytest("-p", "adapter", rootdir, *arguments)
        return session, json.loads(self._sent.read_text("utf-8"))

    def discover(self, *arguments: str) -> list[dict[str, Any]]:
        session, sent = self.run("--collect-only", *arguments)
        assert session.ret == 0, session.stdout
        return sent["tree"]

    def outcomes(self, *arguments: str) -> dict[str, str]:
        """Return outcomes by what follows the task file in an id."""
        _, sent = self.run(*arguments)
        return {it["nodeid"].partition("::")[2]: it["outcome"] for it in sent["results"]}


@pytest.fixture
def editor(project: Project, tmp_path: Path) -> Editor:
    return Editor(project, tmp_path / "sent.json")


def labels(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield each test's labels from its file down, and its line."""
    for node in nodes:
        if "children" not in node:
            yield node["name"], node["line"]
        for path, line in labels(node.get("children", [])):
            yield f"{node['name']} > {path}", line


def leaves(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        if "children" in node:
            yield from leaves(node["children"])
        else:
            yield node


def line_of(text: str) -> int:
    """Return the 1-based line of the only place where the task says something."""
    assert TASK.count(text) == 1
    return TASK.partition(text)[0].count("\n") + 1


GREETS, NAMES = line_of("[checks.greets]"), line_of("[checks.names]")
SILENT, NAMELESS = (line_of(f'[[mutants]]\nname = "{it}"') for it in ("silent", "nameless"))
EXPECTED = line_of("[expected]")
TOP = 1

AUDIT = {
    "validate": TOP,
    "audit > reference > greets": GREETS,
    "audit > reference > names": NAMES,
    "audit > starter": SILENT,
    "audit > silent": SILENT,
    "audit > nameless": NAMELESS,
}
WITHOUT = "oracle > without-skills > trial-001"
WITH = "oracle > with-skills > trial-001"
TRIALS = {
    f"{WITHOUT} > run": TOP,
    f"{WITHOUT} > greets": GREETS,
    f"{WITHOUT} > names": NAMES,
    f"{WITHOUT} > success": TOP,
    f"{WITH} > run": TOP,
    f"{WITH} > greets": GREETS,
    f"{WITH} > names": NAMES,
    f"{WITH} > installed-greet": EXPECTED,
    f"{WITH} > used-greet": EXPECTED,
    f"{WITH} > success": TOP,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((), AUDIT), (("--evalarc-task=hello",), {**AUDIT, **TRIALS})],
    ids=["as it is", "with trials"],
)
def test_the_tree_is_found_with_the_line_of_every_node(
    editor: Editor, arguments: tuple[str, ...], expected: dict[str, int]
) -> None:
    """A click on a check leads to where task.toml says what it is about; none starts an agent."""
    tree = editor.discover(*arguments)

    assert dict(labels(tree)) == {f"task.toml > {path}": line for path, line in expected.items()}
    (file,) = tree
    assert file["id"] == str(editor.project.root / TASK_ID)
    assert all(test["skips"] == [] for test in leaves(tree))


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "two workers"])
def test_ids_that_the_editor_passes_back_run_these_and_no_more(
    editor: Editor, workers: tuple[str, ...]
) -> None:
    """Three checks of one trial need the trial once, and a control needs no trial at all."""
    tree = editor.discover("--evalarc-task=hello")
    wanted = ["greets", "names", "used-greet"]
    chosen = [f"oracle::with-skills::trial-001::{name}" for name in wanted]
    chosen.append("audit::silent")
    ids = [test["id"] for test in leaves(tree) if test["id"].endswith(tuple(chosen))]
    assert len(ids) == 4

    outcomes = editor.outcomes(*workers, *ids)

    assert outcomes == dict.fromkeys(chosen, "passed")
    assert list(editor.project.trial_results()) == ["trial-1-with-skills"]


@pytest.mark.slow
@needs_bwrap
def test_a_miss_is_shown_as_skipped_and_a_fault_that_passed_as_failed(editor: Editor) -> None:
    """The one is a measurement of the agent, the other a defect of the task."""
    editor.project.write("evals/tasks/hello/checks/names.sh", "true\n")

    _, sent = editor.run("--evalarc-task=hello", "--evalarc-client=nop", "-k", "names or nameless")

    results = {it["nodeid"].partition("::")[2]: it for it in sent["results"]}
    assert results["audit::nameless"]["outcome"] == "failed"
    assert "nameless" in results["audit::nameless"]["message"]
    missed = editor.outcomes("--evalarc-task=hello", "--evalarc-client=nop", "-k", "greets and nop")
    assert set(missed.values()) == {"skipped"}
    assert len(missed) == 2


def test_the_page_on_editors_shows_the_lines_as_they_are() -> None:
    """Who follows the page meets this tree."""
    page = (Path(__file__).parents[2] / "docs/editors.md").read_text("utf-8")
    shown = re.findall(r"^ +([\w-]+) +(\d+)$", page, re.MULTILINE)

    tree = {**AUDIT, **TRIALS}
    assert shown == [(path.split(" > ")[-1], str(line)) for path, line in tree.items()]


# PyCharm.

MESSAGE = re.compile(r"##teamcity\[(\w+) (.*?)\]$", re.MULTILINE)
ATTRIBUTE = re.compile(r"(\w+)='((?:\|.|[^'|])*)'")


def messages(session: Session) -> list[tuple[str, dict[str, str]]]:
    """Return each message's kind and attributes."""
    return [(kind, dict(ATTRIBUTE.findall(rest))) for kind, rest in MESSAGE.findall(session.stdout)]


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "two workers"])
def test_pycharm_is_told_each_start_end_failure_and_miss(
    project: Project, workers: tuple[str, ...]
) -> None:
    """Its tree is the dot split of the names, and a test that never ends spins for ever."""
    project.write("evals/tasks/hello/checks/names.sh", "true\n")
    of_the_task = "evals.tasks.hello.task_toml"
    trial = f"{of_the_task}.nop.without-skills.trial-001"

    session = project.pytest(
        *("--teamcity", "--no-summary", "--evalarc-task=hello", "--evalarc-client=nop"),
        *("-k", "audit or without-skills", *workers),
    )

    told = messages(session)
    named = {
        kind: [attributes["name"] for it, attributes in told if it == kind]
        for kind in ("testStarted", "testFinished", "testFailed", "testIgnored")
    }
    assert sorted(named["testStarted"]) == sorted(named["testFinished"])
    assert sorted(named["testStarted"]) == sorted(
        [
            *(f"{of_the_task}.audit.{it}" for it in ("reference.greets", "reference.names")),
            *(f"{of_the_task}.audit.{it}" for it in ("starter", "silent", "nameless")),
            *(f"{trial}.{it}" for it in ("run", "greets", "names", "success")),
        ]
    )
    assert named["testFailed"] == [f"{of_the_task}.audit.nameless"]
    assert sorted(named["testIgnored"]) == [f"{trial}.greets", f"{trial}.success"]
    (failed,) = (attributes for kind, attributes in told if kind == "testFailed")
    assert "nameless" in failed["details"]
