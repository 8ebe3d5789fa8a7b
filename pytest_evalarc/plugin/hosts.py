"""The controller's side of workers on other hosts: who they are, what they bring, who is lost.

Registered where `--tx` names anything but plain local workers. Pytest-xdist starts the workers and
hands out items; what is here is the way of results between machines that share no file system.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import execnet
import pytest

from pytest_evalarc.errors import EvalArcError, UsageError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.lock import GivenUp, locked
from pytest_evalarc.files.parcel import Closing, Content, Opening
from pytest_evalarc.files.strict import as_model, read_model
from pytest_evalarc.files.text import printable
from pytest_evalarc.plugin.facts import facts_of, first_difference, tasks_in
from pytest_evalarc.plugin.home import ANSWERED, INPUT
from pytest_evalarc.runs.intake import Answer, Busy, Done, Intake, Keeper, Queued, Run, Skipped
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.resume import require_same
from pytest_evalarc.runs.slots import Place

if TYPE_CHECKING:
    from pytest_evalarc.model.planned import PlannedTrial
    from pytest_evalarc.model.trial import PlanDoc
    from pytest_evalarc.plugin.session import EvalSession
    from pytest_evalarc.runs.slots import Waiting

NOT_OVER_HOSTS = ("submission", "regrade")
"""Options whose work needs files that only this host has."""
_CUT = (EOFError, OSError, execnet.HostNotFound, execnet.RemoteError)
"""What execnet raises when a host cannot be reached, or its Python not be started."""


def has_other_hosts(config: pytest.Config) -> bool:
    """Whether `--tx` names workers that may not work in this process's folder."""
    if config.getoption("dist", "no") == "no" or config.getoption("collectonly", False):
        return False
    return any(is_elsewhere(execnet.XSpec(_single(spec))) for spec in config.getoption("tx"))


def is_elsewhere(spec: Any) -> bool:
    """Whether a worker of this specification may have another folder of results than we."""
    return not spec.popen or bool(spec.chdir)


def host_name(spec: Any) -> str:
    """Return what a worker's host is called: the host of its specification, or the worker's id."""
    words = str(spec.ssh or spec.vagrant_ssh or "").split()
    if words:
        return words[-1]
    return str(spec.socket or spec.id or "local")


def _single(spec: str) -> str:
    """Return a specification without the `N*` that stands for several workers."""
    count, star, rest = spec.partition("*")
    return rest if star and count.isdigit() else spec


class Link:
    """One worker's messages: what it claims and brings, and what it is told."""

    def __init__(self, channel: Any, host: str, intake: Intake) -> None:
        """Listen to a worker; the channel is open as long as its gateway."""
        self.host = host
        self.intake = intake
        self.facts: Mapping[str, str] | None = None
        self._problems: dict[str, str] = {}
        self._channel = channel
        channel.setcallback(self.take, endmarker=None)

    def take(self, message: Any) -> None:
        """Answer a message. Called in the thread that receives all that this worker sends.

        While a chunk is written the worker waits, so no more than one is ever held in memory.
        """
        if message is None:
            return
        match message:
            case (int(number), str(verb), str(name), detail):
                answer = self._guarded(verb, name, detail)
                if verb in ANSWERED:
                    # A worker that is gone needs no answer.
                    with contextlib.suppress(OSError):
                        self._channel.send((number, *answer))

    def _guarded(self, verb: str, name: str, detail: Any) -> tuple[str, Any]:
        try:
            return self._answer(verb, name, detail)
        except (EvalArcError, OSError, ValueError, TypeError) as error:
            # The first problem is the cause; the parts that still come can only be its effects.
            problem = self._problems.setdefault(name, str(error))
            if verb in ("open", "data", "close"):
                self.intake.refuse(name, problem)
            if verb in ANSWERED:
                del self._problems[name]
            return "refused", problem

    def _answer(self, verb: str, name: str, detail: Any) -> tuple[str, Any]:
        match verb, detail:
            case "facts", dict():
                self.facts = {str(key): str(value) for key, value in detail.items()}
            case "plan", bytes():
                self.intake.keep_plan(name, detail)
            case "claim", None:
                return _answer_to_claim(self.intake.claim(name))
            case "open", int():
                self.intake.begin(name, Opening(detail))
            case "data", bytes():
                self.intake.take(name, Content(detail))
            case "close", str():
                self.intake.finish(name, Closing(detail))
            case "fail", str():
                self.intake.refuse(name, detail)
            case _:
                raise UsageError(f"host {self.host}", f"says {printable(verb)!r}, which is nothing")
        return "ok", None


def _answer_to_claim(answer: Answer) -> tuple[str, Any]:
    match answer:
        case Run():
            return "run", None
        case Done(document):
            return "done", document
        case Skipped(reason):
            return "skip", reason
        case Queued():
            return "queued", None
        case Busy():
            return "busy", None


class Hosts:
    """The plugin of a controller with workers on other hosts."""

    def __init__(self, config: pytest.Config, evals: Callable[[], EvalSession]) -> None:
        """Take what returns the controller's evals."""
        self._config = config
        self._evals = evals
        self._links: dict[Any, Link] = {}
        self._losses: dict[Any, object] = {}
        self._held = contextlib.ExitStack()
        self._specs: Sequence[Any] = ()
        self._interrupt: BaseException | None = None
        self._token = f".seen-by-hosts-{secrets.token_hex(16)}"
        self._keeping = threading.Lock()
        self._plans: dict[Path, tuple[PlanDoc, Mapping[str, PlannedTrial]]] = {}
        config.add_cleanup(self.stop)

    # The start.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionstart(self) -> Generator[None, None, None]:
        """Tell in one sentence that a host cannot be reached; ssh's own words stand above it."""
        try:
            yield
        except _CUT as error:
            if not self._specs:
                raise
            host = host_name(self._specs[min(len(self._links), len(self._specs) - 1)])
            sentence = UsageError(
                f"host {host}",
                f"cannot be reached, or has no Python there ({_one_line(error)})",
                "see what ssh says above, and try its command line by hand",
            )
            raise pytest.UsageError(str(sentence)) from error

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[Any]) -> None:
        """Refuse what cannot work over hosts, hold the batch, and lay out what proves a share."""
        self._specs = [spec for spec in specs if is_elsewhere(spec)]
        evals = self._evals()
        try:
            self._require_possible(evals)
            evals.folders.make_results()
            self._hold_batch(evals)
            write_atomic(evals.request.results / self._token, b"")
        except (EvalArcError, OSError) as error:
            raise pytest.UsageError(str(error)) from error
        self._held.callback(_remove, evals.request.results / self._token)
        # Once here, and not in the threads that receive.
        evals.runs  # noqa: B018
        if not config.option.rsyncdir and not config.getini("rsyncdirs"):
            keep_arguments(config.pluginmanager.getplugin("dsession").nodemanager, Path.cwd())

    def _require_possible(self, evals: EvalSession) -> None:
        for name in NOT_OVER_HOSTS:
            if evals.options.was_given(name):
                problem = "cannot be combined with workers on other hosts"
                raise UsageError(f"--evalarc-{name}", problem, "leave --tx and -d out")
        if self._config.getoption("dist") == "each":
            problem = "would run every trial on every host, and each has one place in the results"
            raise UsageError("--dist each", problem, "give -d in its place")

    def _hold_batch(self, evals: EvalSession) -> None:
        """Keep another controller from handing out the same batch."""
        at_once = threading.Event()
        at_once.set()
        batch = evals.request.batch
        lock = evals.request.results / f".{batch}.hosts.lock"
        try:
            self._held.enter_context(locked(lock, given_up=at_once))
        except GivenUp:
            problem = f"another session hands batch {batch} out to hosts"
            raise UsageError("--evalarc-batch", problem, "wait for its end") from None
        # While it is still held: results are no place for what says nothing.
        self._held.callback(_remove, lock)

    def pytest_configure_node(self, node: Any) -> None:
        """Open a channel to a worker that may be elsewhere, and keep its loss from us."""
        if not is_elsewhere(node.gateway.spec):
            return
        evals = self._evals()
        host = host_name(node.gateway.spec)
        intake = Intake(
            results=evals.request.results,
            batch=evals.request.batch,
            keeper=self._keeper(evals, host),
            host=host,
        )
        channel = node.gateway.newchannel()
        self._links[node] = Link(channel, host, intake)
        node.workerinput[INPUT] = (channel, self._token)
        self._take_loss(node)

    def _take_loss(self, node: Any) -> None:
        """Have a lost worker counted as finished: what it was at is told and handed on by us.

        Pytest-xdist would start it again, without end, on a host that may be out of reach, and
        then break down. Its own limit of restarts ends the work of every other host as well.
        """
        put = node.putevent

        def putevent(event: tuple[str, dict[str, Any]]) -> None:
            name, facts = event
            if name == "errordown":
                self._losses[node] = facts["error"]
                node.workeroutput = {"exitstatus": 0, "shouldfail": False, "shouldstop": False}
                event = ("workerfinished", {"node": node})
            put(event)

        node.putevent = putevent

    # What hosts bring.

    def _keeper(self, evals: EvalSession, host: str) -> Keeper:
        runs = evals.runs

        def keep_plan(path: Path, document: bytes) -> None:
            with self._keeping:
                _keep_plan(evals, path, document)

        def line_up(path: Path) -> Waiting:
            with self._keeping:
                plan, entry = self._planned(path.parent)
                return runs.slots.line_up(plan.client, Place.of(plan.task.name, entry))

        def admit(path: Path) -> str | None:
            with self._keeping:
                return runs.admit(path.parent, *self._planned(path.parent))

        def announced(path: Path) -> contextlib.AbstractContextManager[None]:
            with self._keeping:
                return runs.announced(*self._planned(path.parent), host=host)

        def settle(path: Path, cut_off_by: BaseException | None) -> None:
            with self._keeping:
                runs.settle(path, cut_off_by)

        return Keeper(
            keep_plan=keep_plan, line_up=line_up, admit=admit, announced=announced, settle=settle
        )

    def _planned(self, folder: Path) -> tuple[PlanDoc, PlannedTrial]:
        """Return the plan that the trial of a result folder is of, and its place there.

        A plan is read once: every trial asks for it, it may be of ten thousand, and it never
        changes once it is kept.

        Raises:
            UsageError: The plan has no such trial.
            DocumentError: The plan cannot be read.
        """
        from pytest_evalarc.model.trial import PlanDoc

        path = folder.parent / "plan.json"
        if path not in self._plans:
            plan = read_model(path, PlanDoc)
            self._plans[path] = plan, {entry.folder: entry for entry in plan.trials}
        plan, entries = self._plans[path]
        if folder.name not in entries:
            raise UsageError(str(folder), "is no trial of the plan")
        return plan, entries[folder.name]

    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Refuse a host that would run something else than this one, before the first trial."""
        link = self._links.get(node)
        if link is None:
            return
        if link.facts is None:
            problem = "does not say what it runs: it has another pytest-evalarc, or no task"
            sentence = UsageError(f"host {link.host}", problem, "make it the same as here")
            raise pytest.UsageError(str(sentence))
        told = [each for each in self._links.values() if each.facts is not None]
        # A host that lacks a task would say nothing of it.
        tasks = {name for each in told for name in tasks_in(each.facts or {})}
        own = facts_of(self._evals(), tasks)
        for each in told:
            difference = first_difference(own, each.facts or {}, host=each.host)
            if difference is not None:
                raise pytest.UsageError(str(difference))

    # The end of a host.

    def pytest_testnodedown(self, node: Any) -> None:
        """Count what a lost host was at, and hand its other items to those that are left.

        Raises:
            pytest.UsageError: It was lost before the first trial.
        """
        if node not in self._losses:
            return
        link, error = self._links[node], self._losses.pop(node)
        session = self._config.pluginmanager.getplugin("dsession")
        scheduler = session.sched
        if scheduler.collection is None:
            problem = f"its worker ended before the first trial ({_one_line(error)})"
            raise pytest.UsageError(str(UsageError(f"host {link.host}", problem)))
        link.intake.lose()
        crashed = scheduler.remove_node(node) if node in scheduler.nodes else None
        self._tell(node, link.host, crashed, error)
        if scheduler.has_pending and all(other.shutting_down for other in scheduler.nodes):
            session.shouldstop = (
                f"host {link.host} was lost and no other can take what was left to it; "
                f"go on with --evalarc-batch={self._evals().request.batch}"
            )

    def _tell(self, node: Any, host: str, crashed: str | None, error: object) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("")
            reporter.write_line(f"host {host} was lost ({_one_line(error)})", red=True)
        if crashed is None:
            return
        path = crashed.partition("::")[0]
        report = pytest.TestReport(
            nodeid=crashed,
            location=(path, None, path),
            keywords={},
            outcome="failed",
            longrepr=f"host {host} was lost while it ran {crashed}",
            when="???",  # type: ignore[arg-type]  # as xdist says of a worker that crashed.
        )
        report.node = node  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Know that it was the user, or a limit of failures, that ended what is under way."""
        self._interrupt = excinfo.value

    def stop(self) -> None:
        """Take nothing more from any host, and let the batch go; a second call does nothing."""
        for link in self._links.values():
            link.intake.lose(self._interrupt)
        self._held.close()


class _Kept(type(Path())):  # type: ignore[misc]  # the class that paths have on this platform.
    """A root that pytest-xdist maps arguments to, whose name there is given."""

    name = "."


class _Top(type(Path())):  # type: ignore[misc]
    """The top of every file system: what is below it is named as it is here."""

    name = ""


def keep_arguments(manager: Any, start: Path) -> None:
    """Have pytest-xdist leave a session's arguments as they are, and copy nothing to the hosts.

    It takes every path among the arguments for one in a copy that it made, by a means that it is
    about to give up, and ends with a traceback at all others. Here each host has a checkout of
    its own: a relative path is the same there, and so is one below the folder that pytest was
    started in.

    Args:
        manager: The manager of its nodes, before the first of them is started.
        start: The folder that pytest was started in.
    """
    manager.roots = [_Kept(start), _Kept(), _Top(PurePath(start).anchor)]
    manager.rsync_roots = lambda gateway: None  # noqa: ARG005 - called with each host's.


def _keep_plan(evals: EvalSession, path: Path, document: bytes) -> None:
    """Keep the plan that a host brings, or see that the batch began with the same."""
    from pytest_evalarc.model.audit import AuditPlan
    from pytest_evalarc.model.trial import PlanDoc

    evals.folders.open_results(path.parent)
    model: type[AuditPlan] | type[PlanDoc]
    model = AuditPlan if path.parent.parent.name == "audit" else PlanDoc
    plan = as_model(document, model, where="plan.json")
    require_same(once(path, model, lambda: plan), plan)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _one_line(error: object) -> str:
    """Return the last line of what another process died of."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return printable(lines[-1].strip(), limit=400)
