"""The entry point: options, and nothing else until there are evals to look at."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc import hookspecs
from pytest_evalarc.plugin.options import OPTIONS, Options, add_options

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession

DEFAULT_TASKS = "evals/tasks"
PACKS = "pytest_evalarc.packs"
SHIPPED_TASKS = Path(__file__).parent.parent / "packs" / "tasks"
PATHS = ("DIR", "PATH", "RESULTS", "FILE")
NEED_TASKS = (
    *("tasks", "task", "tag", "client", "trials", "check-tasks"),
    *("submission", "regrade", "gate", "html"),
)
MARKERS = (
    "evalarc_validate: the validation of a task",
    "evalarc_audit: a control of a task's audit",
    "evalarc_trial: everything below a trial",
    "evalarc_check: a hidden check of a trial or of a candidate",
    "evalarc_expectation: an expectation of a trial",
    "evalarc_task(*names): the tasks that an ordinary test looks at; globs allowed",
    "evalarc_configuration(*names): the configurations whose trials an ordinary test looks at",
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our options and extension points."""
    add_options(parser)
    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin that works, when there is a folder of tasks or an option asks for one."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    tasks = _tasks_folder(config)
    if tasks is None:
        return
    _refuse_other_root(config)
    from pytest_evalarc.plugin import fixtures
    from pytest_evalarc.plugin.active import Active

    shipped = _shipped_tasks(config)
    config.args = [shipped.get(word, word) for word in config.args]
    config.pluginmanager.register(Active(config, tasks), "evalarc-active")
    # A module of plain functions: fixtures that are methods of an instance are deprecated.
    config.pluginmanager.register(fixtures, "evalarc-fixtures")


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Start no more workers for `-n auto` than they have work, where only evals run.

    It stands here because it is called before anything is configured.
    """
    workers = yield
    tasks = _tasks_folder(config)
    if tasks is None:
        return workers
    from pytest_evalarc.plugin.selection import most_groups

    return min(workers, most_groups(config, tasks, Options(config)) or workers)


def _tasks_folder(config: pytest.Config) -> Path | None:
    """Return the folder of tasks, or None when there is none and nobody asked for it."""
    options = Options(config)
    if _shipped_tasks(config) and not options.text("tasks"):
        return SHIPPED_TASKS
    folder = options.path("tasks", config.rootpath / DEFAULT_TASKS)
    if os.path.isdir(folder):  # noqa: PTH112 - a Path costs more, and this is every start-up.
        return Path(os.path.normpath(folder))
    for name in NEED_TASKS:
        if options.on_command_line(name) is not None or (name == "tasks" and options.text(name)):
            raise pytest.UsageError(
                f"--evalarc-{name}: there is no folder of tasks at {folder}; "
                + (
                    _misread(config)
                    or "`pytest-evalarc init` makes one; or name another with --evalarc-tasks"
                )
            )
    return None


def _shipped_tasks(config: pytest.Config) -> dict[str, str]:
    """Return the tasks that ship by the arguments of `--pyargs` that name their packs.

    `pytest_evalarc.packs` is all of them, and `pytest_evalarc.packs.durable_kv` is one.
    """
    if not config.option.pyargs:
        return {}
    named = [word for word in config.args if f"{word}.".startswith(f"{PACKS}.")]
    return {word: str(SHIPPED_TASKS / word[len(PACKS) + 1 :].replace("_", "-")) for word in named}


def _refuse_other_root(config: pytest.Config) -> None:
    """Refuse to work on another project, whose tasks may even have the same names.

    Raises:
        pytest.UsageError: A folder of an option led pytest there.
    """
    started = config.invocation_params.dir
    if config.rootpath in (started, *started.parents) or config.option.rootdir:
        return
    if hint := _misread(config):
        raise pytest.UsageError(f"pytest took {config.rootpath} for the project's root; {hint}")


def _misread(config: pytest.Config) -> str | None:
    """Return what to write instead of a folder that pytest took for one of tests.

    Before plugins are loaded it knows no option of theirs, and looks for its root at every word
    that is a path.
    """
    flags = {option.flag for option in OPTIONS if option.metavar in PATHS}
    words = [str(word) for word in config.invocation_params.args]
    for flag, word in itertools.pairwise(words):
        if flag in flags and Path(word).exists():
            return f"write {flag}={word}, or pytest looks for its root there"
    return None


def active_session(config: pytest.Config) -> EvalSession | None:
    """Return what this process holds of the evals; None when there are none."""
    active = config.pluginmanager.get_plugin("evalarc-active")
    return active.evals() if active is not None else None
