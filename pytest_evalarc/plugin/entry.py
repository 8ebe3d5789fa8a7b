"""The entry point: options, and nothing else until there are evals to look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evalarc import hookspecs
from pytest_evalarc.plugin.options import Options, add_options

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession

DEFAULT_TASKS = "evals/tasks"
MARKERS = (
    "evalarc_validate: the validation of a task",
    "evalarc_audit: a control of a task's audit",
    "evalarc_trial: everything below a trial",
    "evalarc_check: a hidden check of a trial",
    "evalarc_expectation: an expectation of a trial",
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
    from pytest_evalarc.plugin.active import Active

    config.pluginmanager.register(Active(config, tasks), "evalarc-active")


def _tasks_folder(config: pytest.Config) -> Path | None:
    """Return the folder of tasks, or None when there is none and nobody asked for it."""
    options = Options(config)
    folder = options.path("tasks", config.rootpath / DEFAULT_TASKS)
    if os.path.isdir(folder):  # noqa: PTH112 - a Path costs more, and this is every start-up.
        return Path(os.path.normpath(folder))
    for name in ("tasks", "task", "tag", "client", "trials", "check-tasks"):
        if options.on_command_line(name) is not None or (name == "tasks" and options.text(name)):
            raise pytest.UsageError(
                f"--evalarc-{name}: there is no folder of tasks at {folder}; "
                "make it, or name another with --evalarc-tasks"
            )
    return None


def active_session(config: pytest.Config) -> EvalSession | None:
    """Return what this process holds of the evals; None when there are none."""
    active = config.pluginmanager.get_plugin("evalarc-active")
    return active.session if active is not None else None
