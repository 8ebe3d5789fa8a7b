"""What one process holds of the evals: the request, the registry, and handles on trials.

Every process that collects makes it, so what only runs is elsewhere, in `running`.
"""

from __future__ import annotations

import fnmatch
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from pytest_evalarc.counting.plan import is_treated
from pytest_evalarc.errors import EvalArcError, UsageError
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Task
from pytest_evalarc.plugin.asked import as_client, as_request
from pytest_evalarc.plugin.options import DEFAULT_CLIENT, Options
from pytest_evalarc.plugin.sharding import check_shard
from pytest_evalarc.plugin.timeouts import Timeouts
from pytest_evalarc.registry import builtin
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.runs.folders import Folders
from pytest_evalarc.runs.plan import DEFAULT_TREATMENT, Plan, labelled_client, make_plan
from pytest_evalarc.runs.request import (
    DEFAULT_SANDBOX,
    ClientLabel,
    Request,
    sandbox_name,
    session_sandbox_name,
)
from pytest_evalarc.tasks.load import is_foreign, load_task, prompt_warnings

if TYPE_CHECKING:
    from pytest_evalarc.isolation.command import Sandbox
    from pytest_evalarc.model.grading import Grading
    from pytest_evalarc.model.transcript import Transcript
    from pytest_evalarc.model.trial import TrialResult
    from pytest_evalarc.plugin.candidate import Candidate
    from pytest_evalarc.plugin.home import Home
    from pytest_evalarc.plugin.regrading import Regrading
    from pytest_evalarc.plugin.running import Runs
    from pytest_evalarc.runs.redaction import Redaction
    from pytest_evalarc.treatments.protocol import Treatment

RECENT = 16
"""Results in memory at once, so that a batch of any size takes no more."""
NO_CLIENTS = ("validate", "audit", "submission")
"""What may follow the task file in a node id and is no client."""


class TrialHandle:
    """One trial of a plan: lazy, run at most once by whichever process asks first."""

    def __init__(self, evals: EvalSession, task: Task, plan: Plan, entry: PlannedTrial) -> None:
        self.task = task
        self.plan = plan
        self.entry = entry
        self._evals = evals
        self._sandbox: Sandbox | None = None
        self._seen: Callable[[], TrialResult | None] = lambda: None

    def use(self, sandbox: Sandbox) -> None:
        """Run the trial in this sandbox, should it be this process that runs it."""
        self._sandbox = sandbox

    @property
    def is_treated(self) -> bool:
        """Whether the trial's configuration has the treatment."""
        return is_treated(self.entry.configuration)

    @property
    def configuration(self) -> str:
        """The trial's configuration, as `with-skills`."""
        return self.entry.configuration

    @property
    def number(self) -> int:
        """The trial's number in its configuration, from 1."""
        return self.entry.trial

    @property
    def folder(self) -> Path:
        """The trial's result folder."""
        return self._evals.folders.trials(self.task.name, self.plan.client) / self.entry.folder

    @property
    def result(self) -> TrialResult:
        """The finished trial; asking runs it if nobody has."""
        result = self._seen()
        if result is None:
            sandbox = self._sandbox or self._evals.default_sandbox
            result = self._evals.runs.trial(self, sandbox)
            self._seen = weakref.ref(result)
            self._evals.recent.append(result)
        return result

    @property
    def known_result(self) -> TrialResult | None:
        """The finished trial if this process holds it; asking never runs one."""
        return self._seen()

    @property
    def redaction(self) -> Redaction:
        """What strikes the client's keys out."""
        return self._evals.redaction(self.plan.label)

    @property
    def grading(self) -> Grading | None:
        """The last grading of what the trial left; None when nothing was graded."""
        return self.result.gradings[-1] if self.result.gradings else None

    @property
    def submission(self) -> Path:
        """The project as the agent left it."""
        self.result  # noqa: B018 - asking is what makes it be there.
        return self.folder / "submission"

    @property
    def transcript(self) -> Transcript:
        """What the client did, read again from the kept stream."""
        return self._evals.runs.transcript(self)


class EvalSession:
    """One process's evals; made when the first task is collected."""

    def __init__(
        self, config: pytest.Config, request: Request, registry: Registry, options: Options
    ) -> None:
        self.config = config
        self.request = request
        self.registry = registry
        self.options = options
        self.timeouts = Timeouts()
        self.recent: deque[TrialResult] = deque(maxlen=RECENT)
        """Kept because their items come one after another; all others are read again if need be."""
        self.home: Home | None = None
        """The way to the controller's results; None in every process that can write there."""
        self._tasks: dict[Path, Task | EvalArcError] = {}
        self._plans: dict[tuple[str, str], Plan] = {}
        self._handles: dict[tuple[str, str, str], TrialHandle] = {}
        self._redactions: dict[str, Redaction] = {}

    @classmethod
    def of(cls, config: pytest.Config, tasks: Path, *, batch: str) -> EvalSession:
        """Return the session of a configured pytest.

        Raises:
            pytest.UsageError: An option is wrong, or names what is not there.
        """
        options = Options(config)
        if not config.pluginmanager.has_plugin("evalarc-builtin"):
            config.pluginmanager.register(builtin, "evalarc-builtin")
        try:
            registry = Registry.of(config.pluginmanager)
            request = as_request(config, options, registry, tasks=tasks, batch=batch)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        return cls(config, request, registry, options)

    def check_request(self) -> None:
        """Refuse clients that are not there or cannot be asked so, and a sandbox nobody allowed.

        Raises:
            UsageError: One sentence.
        """
        self._chosen_sandbox  # noqa: B018 - asking is what finds mistakes.
        check_shard(self)
        if self.work is not None:
            self.work.check()
            return
        named = [path for _, path, _ in self.node_ids_in_arguments()]
        for path in named or [self.request.tasks]:
            self.clients_for(path)

    @cached_property
    def work(self) -> Candidate | Regrading | None:
        """What is only graded, in place of audits and trials; None in every other session.

        Raises:
            UsageError: Both kinds of it are asked for.
        """
        is_candidate = self.options.was_given("submission")
        if is_candidate and self.options.was_given("regrade"):
            problem = "cannot be combined with --evalarc-submission"
            raise UsageError("--evalarc-regrade", problem, "run one after the other")
        if is_candidate:
            from pytest_evalarc.plugin.candidate import Candidate

            source = self.options.path("submission", Path())
            return Candidate(self, Path(os.path.realpath(source)))
        if self.options.was_given("regrade"):
            from pytest_evalarc.plugin.regrading import Regrading

            return Regrading(self)
        return None

    @property
    def regrading(self) -> Regrading | None:
        """The re-grading that this session is; None when it is none."""
        # Asked by every session: the class, and all that it counts with, is imported for one.
        return cast("Regrading", self.work) if self.options.was_given("regrade") else None

    @property
    def regrade_number(self) -> int | None:
        """The number of this session's re-grading; None when it is none."""
        return self.regrading.number if self.regrading is not None else None

    @property
    def folders(self) -> Folders:
        """Where everything of the batch is."""
        return Folders(
            eval_root=self.request.eval_root,
            results=self.request.results,
            batch=self.request.batch,
        )

    # Tasks.

    def is_foreign(self, folder: Path) -> bool:
        """Whether a task file belongs to another tool."""
        return is_foreign(folder)

    def task(self, folder: Path) -> Task:
        """Return the task of a folder, read once.

        Raises:
            TaskProblems: It is not valid; all problems together.
        """
        if folder not in self._tasks:
            try:
                self._tasks[folder] = self._with_seeds(self._loaded(folder))
            except EvalArcError as error:
                self._tasks[folder] = error
        found = self._tasks[folder]
        if isinstance(found, EvalArcError):
            raise found
        return found

    def _loaded(self, folder: Path) -> Task:
        packs = self.registry.packs
        return load_task(
            folder,
            root=self.request.project,
            toolchains=self.registry.toolchains.names,
            packs={name: lambda name=name: packs.get(name).info for name in packs.names},  # type: ignore[misc]  # each has its own
        )

    def _with_seeds(self, task: Task) -> Task:
        """Return a pack task with the seeds that the options give, where they give some."""
        if task.pack is None or not self.request.seeds:
            return task
        return replace(task, pack=replace(task.pack, seeds=self.request.seeds))

    def doubts(self, task: Task) -> tuple[str, ...]:
        """Return what is doubtful in a valid task."""
        return prompt_warnings(task)

    @property
    def read_tasks(self) -> tuple[str, ...]:
        """The names of the tasks that were read, valid or not."""
        return tuple(folder.name for folder in self._tasks)

    def has_wanted_name(self, name: str) -> bool:
        """Whether `--evalarc-task` selects a task; it selects all when it is not given."""
        return _matches((name,), self.options.texts("task"))

    def has_wanted_tag(self, task: Task) -> bool:
        """Whether `--evalarc-tag` selects a task; it selects all when it is not given."""
        return _matches(task.tags, self.options.texts("tag"))

    # Plans.

    def clients_for(self, path: Path) -> tuple[ClientLabel, ...]:
        """Return the clients whose trials are collected for a task file.

        Raises:
            UsageError: A node id names a client that is not there.
        """
        if self.options.are_trials_asked_for() and self.request.clients:
            return self.request.clients
        below = [names[0] for _, file, names in self.node_ids_in_arguments() if file == path]
        labels = [name for name in below if name not in NO_CLIENTS]
        if not labels and self.options.are_trials_asked_for():
            labels = [DEFAULT_CLIENT]
        return tuple(self._label(label) for label in dict.fromkeys(labels))

    def node_ids_in_arguments(self) -> Iterator[tuple[str, Path, list[str]]]:
        """Yield each argument that is a node id below a task file, that file, and the names."""
        for argument in self.config.args:
            path = self.options.argument_path(argument)
            _, *names = argument.split("::")
            if names and path.parent.parent == self.request.tasks:
                yield argument, path, names

    def _label(self, label: str) -> ClientLabel:
        known = {client.label: client for client in self.request.clients}
        return known.get(label) or as_client(label, self.config, self.options, self.registry)

    def plan(self, task: Task, label: ClientLabel) -> Plan:
        """Return the planned trials of a task and client."""
        key = (task.name, label.label)
        if key not in self._plans:
            sandbox = self.sandbox_of(task)
            self._plans[key] = make_plan(
                task,
                self.request,
                label,
                sandbox=sandbox.name,
                session_sandbox=self.session_sandbox(label).name,
                image=sandbox.image,
            )
        return self._plans[key]

    def plan_of(self, task: Task, label: str) -> Plan:
        """Return the planned trials of a task and the client behind a label."""
        return self.plan(task, self._label(label))

    def treatment(self, plan: Plan) -> Treatment | None:
        """Return what a plan's treated trials get; None for one without treatment."""
        from pytest_evalarc.runs.plan import planned_treatment

        return planned_treatment(
            plan.document, self.registry.treatments.get, program=self.request.symposium
        )

    def expectations(self, plan: Plan, configuration: str) -> tuple[str, ...]:
        """Return the names of all that is decided in a configuration beside the code."""
        if plan.treatment is None or not is_treated(configuration):
            return ()
        expected = plan.task.expected
        named = [
            f"{word}-{skill}"
            for word in ("installed", "not_installed", "used", "not_used")
            for skill in getattr(expected, word)
        ]
        hooks = [f"hook-{hook}" for hook in expected.hooks]
        # The usual treatment has none of its own, and who only collects does not import it.
        is_usual = plan.treatment == DEFAULT_TREATMENT
        own = () if is_usual else self.registry.treatments.get(plan.treatment).standing
        return (*named, *hooks, *own)

    def handle(self, task: Task, plan: Plan, entry: PlannedTrial) -> TrialHandle:
        """Return the handle on one trial, the same for all who ask."""
        key = (task.name, plan.client, entry.folder)
        if key not in self._handles:
            self._handles[key] = TrialHandle(self, task, plan, entry)
        return self._handles[key]

    # What runs, is graded and adds up.

    @cached_property
    def default_sandbox(self) -> Sandbox:
        """The sandbox of checks and embedded clients that the options choose."""
        chosen = self._chosen_sandbox
        return chosen if chosen.image is None else self.registry.sandboxes.get(DEFAULT_SANDBOX)

    def session_sandbox(self, label: ClientLabel) -> Sandbox:
        """Return the sandbox of a client's sessions.

        Raises:
            UsageError: The client needs a network, which the chosen sandbox has not.
        """
        domains = labelled_client(label, self.registry.clients.get).needs.domains
        name = session_sandbox_name(self.request, needs_network=bool(domains))
        if name is not None and self.request.sandbox == "bwrap" and not self.request.exploratory:
            problem = f"has no network, and client {label.label} must reach {domains[0]}"
            raise UsageError("--evalarc-sandbox bwrap", problem, "leave it out, or name srt")
        return self.default_sandbox if name is None else self.registry.sandboxes.get(name)

    def redaction(self, label: ClientLabel) -> Redaction:
        """Return what strikes the keys of the client behind a label out of a text."""
        if label.label not in self._redactions:
            from pytest_evalarc.runs.redaction import Redaction
            from pytest_evalarc.runs.session import secrets_of

            needs = labelled_client(label, self.registry.clients.get).needs
            self._redactions[label.label] = Redaction(secrets_of(needs, os.environ))
        return self._redactions[label.label]

    def sandbox_of(self, task: Task) -> Sandbox:
        """Return what a task's submissions are judged in."""
        if task.pack is None:
            return self.default_sandbox
        return self.candidate_sandbox or self.default_sandbox

    @property
    def candidate_sandbox(self) -> Sandbox | None:
        """The sandbox of packs' candidates; None is the one of all else."""
        return self._chosen_sandbox if self._chosen_sandbox.image is not None else None

    @cached_property
    def _chosen_sandbox(self) -> Sandbox:
        chosen = self.registry.sandboxes.get(sandbox_name(self.request))
        return chosen.with_image(self.request.image) if self.request.image else chosen

    @cached_property
    def runs(self) -> Runs:
        """What this process runs; all that collecting does without is imported with it."""
        from pytest_evalarc.plugin.running import Runs

        return Runs(self)


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.filter(names, pattern) for pattern in patterns)
