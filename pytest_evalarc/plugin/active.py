"""The hooks that work once there is a folder of tasks; what is heavy comes on first use."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.plugin.options import Options
from pytest_evalarc.plugin.selection import selected_tasks
from pytest_evalarc.plugin.signals import Interrupts

if TYPE_CHECKING:
    from pytest_evalarc.plugin.gating import Gating
    from pytest_evalarc.plugin.home import Home
    from pytest_evalarc.plugin.hosts import Hosts
    from pytest_evalarc.plugin.live import Live
    from pytest_evalarc.plugin.session import EvalSession
    from pytest_evalarc.plugin.sharding import Share
    from pytest_evalarc.reporting.batch import Documents


class Active:
    """The plugin of a process that may have evals to collect."""

    def __init__(self, config: pytest.Config, tasks: Path) -> None:
        """Take the folder of tasks, and let selected tasks take the place of `testpaths`."""
        self.config = config
        self.tasks = tasks
        self.options = Options(config)
        self._collected: Sequence[pytest.Item] = ()
        self._interrupts = Interrupts()
        self._session: EvalSession | None = None
        self._gating: Gating | None = None
        self._live: Live | None = None
        self._share: Share | None = None
        self._are_others_alone = False
        """Whether all that was selected belongs to other shards, here or in any worker."""
        self._hosts: Hosts | None = None
        selected = selected_tasks(tasks, self.options)
        if selected is None and self.options.on_command_line("regrade"):
            from pytest_evalarc.plugin.regrading import regraded_tasks

            selected = regraded_tasks(tasks, self.options)
        if selected is not None and config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = [str(path) for path in selected]
        self._look_for_hosts()

    def _look_for_hosts(self) -> None:
        """Take part in the work of other hosts, where `--tx` names any."""
        specs = self.config.getoption("tx", ())
        if _is_worker(self.config) or all(str(spec).endswith("popen") for spec in specs):
            return
        if self._is_among_arguments() or self.options.are_trials_asked_for():
            from pytest_evalarc.plugin.hosts import Hosts, has_other_hosts

            if has_other_hosts(self.config):
                self._hosts = Hosts(self.config, self.evals)
                self.config.pluginmanager.register(self._hosts, "evalarc-hosts")

    def evals(self) -> EvalSession:
        """Return what this process holds of the evals; made when it is first asked for.

        No property: older versions of pytest look at every attribute of a plugin when it is
        registered, and this one imports all that is heavy.
        """
        if self._session is None:
            from pytest_evalarc.plugin.session import EvalSession

            self._session = EvalSession.of(self.config, self.tasks, batch=self._batch)
            if "evalarc_home" in getattr(self.config, "workerinput", {}):
                self._session.home = self._way_home(self._session)
        return self._session

    def _way_home(self, evals: EvalSession) -> Home | None:
        """Return the way to the controller's results; None where this worker sees them itself."""
        from pytest_evalarc.plugin.home import INPUT, Home, shares_results

        channel, token = self.config.workerinput[INPUT]  # type: ignore[attr-defined]
        results = evals.request.results
        return None if shares_results(results, token) else Home(channel, results)

    @cached_property
    def _batch(self) -> str:
        """The batch's name: the controller's, the user's, or one of this second."""
        told: str | None = getattr(self.config, "workerinput", {}).get("evalarc_batch")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return told or self.options.text("batch") or f"{stamp}-{os.urandom(2).hex()}"

    # Collection.

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Refuse what is wrong in options and node ids, in one sentence and before all else.

        Found during collection it would be told as a broken file, and by workers as their crash.
        """
        if _is_worker(self.config):
            return
        if self._may_run():
            _load_conftests(session, self.tasks)
            self._check_request()
            if self.options.was_given("gate"):
                from pytest_evalarc.plugin.gating import Gating

                self._gating = Gating.of(self.options)

    def _may_run(self) -> bool:
        """Whether evals are asked for at all, so that it is worth looking at what is asked."""
        return self.options.is_any_on_command_line() or self._is_among_arguments()

    def _check_request(self) -> None:
        from pytest_evalarc.errors import UsageError
        from pytest_evalarc.plugin.nodeids import check_node_ids
        from pytest_evalarc.plugin.sharding import hold_shard

        try:
            self.evals().check_request()
            check_node_ids(self.evals())
            if not self.config.option.collectonly:
                hold_shard(self.evals())
        except (UsageError, DocumentError) as error:
            raise pytest.UsageError(str(error)) from error

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> Any:
        """Collect a task's folder as one task, so that pytest stays out of what is in it."""
        # A link that leads nowhere is a broken task, and would else be none without a word.
        if path.parent != self.tasks or not os.path.lexists(path / "task.toml"):
            return None
        from pytest_evalarc.plugin.nodes import TaskDir

        return TaskDir.from_parent(parent, path=path)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Any:
        """Collect a task file."""
        if file_path.name != "task.toml" or file_path.parent.parent != self.tasks:
            return None
        from pytest_evalarc.plugin.nodes import TaskFile

        return TaskFile.from_parent(parent, path=file_path)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Keep pytest out of plugins, fixtures and results: what is in them is no test."""
        beside = self.tasks.parent
        own = collection_path.parent == beside and collection_path.name in ("plugins", "fixtures")
        if own and self.tasks.name == "tasks":
            return True
        return True if collection_path == self._results else None

    @cached_property
    def _results(self) -> Path:
        return self.options.path("results", self.config.rootpath / "results")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give an ordinary test that takes a trial each of the trials asked for."""
        if "evalarc_trial" in metafunc.fixturenames or "evalarc_task" in metafunc.fixturenames:
            from pytest_evalarc.plugin.expectations import parametrise

            parametrise(metafunc, self.tasks, self.options, self.evals)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Bring trials into the plan's order, and leave out what other shards run.

        Last of all: whatever has shuffled them before, and whatever was deselected by then is
        part of no shard's plan.
        """
        if self._session is None:
            return
        from pytest_evalarc.plugin.nodes import sort_trials

        sort_trials(items)
        if self._session.request.shard is not None:
            from pytest_evalarc.plugin.sharding import share_of

            share = share_of(items, self._session, self._session.request.shard)
            self._share = share
            self._are_others_alone = bool(share.others) and not share.own
            items[:] = share.own
            self.config.hook.pytest_deselected(items=share.others)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what `--collect-only` is about to list, and tell a controller what this host runs.

        First, as the controller compares it when it hears what was collected.
        """
        if self.config.option.collectonly:
            self._collected = tuple(session.items)
        if "evalarc_home" in getattr(self.config, "workerinput", {}):
            from pytest_evalarc.plugin.facts import facts_of
            from pytest_evalarc.plugin.home import INPUT, tell_facts

            channel, _ = self.config.workerinput[INPUT]  # type: ignore[attr-defined]
            tell_facts(channel, facts_of(self.evals(), self.evals().read_tasks))

    # Running.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Treat SIGTERM like Ctrl-C from now on, to the end of the session."""
        if session.config.option.collectonly:
            return
        self._interrupts.take()
        if self._session is not None:
            # What only runs is imported now, which no item's time shall hold.
            runs = self._session.runs
            if self._share is not None:
                runs.keep_share(self._share)
            if self.options.flag("live") and not _is_worker(session.config):
                self._show_live(self._session)

    def _show_live(self, evals: EvalSession) -> None:
        from pytest_evalarc.plugin.live import Live

        self._live = Live.on_terminal(self.config, evals.folders)
        if self._live is not None:
            self.config.pluginmanager.register(self._live, "evalarc-live")
            self._live.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """See which item begins: what comes next may begin beside what it waits for."""
        if self._session is not None:
            self._session.runs.controls.look(item, nextitem)

    def pytest_unconfigure(self) -> None:
        """Give the signals back."""
        self._interrupts.give_back()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give an eval's report its own word."""
        report = yield
        if self._session is not None:
            from pytest_evalarc.plugin.reports import describe, mark, strike

            strike(report, item)
            mark(report, item, call, strict=self.options.flag("strict"))
            describe(report, item)
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
        if self._session is None:
            return None
        return self._session.timeouts.start(item, settings)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> bool | None:
        """Take that request back."""
        return self._session.timeouts.stop(item) if self._session is not None else None

    # Many processes.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which batch this is."""
        node.workerinput["evalarc_batch"] = self._batch
        if self.options.was_given("regrade"):
            node.workerinput["evalarc_regrade"] = self.evals().regrade_number

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear from a worker whether all that was selected belongs to other shards."""
        told = getattr(node, "workeroutput", {})
        self._are_others_alone |= told.get("evalarc_others_alone", False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Keep what belongs to one trial on one worker; correctness never rests on it."""
        has_evals = self._is_among_arguments() or self.options.are_trials_asked_for()
        if config.getoption("dist", "no") == "each" or not has_evals:
            return None
        from pytest_evalarc.plugin.scheduling import Known, TrialScheduling

        return TrialScheduling(config, log, lambda: Known.of(self.evals()))

    def _is_among_arguments(self) -> bool:
        """Whether the tasks, or what they are in, are among what is to be collected."""
        evals = self.tasks.parent
        for argument in self.config.args:
            path = self.options.argument_path(argument)
            if path == evals or evals in path.parents or path in evals.parents:
                return True
        return False

    # The end.

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Aggregate what is on disk, whoever wrote it, and remove what was only for working."""
        if self._live is not None:
            self._live.stop()
        if _is_worker(session.config):
            told = getattr(session.config, "workeroutput", {})
            told["evalarc_others_alone"] = self._are_others_alone
        elif self._are_others_alone and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # There may be more shards than rounds, and the array of jobs has not failed for it.
            session.exitstatus = pytest.ExitCode.OK
        if self._session is None or session.config.option.collectonly:
            return
        runs = self._session.runs
        runs.stop()
        if _is_worker(session.config):
            return
        if self._hosts is not None:
            self._hosts.stop()
        runs.finish()
        if self.options.was_given("html"):
            from pytest_evalarc.plugin.page import with_page

            file = self.options.path("html", Path())
            runs.documents = with_page(runs.documents, self._session, file)
        # The item that tells it may have been deselected.
        if runs.is_broken and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._gating is not None:
            self._decide_gates(session, self._gating)

    def _decide_gates(self, session: pytest.Session, gating: Gating) -> None:
        """Ask every document, and fail the run that does not hold what it must."""
        from pytest_evalarc.plugin.junit import add_gates

        gating.decide(self.evals().runs.documents, root=self.config.rootpath)
        passing = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if gating.is_broken and session.exitstatus in passing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        add_gates(self.config, gating.decisions)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what the batch adds up to, or what it would be."""
        if self._session is None:
            return
        from pytest_evalarc.plugin.terminal import show_plan, summarise

        if self.config.option.collectonly:
            show_plan(terminalreporter, self._collected)
        else:
            summarise(terminalreporter, self._session.runs.documents)
            if self._gating is not None:
                from pytest_evalarc.plugin.gating import show_gates

                show_gates(terminalreporter, self._gating.decisions)
            _tell_github(terminalreporter, self._session.runs.documents)

    def pytest_report_header(self) -> list[str]:
        """Name the folder of tasks, and tell what so many trials can show before they are run."""
        lines = [f"evalarc: tasks in {_shown(self.tasks, self.config.rootpath)}"]
        if self._session is not None and self.options.are_trials_asked_for():
            from pytest_evalarc.plugin.power import power_of_session
            from pytest_evalarc.plugin.tables import wrapped

            for sentence in power_of_session(self._session):
                lines += wrapped(f"evalarc: {sentence}")
        if self.options.was_given("shard") and self._may_run():
            from pytest_evalarc.plugin.sharding import shard_line

            evals = self.evals()
            if evals.request.shard is not None:
                lines.append(f"evalarc: {shard_line(evals, evals.request.shard)}")
        return lines


def _tell_github(reporter: pytest.TerminalReporter, documents: Documents) -> None:
    """Add the summary of a step to a run on GitHub Actions, and annotate what needs a person."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from pytest_evalarc.reporting.exports.github import publish

    try:
        for line in publish(documents, os.environ):
            reporter.write_line(line)
    except DocumentError as error:
        reporter.write_line(str(error), red=True)


class _Folder(pytest.Directory):
    """A folder that is looked at for its conftest alone."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Return nothing."""
        return []


def _load_conftests(session: pytest.Session, tasks: Path) -> None:
    """Load the conftests on the way down to the tasks, as collecting them would.

    They may offer clients, and a controller of workers never collects.

    Raises:
        pytest.UsageError: One of them cannot be loaded.
    """
    root = session.config.rootpath
    way = [folder for folder in (tasks, *tasks.parents) if root in folder.parents]
    for folder in reversed(way):
        node = _Folder.from_parent(session, path=folder)
        report = session.ihook.pytest_make_collect_report(collector=node)
        if report.failed:
            raise pytest.UsageError(f"{folder / 'conftest.py'} fails:\n{report.longreprtext}")


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
