"""The page on files names whatever a run leaves, and nothing that no run leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evalarc.cli.main import main
from tests.needs import needs_bwrap
from tests.plugin.project import Project

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text("utf-8")

OF_OTHER_PROGRAMS = {
    # Of a client that lists what it has, which the real ones do.
    "results/<task>/<client>/<batch>/start.json",
    "root/<batch>/start-<client>.json",
    "root/<batch>/start-<client>/",
    # Of treatments that have programs and plugins of their own.
    "results/<task>/<client>/<batch>/trial-<n>-<configuration>/hook-trace.jsonl",
    "results/<task>/<client>/<batch>/trial-<n>-<configuration>/symposium.log",
    "root/<batch>/<task>/<client>/trial-<n>-<configuration>/registry/",
    "root/<batch>/<task>/<client>/trial-<n>-<configuration>/plugins/",
    # Of srt, and of what is asked for its version.
    "tmp/pytest-evalarc-srt-<process id>-<random>/",
    "tmp/pytest-evalarc-ask-<random>/",
    "tmp/pytest-evalarc-doctor-<random>/",
}
"""What no session of this test can leave; the tests of each hold its name."""

SOMETIMES = {"….<hex>.tmp", "tmp/pytest-evalarc-dev-<process id>-<random>/"}
"""What is there for a moment, and what only a harness makes that runs as root."""

CONFTEST = """
import json
import os
import shell
import tempfile
from pathlib import Path
from shell import *

STARTS = Path(os.environ["SHELL_STARTS"])

def look():
    # What is there only while a trial runs is gone when the session has ended.
    with STARTS.with_name("seen").open("a") as file:
        for name in ("trials", "project"):
            for path in STARTS.with_name(name).rglob("*"):
                file.write(json.dumps(str(path.relative_to(STARTS.parent))) + "\\n")
        for path in Path(tempfile.gettempdir()).glob(f"pytest-evalarc-*-{os.getpid()}-*"):
            file.write(json.dumps(f"tmp/{path.name}") + "\\n")

class Flaky(shell.Shell):
    name = "flaky"

    def steps(self, task, copy, tools):
        if (Path(__file__).parent / "broken").exists():
            raise RuntimeError("the power is out")
        return super().steps(task, copy, tools)

def pytest_evalarc_toolchains():
    return {**shell.pytest_evalarc_toolchains(), "flaky": Flaky}

DEEP = shell.START + "mkdir -p " + "d/" * 70 + "\\n" + shell.DONE
WITNESS = "echo seen > $EVAL_EVIDENCE_DIR/mine\\n" + shell.SCRIPTS["good"]

def pytest_evalarc_clients():
    made = shell.pytest_evalarc_clients()
    witness = lambda: shell.ShellClient(name="witness", script=WITNESS, before=look)
    return {**made, "witness": witness, "deep": lambda: shell.ShellClient(name="deep", script=DEEP)}
"""


def listed() -> dict[str, re.Pattern[str]]:
    """Return a pattern for each name on the page, by the name with its folder before it."""
    found = {}
    for heading, text in re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", PAGE, re.MULTILINE):
        folder = FOLDERS.get(heading, heading.strip("`"))
        for cell in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE):
            for name in re.findall("`([^`]+)`", cell):
                found[f"{folder}{name}"] = pattern(f"{folder}{name}")
    return found


FOLDERS = {
    "The evaluation root": "root/",
    "The system's temporary folder": "tmp/",
    "The cache": "cache/",
    "The project": "",
    "Marks among the results": "…",
}


def pattern(name: str) -> re.Pattern[str]:
    """Return what paths of a name look like: a mark may lie anywhere, a folder holds anything."""
    named = re.escape(name.rstrip("/"))
    spelled = re.sub(r"<n>", r"\\d+", re.sub(r"<(?!n>)[^>]+>", "[^/]+", named))
    below = "(?:/.*)?" if name.endswith("/") else ""
    return re.compile(spelled.replace("…", "(?:results|root)/(?:.*/)?") + below)


def left(folder: Path, name: str) -> Iterator[str]:
    """Yield every file and link below a folder."""
    for path in folder.rglob("*"):
        if not path.is_dir() or path.is_symlink():
            yield f"{name}/{path.relative_to(folder)}"


def seen_meanwhile(project: Project) -> Iterator[str]:
    """Yield what a running trial saw of the evaluation root and the results."""
    base = project.eval_root.parent
    for line in (base / "seen").read_text("utf-8").splitlines():
        path = line.strip('"')
        if path.startswith("trials/"):
            yield "root/" + path.removeprefix("trials/")
        elif path.startswith("tmp/"):
            yield path
        elif path.startswith("project/results/"):
            yield path.removeprefix("project/")


@pytest.fixture
def everything(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return every path that sessions of all kinds leave, by the folder that the page names."""
    loud = (project.root / "shell.py").read_text("utf-8")
    loud = loud.replace('send("ready")\n', 'send("ready")\nprint("noise", file=sys.stderr)\n')
    project.write("shell.py", loud)
    project.write("conftest.py", CONFTEST)
    project.write("pytest.ini", "[pytest]\n")
    project.edit('toolchain = "shell"', 'toolchain = "flaky"')
    named = ("--evalarc-task=hello", "--evalarc-batch=b")
    clients = ("--evalarc-client=witness", "--evalarc-client=deep")
    bounds = ("--evalarc-max-tokens=9000000", "--evalarc-max-parallel=1", "--evalarc-cache")
    part = ("--evalarc-client=good", "--evalarc-shard=1/1", "--evalarc-results=part/results")
    sessions = [
        project.pytest(*named, *clients, *bounds, "--evalarc-keep", "--evalarc-live"),
        project.pytest(*named, "--evalarc-submission=evals/tasks/hello/solution"),
        project.pytest("evals", "--evalarc-batch=s", *part),
    ]
    project.write("broken", "")
    sessions.append(project.pytest("evals", "--evalarc-client=good", "--evalarc-batch=x"))
    (project.root / "broken").unlink()
    sessions.append(project.pytest("--evalarc-regrade=results", "--evalarc-batch=x"))
    assert [session.ret for session in sessions] == [0, 0, 0, 1, 0], sessions
    monkeypatch.chdir(project.root)
    assert main(["accept", "results/b"]) == 0
    assert main(["report", "results"]) == 0
    assert main(["init", "made"]) == 0
    return {
        *left(project.results, "results"),
        *left(project.root / "part/results", "results"),
        *(f"root/{path.relative_to(project.eval_root)}" for path in project.eval_root.rglob("*")),
        *left(project.cache_home / "pytest-evalarc" / "gradings", "cache"),
        *left(project.root / "evals", "evals"),
        *(path.name for path in project.root.glob("*.html")),
        *seen_meanwhile(project),
    }


@pytest.mark.slow
@needs_bwrap
def test_every_file_that_a_run_leaves_is_on_the_page_and_the_other_way_round(
    everything: set[str],
) -> None:
    """A file that no page names is a secret or waste, and one that is not there a promise."""
    names = listed()
    mine = re.compile(r"evals/(?:tasks/hello|plugins)/")
    folders = {str(parent) for path in everything for parent in Path(path).parents}
    paths = {path for path in everything - folders if not mine.match(path)}

    unnamed = {path for path in paths if not any(it.fullmatch(path) for it in names.values())}
    absent = {name for name, it in names.items() if not any(map(it.fullmatch, everything))}

    assert unnamed == set()
    assert absent - SOMETIMES == OF_OTHER_PROGRAMS
