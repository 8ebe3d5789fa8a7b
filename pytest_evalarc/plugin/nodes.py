"""All node classes: a task is a module, a trial is a class, a check is a function."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from pytest_evalarc.errors import TaskProblems
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.controls import REFERENCE, REFERENCE_REPEAT, STARTER
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin import bodies
from pytest_evalarc.plugin.entry import active_session
from pytest_evalarc.plugin.session import EvalSession, TrialHandle
from pytest_evalarc.plugin.timeouts import allow
from pytest_evalarc.runs.plan import Plan


class Leaf(NamedTuple):
    """One item to be: its name, what it runs, and what it says of itself."""

    name: str
    body: Callable[..., None]
    kind: str
    line: int
    subject: str = ""
    """The check, control or expectation that the body is about."""
    controls: tuple[str, ...] = ()
    """Of an audit: those that the body asks for, in this order."""


class TaskDir(pytest.Directory):
    """A task's folder: only its task.toml is collected, never what lies beside it."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Return the task file."""
        return list(self.ihook.pytest_collect_file(file_path=self.path / "task.toml", parent=self))


class TaskFile(pytest.Module):
    """A task. Being a module gives fixtures of scope `module` the task's lifetime."""

    session_of_evals: EvalSession
    fixture_infos: dict[Any, Any]
    """What each body asks for: finding it out costs most of making an item."""

    @classmethod
    def from_parent(cls, parent: Any, **kw: Any) -> Self:
        """Make the node; nothing is imported and nothing is read yet."""
        self: Self = super().from_parent(parent, **kw)
        name = "evalarc_task_" + re.sub(r"\W", "_", self.path.parent.name)
        self.obj = types.ModuleType(name)
        self.obj.__file__ = str(self.path)
        evals = active_session(parent.config)
        if evals is None:
            raise AssertionError("a task file is collected by the active plugin alone")
        self.session_of_evals = evals
        self.fixture_infos = {}
        return self

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the validation, and below a valid task its audit and the trials asked for."""
        evals = self.session_of_evals
        if not evals.has_wanted_name(self.path.parent.name):
            return
        if evals.is_foreign(self.path.parent):
            # No warning: where those are errors, installing this plugin would break the project.
            pytest.skip(f"{self.nodeid} belongs to another tool", allow_module_level=True)
        try:
            task = evals.task(self.path.parent)
        except TaskProblems as problems:
            yield EvalItem.new(self, Leaf("validate", bodies.refuse, "validate", 1, str(problems)))
            return
        if not evals.has_wanted_tag(task):
            return
        self.add_markers(task)
        yield EvalItem.new(
            self, Leaf("validate", bodies.validate, "validate", task.lines.get("", 1))
        )
        if evals.options.flag("check-tasks"):
            return
        if evals.work is not None:
            from pytest_evalarc.plugin.rework import reworked

            yield from reworked(self, task, evals.work)
            return
        if task.has_solution:
            audit = Group.new(
                self, "audit", task.lines.get("mutants", 1), lambda at: _audit(at, task)
            )
            # A mutant's item may grade the mutant, and the reference beside it.
            allow(audit, 2 * task.deadlines.grading)
            yield audit
        for label in evals.clients_for(self.path):
            plan = evals.plan(task, label)
            yield Group.new(self, label.label, 1, partial(_configurations, task=task, plan=plan))

    def add_markers(self, task: Task) -> None:
        """Mark everything below with the task's tags."""
        for tag in task.tags:
            self.config.addinivalue_line("markers", f"{tag}: a tag of evals")
            self.add_marker(tag)


class Group(pytest.Class):
    """An audit, a client, a configuration or a trial; only what is selected is ever built."""

    trial: TrialHandle | None
    line: int
    fixture_infos: dict[Any, Any]
    children: Callable[[Group], Iterable[pytest.Item | pytest.Collector]]

    @classmethod
    def new(
        cls,
        parent: TaskFile | Group,
        name: str,
        line: int,
        children: Callable[[Group], Iterable[pytest.Item | pytest.Collector]],
        trial: TrialHandle | None = None,
    ) -> Self:
        """Make the node; its class is synthetic, and of a module that is not there."""
        self: Self = cls.from_parent(parent, name=name)
        # One for all below a group: a class of its own would be most of what a trial takes.
        self.obj = (
            parent.obj
            if isinstance(parent, Group)
            else type(re.sub(r"\W", "_", name), (), {"__module__": "evalarc_task"})
        )
        self.fixture_infos = parent.fixture_infos
        self.line, self.children, self.trial = line, children, trial
        return self

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return what is below, made now."""
        return self.children(self)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place in task.toml that this group comes from."""
        return self.path, self.line - 1, self.name


class EvalItem(pytest.Function):
    """A leaf: it holds what it is about and calls one function."""

    leaf: Leaf

    @classmethod
    def new(cls, parent: TaskFile | Group, leaf: Leaf) -> EvalItem:
        """Make the node."""
        known = parent.fixture_infos.get(leaf.body)
        if known is None and isinstance(parent, Group):
            # Before pytest 9.2 the first argument name is dropped unless the class says `static`.
            setattr(parent.obj, leaf.name, staticmethod(leaf.body))
        self: EvalItem = cls.from_parent(
            parent, name=leaf.name, callobj=leaf.body, fixtureinfo=known
        )
        if known is None:
            parent.fixture_infos[leaf.body] = getattr(self, "_fixtureinfo", None)
        self.leaf = leaf
        # As pytest leaves an item that has run; it makes another before it runs one.
        self._request = False  # type: ignore[assignment]
        return self

    @property
    def trial(self) -> TrialHandle | None:
        """The trial this item is part of."""
        return self.parent.trial if isinstance(self.parent, Group) else None

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return file, 0-based line and dotted name: the file is that of the node id."""
        names = [node.name for node in self.listchain() if isinstance(node, (Group, EvalItem))]
        return self.path, self.leaf.line - 1, ".".join(names)

    def runtest(self) -> None:
        """Run the body; what it tells leaves without the frames it came through.

        Whoever keeps the exception, as plugins that rerun failures do, would keep a whole
        result with each of them.

        Raises:
            Told: What the body tells.
        """
        try:
            super().runtest()
        except bodies.Told as told:
            raise told.with_traceback(None)  # noqa: B904 - it is the same exception.

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """Show what a user can mend as its sentence, and a bug of ours as a traceback."""
        from pytest_evalarc.errors import EvalArcError

        if isinstance(excinfo.value, (EvalArcError, bodies.Told)):
            return printable(str(excinfo.value), limit=20_000)
        return super().repr_failure(excinfo)


def _audit(group: Group, task: Task) -> Iterator[pytest.Item | pytest.Collector]:
    line = task.lines.get
    yield Group.new(group, "reference", group.line, partial(_reference, task=task))
    starter = Leaf(STARTER, bodies.starter, "audit", group.line, controls=(STARTER,))
    yield EvalItem.new(group, starter)
    for mutant in task.mutants:
        at = line(f"mutants.{mutant.name}", group.line)
        # The mutant first: another worker may be busy with the reference just now.
        controls = (mutant.name, REFERENCE)
        leaf = Leaf(mutant.name, bodies.mutant, "audit", at, mutant.name, controls)
        yield EvalItem.new(group, leaf)


def _reference(group: Group, task: Task) -> Iterator[EvalItem]:
    is_fast = _evals(group).request.audit == "fast"
    controls = (REFERENCE,) if is_fast else (REFERENCE, REFERENCE_REPEAT)
    for check in task.checks:
        at = task.lines.get(f"checks.{check.id}", 1)
        leaf = Leaf(check.id, bodies.reference, "audit", at, check.id, controls)
        yield EvalItem.new(group, leaf)


def _configurations(client: Group, task: Task, plan: Plan) -> Iterator[Group]:
    deadlines = task.deadlines
    for configuration in plan.configurations:
        trials = Group.new(client, configuration, 1, partial(_trials, task=task, plan=plan))
        allow(trials, deadlines.trial)
        yield trials


def _trials(configuration: Group, task: Task, plan: Plan) -> Iterator[Group]:
    evals = _evals(configuration)
    # Shared by all trials: a batch may have thousands.
    expected = evals.expectations(plan, configuration.name)
    items = partial(_items, leaves=tuple(leaves(task, expected)))
    for entry in plan.trials:
        if entry.configuration == configuration.name:
            handle = evals.handle(task, plan, entry)
            yield Group.new(configuration, trial_name(entry), 1, items, trial=handle)


def _items(trial: Group, leaves: Sequence[Leaf]) -> Iterator[EvalItem]:
    for leaf in leaves:
        yield EvalItem.new(trial, leaf)


def trial_name(entry: PlannedTrial) -> str:
    """Return how a trial is called in node ids."""
    return f"trial-{entry.trial:03d}"


def leaves(task: Task, expected: Sequence[str]) -> Iterator[Leaf]:
    """Return the items of a trial, in the order that they are read.

    Args:
        task: The task.
        expected: Names of the expectations that are decided in the trial's configuration.
    """
    line = task.lines.get
    yield Leaf("run", bodies.run, "run", 1)
    for check in task.checks:
        at = line(f"checks.{check.id}", 1)
        yield Leaf(check.id, bodies.check, "check", at, check.id)
    for name in expected:
        yield Leaf(name, bodies.expectation, "expectation", line("expected", 1), name)
    yield Leaf("success", bodies.success, "success", 1)


def _evals(node: pytest.Collector) -> EvalSession:
    task = node.getparent(TaskFile)
    if task is None:
        raise AssertionError("a group stands below a task file")
    return task.session_of_evals


def sort_trials(items: list[pytest.Item]) -> None:
    """Bring the trials of each task and client into the plan's order, all else where it was.

    Configurations alternate between rounds, while the tree groups by configuration.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for index, item in enumerate(items):
        if isinstance(item, EvalItem) and item.trial is not None:
            places.setdefault((str(item.path), item.trial.plan.client), []).append(index)
    for indices in places.values():
        ordered = sorted((items[index] for index in indices), key=_place_in_plan)
        for index, item in zip(indices, ordered, strict=True):
            items[index] = item


def _place_in_plan(item: pytest.Item) -> tuple[int, int]:
    handle = item.trial if isinstance(item, EvalItem) else None
    return (handle.entry.round, handle.entry.order) if handle is not None else (0, 0)
