"""The hooks that work once there is a folder of tasks; what is heavy comes on first use."""

from __future__ import annotations

import fnmatch
import os
import signal
import threading
from collections.abc import Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evalarc.plugin.options import ASKS_FOR_TRIALS, Options

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession


class Active:
    """The plugin of a process that may have evals to collect."""

    def __init__(self, config: pytest.Config, tasks: Path) -> None:
        """Take the folder of tasks, and let named tasks take the place of `testpaths`."""
        self.config = config
        self.tasks = tasks
        self.options = Options(config)
        self._fixtures_registered = False
        self.has_session = False
        named = self.options.texts("task")
        if named:
            paths = _named_tasks(tasks, named)
            if config.args_source is not pytest.Config.ArgsSource.ARGS:
                config.args = paths

    @cached_property
    def session(self) -> EvalSession:
        """What this process holds of the evals; made at the first collection."""
        from pytest_evalarc.plugin.session import EvalSession

        self.has_session = True
        return EvalSession.of(self.config, self.tasks)

    # Collection.

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> Any:
        """Collect a task's folder as one task, so that pytest stays out of what is in it."""
        if path.parent != self.tasks or not (path / "task.toml").is_file():
            return None
        from pytest_evalarc.plugin.nodes import TaskDir

        self._register_fixtures()
        return TaskDir.from_parent(parent, path=path)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Any:
        """Collect a task file."""
        if file_path.name != "task.toml" or file_path.parent.parent != self.tasks:
            return None
        from pytest_evalarc.plugin.nodes import TaskFile

        self._register_fixtures()
        return TaskFile.from_parent(parent, path=file_path)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Keep pytest out of plugins, fixtures and results: what is in them is no test."""
        beside = self.tasks.parent
        own = collection_path.parent == beside and collection_path.name in ("plugins", "fixtures")
        return True if own and self.tasks.name == "tasks" else None

    def _register_fixtures(self) -> None:
        # A module of plain functions: fixtures that are methods of an instance are deprecated.
        from pytest_evalarc.plugin import fixtures

        if not self._fixtures_registered:
            self._fixtures_registered = True
            self.config.pluginmanager.register(fixtures, "evalarc-fixtures")
            self.config.stash[fixtures.SESSION] = self.session

    # Running.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Treat SIGTERM like Ctrl-C, so that a cancelled job ends its trials too."""
        if session.config.option.collectonly or not _can_handle_signals():
            return (yield)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt("SIGTERM")

        previous = signal.signal(signal.SIGTERM, interrupt)
        try:
            return (yield)
        finally:
            signal.signal(signal.SIGTERM, previous)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give an eval's report its own word."""
        report = yield
        if self.has_session:
            from pytest_evalarc.plugin.reports import mark

            mark(report, item, call, strict=self.options.flag("strict"))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Say an eval's own word on the terminal."""
        facts = getattr(report, "evalarc", None)
        if facts is None or report.when != "call":
            return None
        from pytest_evalarc.plugin.reports import status

        return status(report, facts)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """Turn pytest-timeout into a request to end the trial, which then is counted."""
        if not self.has_session:
            return None
        return self.session.set_timer(item, settings.timeout)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> bool | None:
        """Take that request back."""
        return self.session.cancel_timer(item) if self.has_session else None

    # Many processes.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which batch this is."""
        node.workerinput["evalarc"] = self.session.for_workers()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep what belongs to one trial on one worker; correctness never rests on it."""
        asked = any(self.options.was_given(name) for name in ASKS_FOR_TRIALS)
        if config.getoption("dist", "no") == "each" or not (asked or self._is_among_arguments()):
            return None
        from pytest_evalarc.plugin.scheduling import TrialScheduling

        return TrialScheduling(config, log)

    def _is_among_arguments(self) -> bool:
        evals = self.tasks.parent
        for argument in self.config.args:
            path = Path(
                os.path.normpath(self.config.invocation_params.dir / argument.split("::")[0])
            )
            if path == evals or evals in path.parents or path in evals.parents:
                return True
        return False

    # The end.

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Aggregate what is on disk, whoever wrote it, and remove what was only for working."""
        if _is_worker(session.config) or session.config.option.collectonly or not self.has_session:
            return
        self.session.finish()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what the batch adds up to."""
        if self.has_session:
            from pytest_evalarc.plugin.terminal import summarise

            summarise(terminalreporter, self.session)

    def pytest_report_header(self) -> str | None:
        """Name the folder of tasks."""
        return f"evalarc: tasks in {_shown(self.tasks, self.config.rootpath)}"

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        """With `--collect-only`, end with the plan."""
        if not self.config.option.collectonly or not self.has_session:
            return []
        return self.session.plan_lines(items)


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _can_handle_signals() -> bool:
    on_main_thread = threading.current_thread() is threading.main_thread()
    return on_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _named_tasks(tasks: Path, patterns: Sequence[str]) -> list[str]:
    """Return the task files that names or globs select, in order of their names.

    Raises:
        pytest.UsageError: One selects nothing.
    """
    known = sorted(path.parent.name for path in tasks.glob("*/task.toml"))
    chosen: list[str] = []
    for pattern in patterns:
        found = fnmatch.filter(known, pattern)
        if not found:
            from pytest_evalarc.errors import nearest

            hint = nearest(pattern, tuple(known))
            raise pytest.UsageError(f"--evalarc-task {pattern}: no such task in {tasks}; {hint}")
        chosen += [name for name in found if name not in chosen]
    return [str(tasks / name / "task.toml") for name in sorted(chosen)]
