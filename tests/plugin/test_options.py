"""Every option on the command line and in every kind of ini file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_evalarc.plugin.entry import active_session
from pytest_evalarc.plugin.options import OPTIONS, Option, Options
from pytest_evalarc.plugin.session import EvalSession
from pytest_evalarc.runs.folders import gradings_folder
from tests.plugin.project import TASK_ID, Project


class Set(NamedTuple):
    """A value of an option, and what must be seen of it."""

    value: str | bool | list[str]
    seen: Callable[[EvalSession, Path], Any]
    expected: Any


SETTINGS = {
    "tasks": Set("other", lambda evals, root: evals.request.tasks.relative_to(root), Path("other")),
    "task": Set(
        ["a", "b"], lambda evals, _: list(map(evals.has_wanted_name, "abc")), [True, True, False]
    ),
    "tag": Set(["t", "u"], lambda evals, _: evals.options.texts("tag"), ["t", "u"]),
    "check-tasks": Set(True, lambda evals, _: evals.options.flag("check-tasks"), True),
    "client": Set(
        ["nop", "oracle"],
        lambda evals, _: [client.label for client in evals.request.clients],
        ["nop", "oracle"],
    ),
    "model": Set("m-1", lambda evals, _: evals._label("nop").model, "m-1"),
    "model-setting": Set(
        ["t=0.5", "u=v"], lambda evals, _: evals._label("nop").settings, {"t": 0.5, "u": "v"}
    ),
    "trials": Set("3", lambda evals, _: evals.request.trials, 3),
    "configuration": Set("with", lambda evals, _: evals.request.configuration, "with"),
    "treatment": Set("skills", lambda evals, _: evals.request.treatment, "skills"),
    "max-tokens": Set("5000", lambda evals, _: evals.request.max_tokens, 5000),
    "max-cost-usd": Set("2.50", lambda evals, _: evals.request.max_cost_usd, 2.5),
    "max-parallel": Set(
        "nop=2,3",
        lambda evals, _: [evals.request.max_parallel.of(label) for label in ("nop", "oracle")],
        [2, 3],
    ),
    "batch": Set("night", lambda evals, _: evals.folders.batch, "night"),
    "shard": Set("2/4", lambda evals, _: str(evals.request.shard), "2/4"),
    "root": Set("r", lambda evals, root: evals.request.eval_root.relative_to(root), Path("r")),
    "results": Set("s", lambda evals, root: evals.folders.results.relative_to(root), Path("s")),
    "keep": Set(True, lambda evals, _: evals.request.keep, True),
    "sandbox": Set("bwrap", lambda evals, _: evals.request.sandbox, "bwrap"),
    "image": Set("python:3", lambda evals, _: evals.request.image, "python:3"),
    "seeds": Set(["3", "5"], lambda evals, _: evals.request.seeds, (3, 5)),
    "audit": Set("fast", lambda evals, _: evals.request.audit, "fast"),
    "submission": Set(
        "mine", lambda evals, root: evals.work.source.relative_to(root), Path("mine")
    ),
    "regrade": Set(
        "old",
        lambda evals, root: evals.options.path("regrade", root).relative_to(root),
        Path("old"),
    ),
    "deny-read": Set(
        ["x", "/y"],
        lambda evals, root: evals.request.deny_read == (root / "x", Path("/y")),
        True,
    ),
    "exploratory": Set(True, lambda evals, _: evals.request.exploratory, True),
    "symposium": Set(
        "sh",
        lambda evals, _: evals.request.symposium,
        Path(os.path.realpath(shutil.which("sh") or "")),
    ),
    "trust-local": Set(True, lambda evals, _: evals.request.trust_local, True),
    "gate": Set(
        ["success_rate>=0.8", "resolved"],
        lambda evals, _: evals.options.texts("gate"),
        ["success_rate>=0.8", "resolved"],
    ),
    "html": Set(
        "page.html",
        lambda evals, root: evals.options.path("html", root).relative_to(root),
        Path("page.html"),
    ),
    "cache": Set(
        True,
        lambda evals, _: evals.request.cache == Path(os.path.realpath(gradings_folder())),
        True,
    ),
    "live": Set(True, lambda evals, _: evals.options.flag("live"), True),
    "strict": Set(True, lambda evals, _: evals.options.flag("strict"), True),
}


def as_toml(option: Option, value: str | bool | list[str]) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"{option.key} = {text}\n"


def as_ini(option: Option, value: str | bool | list[str]) -> str:
    text = "".join(f"\n  {line}" for line in value) if isinstance(value, list) else str(value)
    return f"{option.key} = {text}\n"


INI_FILES = {
    "pyproject": ("pyproject.toml", "[tool.pytest.ini_options]\n", as_toml),
    "pytest.ini": ("pytest.ini", "[pytest]\n", as_ini),
    "native": ("pyproject.toml", "[tool.pytest]\n", as_toml),
}


@pytest.fixture
def configured(pytester: pytest.Pytester, alone: tuple[str, ...]) -> Callable[..., EvalSession]:
    """Return the session of a pytest configured in a folder with tasks."""

    def configure(*arguments: str) -> EvalSession:
        for folder in ("evals/tasks", "other"):
            (pytester.path / folder).mkdir(parents=True, exist_ok=True)
        evals = active_session(pytester.parseconfigure(*alone, *arguments))
        assert evals is not None
        return evals

    return configure


@pytest.mark.parametrize("file", INI_FILES)
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_has_a_twin_in_every_ini_file(
    option: Option, file: str, configured: Callable[..., EvalSession], pytester: pytest.Pytester
) -> None:
    """A project writes down once what its evals need; which file it keeps is its own matter."""
    if file == "native" and pytest.version_tuple < (9,):
        pytest.skip("[tool.pytest] came with pytest 9")
    name, head, written = INI_FILES[file]
    setting = SETTINGS[option.name]
    (pytester.path / name).write_text(head + written(option, setting.value))

    evals = configured()

    assert setting.seen(evals, pytester.path) == setting.expected


@pytest.mark.parametrize(
    "option", [option for option in OPTIONS if option.kind != "bool"], ids=lambda each: each.name
)
def test_the_command_line_wins_over_the_ini_file(
    option: Option, configured: Callable[..., EvalSession], pytester: pytest.Pytester
) -> None:
    """What is typed is meant now."""
    setting = SETTINGS[option.name]
    (pytester.path / "evals/tasks").mkdir(parents=True)
    if option.name in ("task", "tag"):
        for task in ("a", "b", "t", "u"):
            folder = pytester.path / "evals/tasks" / task
            folder.mkdir()
            (folder / "task.toml").write_text("tags = ['t', 'u']")
    other = {"configuration": "without", "audit": "full"}.get(option.name, "nonsense")
    (pytester.path / "pytest.ini").write_text(f"[pytest]\n{option.key} = {other}\n")
    values = setting.value if isinstance(setting.value, list) else [str(setting.value)]

    evals = configured(*(word for value in values for word in (option.flag, value)))

    assert setting.seen(evals, pytester.path) == setting.expected


def test_relative_paths_start_where_they_were_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typed path is relative to the shell's folder, one in an ini file to that file's."""
    pytester.makeini("[pytest]\nevalarc_results = kept\nevalarc_deny_read = secret\n")
    below = pytester.mkdir("below")
    monkeypatch.chdir(below)

    options = Options(pytester.parseconfig("--rootdir", "..", "--evalarc-root", "runs"))

    assert options.path("root", Path()) == below / "runs"
    assert options.path("results", Path()) == pytester.path / "kept"
    assert options.paths("deny-read") == [pytester.path / "secret"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--evalarc-trials", "0"], "--evalarc-trials '0': is not a number of trials"),
        (["--evalarc-trials", "²"], "--evalarc-trials '²': is not a number of trials"),
        (["--evalarc-client", "orakle"], "no client 'orakle'; nearest: oracle"),
        (["--evalarc-task", "helo"], "--evalarc-task helo: no such task; nearest: hello"),
        (["--evalarc-task", "*x*"], "--evalarc-task *x*: no such task; known: hello"),
        (["--evalarc-tag", "greeting"], "--evalarc-tag greeting: no such tag; nearest: greetings"),
        (["--evalarc-treatment", "skils"], "treatment 'skils'"),
        (["--evalarc-sandbox", "bwarp"], "sandbox 'bwarp'"),
        (["--evalarc-sandbox", "local"], "add --evalarc-trust-local"),
        (["--evalarc-max-parallel", "nopp=2"], "no client 'nopp'; nearest: nop"),
        (["--evalarc-max-parallel", "nop=0"], "0 is not a number of trials; give 1 to 100000"),
        (["--evalarc-max-parallel", "many"], "'many' is neither a number nor LABEL=NUMBER"),
        (["--evalarc-batch", "a/b"], "--evalarc-batch 'a/b': is not a name"),
        (["--evalarc-model-setting", "x"], "is not KEY=VALUE"),
        (["--evalarc-tasks", "nowhere"], "there is no folder of tasks at"),
        ([f"{TASK_ID}::orakle::with-skills"], "no client 'orakle'"),
        ([f"{TASK_ID}::audit::silnt"], "there is no 'silnt'; nearest: silent"),
        ([f"{TASK_ID}::audit::starter::x"], "there is no 'x'"),
        ([f"{TASK_ID}::nop::with"], "there is no 'with'; nearest: with-skills"),
        ([f"{TASK_ID}::nop::with-skills::trial-002"], "there is no 'trial-002'; nearest: trial-00"),
        ([f"{TASK_ID}::nop::with-skills::trial-001::sucess"], "nearest: success"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_wrong_value_ends_the_session_in_one_sentence(
    arguments: list[str], sentence: str, project: Project, pytester: pytest.Pytester
) -> None:
    """It is the user's to mend, so no traceback buries the sentence."""
    if "--evalarc-model-setting" in arguments:
        arguments = [*arguments, "--evalarc-client", "nop"]
    words = arguments if "::" in arguments[0] else [*arguments, "evals"]

    session = project.inline(pytester, *words)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert sentence in session.stderr
    assert len(session.stderr.strip().splitlines()) == 1
    assert not project.results.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["--evalarc-client", "orakle"], ["--evalarc-task", "helo"], [f"{TASK_ID}::audit::silnt"]],
    ids=["client", "task", "node-id"],
)
def test_workers_do_not_multiply_a_usage_error(project: Project, arguments: list[str]) -> None:
    """Each of them would stumble over it, and xdist calls that an internal error."""
    session = project.pytest("-n", "2", *arguments)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert len(session.stderr.strip().splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("line", ["evalarc_strict = perhaps", "evalarc_trials = many"])
def test_a_wrong_ini_value_ends_the_session_in_one_sentence(project: Project, line: str) -> None:
    """An ini file is read on every start, so what is wrong in it must be easy to find."""
    project.write("pytest.ini", f"[pytest]\n{line}\n")

    session = project.pytest("evals")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert len(session.stderr.strip().splitlines()) == 1
    assert line.rpartition(" ")[2] in session.stderr
