"""What one process holds of the evals: the request, the registry, and handles on trials."""

from __future__ import annotations

import os
import secrets
import threading
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.counting.audit import REFERENCE, assess
from pytest_evalarc.counting.benchmark import is_treated
from pytest_evalarc.errors import EvalArcError, SetupError, UsageError
from pytest_evalarc.files.strict import read_model
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.model.audit import AuditPlan, ControlDoc, MutantAudit
from pytest_evalarc.model.base import NAME_PATTERN
from pytest_evalarc.model.grading import Grading
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.transcript import Transcript
from pytest_evalarc.model.trial import PlanDoc, PlannedTrial, TrialResult
from pytest_evalarc.plugin.options import ASKS_FOR_TRIALS, Options
from pytest_evalarc.registry import builtin
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.reporting.batch import Documents, write_documents
from pytest_evalarc.runs.batch import Batch, Parts, sandbox_name
from pytest_evalarc.runs.control import run_control
from pytest_evalarc.runs.folders import Folders, default_eval_root
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.plan import check_plan, make_audit_plan, make_plan
from pytest_evalarc.runs.request import (
    ClientLabel,
    ConfigurationChoice,
    Request,
    client_label,
    setting,
)
from pytest_evalarc.runs.trial import Trial, cancelled, read_transcript, run_trial
from pytest_evalarc.tasks.load import is_foreign, load_task, prompt_warnings

DEFAULT_CLIENT = "oracle"
GRACE_S = 60.0
"""What a trial may take beyond the sum of its deadlines before pytest-timeout may end it."""


class TrialHandle:
    """One trial of a plan: lazy, run at most once by whichever process asks first."""

    def __init__(self, evals: EvalSession, task: Task, plan: PlanDoc, entry: PlannedTrial) -> None:
        self.task = task
        self.plan = plan
        self.entry = entry
        self._evals = evals
        self._sandbox: Sandbox | None = None
        self._result: TrialResult | None = None

    def use(self, sandbox: Sandbox) -> None:
        """Run the trial in this sandbox, should it be this process that runs it."""
        self._sandbox = sandbox

    @property
    def is_treated(self) -> bool:
        """Whether the trial's configuration has the treatment."""
        return is_treated(self.entry.configuration)

    @property
    def folder(self) -> Path:
        """The trial's result folder."""
        return self._evals.folders.trials(self.task.name, self.plan.client) / self.entry.folder

    @property
    def result(self) -> TrialResult:
        """The finished trial; asking runs it if nobody has."""
        if self._result is None:
            self._result = self._evals.run_once(self, self._sandbox or self._evals.default_sandbox)
        return self._result

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
        return self._evals.transcript(self)


class EvalSession:
    """One process's evals; made when the first task is collected."""

    def __init__(
        self, config: pytest.Config, request: Request, registry: Registry, options: Options
    ) -> None:
        self.config = config
        self.request = request
        self.registry = registry
        self.options = options
        self.cancelled = threading.Event()
        self.documents = Documents()
        self._tasks: dict[Path, Task | EvalArcError] = {}
        self._batches: dict[str, Batch] = {}
        self._controls: dict[tuple[str, str], Grading] = {}
        self._timers: dict[str, threading.Timer] = {}
        self._plans: dict[tuple[str, str], PlanDoc] = {}

    @classmethod
    def of(cls, config: pytest.Config, tasks: Path) -> EvalSession:
        """Return the session of a configured pytest.

        Raises:
            pytest.UsageError: An option is wrong, or names what is not there.
        """
        options = Options(config)
        config.pluginmanager.register(builtin, "evalarc-builtin")
        try:
            registry = Registry.of(config.pluginmanager)
            request = _request(config, tasks, options, registry)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error
        return cls(config, request, registry, options)

    def for_workers(self) -> dict[str, str]:
        """Return what a worker cannot know by itself, as plain data."""
        return {"batch": self.request.batch}

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
                self._tasks[folder] = load_task(
                    folder,
                    root=self.request.project,
                    toolchains=self.registry.toolchains.names,
                )
            except EvalArcError as error:
                self._tasks[folder] = error
        found = self._tasks[folder]
        if isinstance(found, EvalArcError):
            raise found
        return found

    def doubts(self, task: Task) -> tuple[str, ...]:
        """Return what is doubtful in a valid task."""
        return prompt_warnings(task)

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
        if self.request.clients:
            return self.request.clients
        named = _labels_in_arguments(self.config, path)
        labels = named or ((DEFAULT_CLIENT,) if self._are_trials_wanted else ())
        return tuple(self._label(label) for label in labels)

    @property
    def _are_trials_wanted(self) -> bool:
        return any(self.options.was_given(name) for name in ASKS_FOR_TRIALS)

    def _label(self, label: str) -> ClientLabel:
        return _client_label(label, self.config, self.options, self.registry)

    def plan(self, task: Task, label: ClientLabel) -> PlanDoc:
        """Return the planned trials of a task and client."""
        key = (task.name, label.label)
        if key not in self._plans:
            sandbox = sandbox_name(self.request)
            self._plans[key] = make_plan(task, self.request, label, sandbox=sandbox)
        return self._plans[key]

    def handle(self, task: Task, plan: PlanDoc, entry: PlannedTrial) -> TrialHandle:
        """Return a handle on one trial."""
        return TrialHandle(self, task, plan, entry)

    def check_plan(self, handle: TrialHandle) -> None:
        """Refuse a plan that cannot be run as asked.

        Raises:
            UsageError: The client has nothing to play, or cannot be treated that way.
        """
        client = self.registry.clients.get(handle.plan.client_kind)
        treatment = handle.plan.treatment
        check_plan(
            handle.task, client, self.registry.treatments.get(treatment) if treatment else None
        )

    # What is produced once.

    @cached_property
    def default_sandbox(self) -> Sandbox:
        """The sandbox that the options choose."""
        return self.registry.sandboxes.get(sandbox_name(self.request))

    def batch(self, sandbox: Sandbox) -> Batch:
        """Return this process's hold on the batch, for a sandbox."""
        if sandbox.name not in self._batches:
            parts = Parts(
                toolchain=self.registry.toolchains.get,
                client=self.registry.clients.get,
                treatment=self.registry.treatments.get,
            )
            self._batches[sandbox.name] = Batch(
                request=self.request, parts=parts, boundary=sandbox, cancelled=self.cancelled
            )
        return self._batches[sandbox.name]

    def run_once(self, handle: TrialHandle, sandbox: Sandbox) -> TrialResult:
        """Return a trial's result, running it if nobody has."""
        folder = self.folders.trials(handle.task.name, handle.plan.client)
        self.folders.open_results(folder)
        once(folder / "plan.json", PlanDoc, lambda: handle.plan)
        trial = self._trial(handle, sandbox)
        ran: list[TrialResult] = []

        def produce() -> TrialResult:
            ran.append(run_trial(trial))
            return ran[-1]

        result = once(
            handle.folder / "result.json",
            TrialResult,
            produce,
            lost=lambda error: cancelled(handle.plan, handle.entry, trial.client, error),
        )
        if ran:
            self.config.hook.pytest_evalarc_trial_finished(result=result, folder=handle.folder)
        return result

    def _trial(self, handle: TrialHandle, sandbox: Sandbox) -> Trial:
        treatment = handle.plan.treatment
        return Trial(
            plan=handle.plan,
            entry=handle.entry,
            task=handle.task,
            client=self.registry.clients.get(handle.plan.client_kind),
            treatment=self.registry.treatments.get(treatment) if treatment else None,
            batch=self.batch(sandbox),
            folder=handle.folder,
        )

    def transcript(self, handle: TrialHandle) -> Transcript:
        """Return a trial's transcript, read again from its result folder."""
        handle.result  # noqa: B018 - asking is what makes the stream be there.
        return read_transcript(self._trial(handle, self.default_sandbox))

    def control(self, task: Task, control: str) -> Grading:
        """Return the grading of one control of a task's audit, graded once."""
        key = (task.name, control)
        if key not in self._controls:
            folder = self.folders.audit(task.name)
            self.folders.open_results(folder)
            batch = self.batch(self.default_sandbox)
            self._skip_without_toolchain(task)
            once(
                folder / "plan.json",
                AuditPlan,
                lambda: make_audit_plan(task, self.request, sandbox=batch.boundary.name),
            )
            document = once(
                folder / "rows" / f"{control}.json",
                ControlDoc,
                lambda: run_control(task, control, batch),
            )
            self._controls[key] = document.grading
        return self._controls[key]

    def _skip_without_toolchain(self, task: Task) -> None:
        missing = self.registry.toolchains.get(task.toolchain or "").missing()
        if missing is None:
            return
        if self.options.was_given("task"):
            raise SetupError(f"task {task.name}: toolchain {task.toolchain}", missing)
        pytest.skip(f"toolchain {task.toolchain}: {missing}")

    def judge_mutant(self, task: Task, name: str) -> MutantAudit:
        """Return what the audit says of one mutant, beside the reference of the same audit."""
        # The mutant first: another worker may be busy with the reference just now.
        grading = self.control(task, name)
        controls = {name: grading, REFERENCE: self.control(task, REFERENCE)}
        plan = read_model(self.folders.audit(task.name) / "plan.json", AuditPlan)
        audit = assess(plan, controls)
        return next(found for found in audit.mutants if found.name == name)

    # pytest-timeout.

    def set_timer(self, item: pytest.Item, timeout_s: float) -> bool | None:
        """End what an eval item runs when its time is up, so that it is counted."""
        from pytest_evalarc.plugin.nodes import EvalItem

        if not isinstance(item, EvalItem):
            return None
        timer = threading.Timer(timeout_s, self.cancelled.set)
        timer.daemon = True
        timer.start()
        self._timers[item.nodeid] = timer
        return True

    def cancel_timer(self, item: pytest.Item) -> bool | None:
        """Take the timer of an eval item back."""
        timer = self._timers.pop(item.nodeid, None)
        if timer is None:
            return None
        timer.cancel()
        self.cancelled.clear()
        return True

    # The end.

    def finish(self) -> None:
        """Write what the batch adds up to, and remove its working folder."""
        self._settle_lost_trials()
        self.documents = write_documents(self.folders)
        for benchmark, path in self.documents.benchmarks:
            self.config.hook.pytest_evalarc_benchmark(benchmark=benchmark, path=path)
        for audit, path in self.documents.audits:
            self.config.hook.pytest_evalarc_audit(audit=audit, path=path)
        if not self.request.keep:
            self.folders.close_work()

    def _settle_lost_trials(self) -> None:
        """Give a result to every trial whose process died in it and that nobody asked for again."""
        for begun in self.folders.results.glob(f"*/*/{self.request.batch}/*/.result.json.begun"):
            plan = read_model(begun.parent.parent / "plan.json", PlanDoc)
            entry = next(entry for entry in plan.trials if entry.folder == begun.parent.name)
            client = self.registry.clients.get(plan.client_kind)
            once(
                begun.with_name("result.json"),
                TrialResult,
                lambda plan=plan, entry=entry, client=client: cancelled(  # type: ignore[misc]
                    plan, entry, client, None
                ),
            )
            begun.unlink(missing_ok=True)

    def plan_lines(self, items: Sequence[pytest.Item]) -> list[str]:
        """Return the plan of the collected trials, for `--collect-only`."""
        from pytest_evalarc.plugin.terminal import plan_lines

        return plan_lines(items)


def _request(config: pytest.Config, tasks: Path, options: Options, registry: Registry) -> Request:
    given = getattr(config, "workerinput", {}).get("evalarc", {})
    configuration = options.text("configuration") or "both"
    return Request(
        project=config.rootpath,
        tasks=tasks,
        batch=given.get("batch") or _batch_name(options.text("batch")),
        eval_root=_real(options.path("root", default_eval_root())),
        results=_real(options.path("results", config.rootpath / "results")),
        clients=tuple(
            _client_label(label, config, options, registry) for label in options.texts("client")
        ),
        trials=_whole_number("trials", options.text("trials") or "1"),
        configuration=_configuration(configuration),
        treatment=_treatment(options.text("treatment"), registry),
        sandbox=_sandbox(options.text("sandbox") or "auto", registry),
        deny_read=tuple(_real(Path(path)) for path in options.texts("deny-read")),
        keep=options.flag("keep"),
        trust_local=options.flag("trust-local"),
        jobs=_jobs(),
    )


def _client_label(
    label: str, config: pytest.Config, options: Options, registry: Registry
) -> ClientLabel:
    return client_label(
        label,
        _client_tables(config.rootpath),
        known=registry.clients.names,
        model=options.text("model"),
        settings=dict(setting(text) for text in options.texts("model-setting")),
    )


def _client_tables(root: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return `[tool.evalarc.clients]` of the project's pyproject.toml."""
    path = root / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(str(path), f"is not TOML: {error}", "mend it") from error
    tables = data.get("tool", {}).get("evalarc", {}).get("clients", {})
    if not isinstance(tables, dict) or not all(
        isinstance(table, dict) for table in tables.values()
    ):
        raise UsageError(
            f"{path} [tool.evalarc.clients]",
            "holds something that is no table",
            "write [tool.evalarc.clients.<label>] with client = …",
        )
    return tables


def _labels_in_arguments(config: pytest.Config, path: Path) -> tuple[str, ...]:
    """Return the clients that node ids on the command line name for a task file."""
    labels: list[str] = []
    for argument in config.args:
        file, _, rest = argument.partition("::")
        word = rest.partition("::")[0]
        here = Path(os.path.normpath(config.invocation_params.dir / file)) == path
        if here and word and word not in ("validate", "audit", "submission"):
            labels.append(word)
    return tuple(dict.fromkeys(labels))


def _batch_name(given: str | None) -> str:
    import re

    if given is None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        return f"{stamp}-{secrets.token_hex(2)}"
    if not re.fullmatch(NAME_PATTERN, given) or len(given) > 100:
        raise UsageError(
            f"--evalarc-batch {given!r}",
            "is not a name",
            "use up to 100 letters, digits, '_', '+' and '-'",
        )
    return given


def _whole_number(name: str, given: str) -> int:
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= 100_000:
        raise UsageError(
            f"--evalarc-{name} {given!r}", "is not a number of trials", "give 1 to 100000"
        )
    return int(given)


def _configuration(given: str) -> ConfigurationChoice:
    from pytest_evalarc.runs.request import CONFIGURATIONS

    for choice in CONFIGURATIONS:
        if given == choice:
            return choice
    raise UsageError(
        f"evalarc_configuration {given!r}", "is none", f"give one of {', '.join(CONFIGURATIONS)}"
    )


def _treatment(given: str | None, registry: Registry) -> str | None:
    if given is not None:
        registry.treatments.get(given)
    return given


def _sandbox(given: str, registry: Registry) -> str:
    if given != "auto":
        registry.sandboxes.get(given)
    return given


def _jobs() -> int:
    """Return how many checks run at once here: the cores, shared with other workers."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, cores // workers)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    import fnmatch

    return not patterns or any(
        fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns
    )
