"""One process's controls: each graded once, and the next one while threads are idle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.grading.lab import Cancelled
from pytest_evalarc.model.audit import AuditPlan, ControlDoc
from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin.home import Home, brought
from pytest_evalarc.plugin.nodes import EvalItem
from pytest_evalarc.plugin.timeouts import TimedOut
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.control import run_control
from pytest_evalarc.runs.once import once

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession

MAY_NOT_RUN = ("skip", "skipif", "xfail")
"""Marks of items that may never ask for anything."""


class Wanted(NamedTuple):
    """A control by its task and name."""

    task: str
    control: str


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A task's audit in this process: its plan is kept, and its controls can be graded."""

    task: Task
    plan: AuditPlan
    batch: Batch
    folder: Path
    home: Home | None

    def graded(
        self,
        control: str,
        *,
        cancelled: threading.Event,
        given_up: threading.Event,
        on_last_cases: Callable[[], None],
    ) -> Grading:
        """Return the grading of one control, made if nobody has.

        Raises:
            KeyboardInterrupt: It was cancelled, or somebody else is at it and the waiting for
                that was given up.
        """
        row = self.folder / "rows" / f"{control}.json"
        produce = partial(
            run_control,
            self.task,
            control,
            self.batch,
            mode=self.plan.mode,
            anew=control == REFERENCE_REPEAT and not self._is_reference_cached,
            cancelled=cancelled,
            on_last_cases=on_last_cases,
        )
        with brought(self.home, row, given_up=given_up):
            return once(row, ControlDoc, produce, given_up=given_up).grading

    @property
    def _is_reference_cached(self) -> bool:
        """Whether this audit has its reference from the cache.

        One that was graded just now is compared with a second grading of now: whether it is flaky
        here is what the repeat is for.
        """
        row = self.folder / "rows" / f"{REFERENCE}.json"
        if self.batch.cache is None or not row.exists():
            return False
        return read_model(row, ControlDoc).grading.cached is not None


@dataclass(kw_only=True)
class _Flight:
    """A control that is graded before its item asks for it."""

    wanted: Wanted
    grading: Future[Grading]
    leaves_idle: bool = False
    """Whether so few of its cases are left that the next control could begin."""


class Ahead:
    """Begins the control after the one that is waited for, once that one leaves threads idle.

    One at the most, of the same audit, and only one that an item of this process is certain to
    ask for. Nothing rests on it: what it does is done through the same `once`, what another
    process is at is left to it, and what it could not finish is done when it is asked for.
    """

    def __init__(self, cancelled: threading.Event) -> None:
        """Take the event by which everything in this process is cancelled."""
        self._cancelled = Cancelled(cancelled)
        self._at_once = threading.Event()
        self._at_once.set()
        self._lock = threading.Lock()
        # One is waited for while the next one begins.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="control")
        self._begun: set[Wanted] = set()
        self._audit: Audit | None = None
        self._coming: Sequence[str] = ()
        self._flight: _Flight | None = None
        self._is_stopped = False

    def expect(self, audit: Audit, coming: Sequence[str]) -> None:
        """Tell which controls of an audit will be asked for, in which order."""
        with self._lock:
            self._audit, self._coming = audit, coming

    def take(self, wanted: Wanted) -> Grading | None:
        """Return a control that was begun ahead; None when it must be graded now.

        Raises:
            BaseException: Whatever went wrong with it.
        """
        with self._lock:
            self._begun.add(wanted)
            flight = self._flight
            if flight is None or flight.wanted != wanted:
                return None
            self._flight = None
        if flight.leaves_idle:
            self._begin_next()
        # Asked for its error alone it raises nothing but what interrupts this very thread.
        if isinstance(flight.grading.exception(), KeyboardInterrupt):
            return None
        return flight.grading.result()

    def leave_idle(self, wanted: Wanted) -> None:
        """Begin the next control; called when this one has few cases left."""
        with self._lock:
            flight = self._flight
            if flight is not None and flight.wanted == wanted:
                # Nobody waits for it yet, and it is far enough ahead.
                flight.leaves_idle = True
                return
        self._begin_next()

    def _begin_next(self) -> None:
        with self._lock:
            audit = self._audit
            if self._is_stopped or self._flight is not None or audit is None:
                return
            for control in self._coming:
                wanted = Wanted(audit.task.name, control)
                if wanted not in self._begun:
                    self._begun.add(wanted)
                    graded = self._threads.submit(self._graded, audit, wanted)
                    self._flight = _Flight(wanted=wanted, grading=graded)
                    return

    def _graded(self, audit: Audit, wanted: Wanted) -> Grading:
        return audit.graded(
            wanted.control,
            cancelled=self._cancelled,
            given_up=self._at_once,
            on_last_cases=partial(self.leave_idle, wanted),
        )

    def stop(self) -> None:
        """Cancel what was begun, and wait until nothing of it is left."""
        with self._lock:
            self._is_stopped = True
        self._cancelled.set()
        self._threads.shutdown(cancel_futures=True)


class Controls:
    """The controls that items of this process ask for."""

    def __init__(self, evals: EvalSession) -> None:
        self._evals = evals
        self._audits: dict[str, Audit] = {}
        self._gradings: dict[Wanted, Grading] = {}
        self._ahead = Ahead(evals.timeouts.expired)
        self._items: Sequence[pytest.Item] = ()

    def look(self, item: pytest.Item, following: pytest.Item | None) -> None:
        """See which item begins, and which comes after it."""
        self._items = (item,) if following is None else (item, following)

    def audit(self, task: Task) -> Audit:
        """Return a task's audit, its plan kept.

        Raises:
            UsageError: The batch began with another plan.
            SetupError: The task was named, and its toolchain is not there.
        """
        self._skip_without_toolchain(task)
        if task.name not in self._audits:
            evals = self._evals
            self._audits[task.name] = Audit(
                task=task,
                plan=evals.runs.keep_audit_plan(task),
                batch=evals.runs.batch(evals.default_sandbox),
                folder=evals.folders.audit(task.name),
                home=evals.home,
            )
        return self._audits[task.name]

    def _skip_without_toolchain(self, task: Task) -> None:
        missing = self._evals.runs.missing_toolchain(task)
        if missing is None:
            return
        if self._evals.options.on_command_line("task"):
            raise SetupError(f"task {task.name}: toolchain {task.toolchain}", missing)
        pytest.skip(f"toolchain {task.toolchain}: {missing}")

    def grading(self, task: Task, control: str) -> Grading:
        """Return the grading of one control of a task's audit, graded once."""
        wanted = Wanted(task.name, control)
        if wanted not in self._gradings:
            audit = self.audit(task)
            self._ahead.expect(audit, tuple(self._coming()))
            try:
                with self._evals.timeouts.told():
                    self._gradings[wanted] = self._ahead.take(wanted) or self._graded(audit, wanted)
            except TimedOut as error:
                pytest.fail(str(error), pytrace=False)
        return self._gradings[wanted]

    def _graded(self, audit: Audit, wanted: Wanted) -> Grading:
        expired = self._evals.timeouts.expired
        return audit.graded(
            wanted.control,
            cancelled=expired,
            given_up=expired,
            on_last_cases=partial(self._ahead.leave_idle, wanted),
        )

    def _coming(self) -> Iterator[str]:
        """Yield the controls that will be asked for from the item that runs on."""
        items = self._remaining()
        first = next(items, None)
        if not isinstance(first, EvalItem):
            return
        yield from first.leaf.controls
        for item in takewhile(lambda item: item.path == first.path, items):
            if not isinstance(item, EvalItem) or not item.leaf.controls:
                return
            if not any(item.get_closest_marker(name) for name in MAY_NOT_RUN):
                yield from item.leaf.controls

    def _remaining(self) -> Iterator[pytest.Item]:
        """Yield the item that runs, and what this process is certain to run after it."""
        if not self._items:
            return
        item = self._items[0]
        # A worker is told of one item after the other, and another may get what comes later.
        if hasattr(item.config, "workerinput") or item not in item.session.items:
            yield from self._items
            return
        at = item.session.items.index(item)
        yield from item.session.items[at:]

    def stop(self) -> None:
        """Cancel what no item has asked for yet; nothing of it is left."""
        self._ahead.stop()
