"""Which trials a request asks of a task: plan.json, and what an audit consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.errors import SetupError, UsageError
from pytest_evalarc.model.plain import SCHEMA_VERSION
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Task
from pytest_evalarc.runs.request import ClientLabel, Request

if TYPE_CHECKING:
    from pytest_evalarc.clients.protocol import Client
    from pytest_evalarc.model.audit import AuditPlan
    from pytest_evalarc.model.trial import PlanDoc
    from pytest_evalarc.treatments.protocol import Treatment

DEFAULT_TREATMENT = "skills"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The trials that a request asks of a task with one client, as collecting needs them."""

    task: Task
    request: Request
    label: ClientLabel
    sandbox: str
    image: str | None
    """Of a sandbox of images; None of every other."""
    configurations: tuple[str, ...]
    """In the order of the first round."""
    trials: tuple[PlannedTrial, ...]

    @property
    def client(self) -> str:
        """The client's label."""
        return self.label.label

    @property
    def treatment(self) -> str | None:
        """The treatment; None for a task that offers no plugin."""
        return treatment_name(self.task, self.request)

    @cached_property
    def document(self) -> PlanDoc:
        """The plan as plan.json has it: what runs needs all of it."""
        from pytest_evalarc.model.trial import PlanDoc

        return PlanDoc(
            schema_version=SCHEMA_VERSION,
            batch=self.request.batch,
            task=self.task.ref,
            client=self.client,
            client_kind=self.label.kind,
            model=self.label.model,
            settings=self.label.settings,
            command=self.label.command,
            key_env=self.label.key_env,
            treatment=self.treatment,
            deadlines_secs=self.task.deadlines,
            sandbox=self.sandbox,
            image=self.image,
            trials=self.trials,
        )


def treatment_name(task: Task, request: Request) -> str | None:
    """Return the treatment of a task's trials; None for a task that offers no plugin."""
    return (request.treatment or DEFAULT_TREATMENT) if task.plugins else None


def configurations(task: Task, request: Request) -> tuple[str, ...]:
    """Return the configurations of a task's trials, the baseline first."""
    treatment = treatment_name(task, request)
    if treatment is None:
        return ("baseline",)
    without, treated = f"without-{treatment}", f"with-{treatment}"
    return {
        "both": (without, treated),
        "with": (treated,),
        "without": (without,),
        "noise": ("noise",),
    }[request.configuration]


def make_plan(
    task: Task, request: Request, label: ClientLabel, *, sandbox: str, image: str | None = None
) -> Plan:
    """Return every trial of a task with one client: a function of options and task alone."""
    names = configurations(task, request)
    return Plan(
        task=task,
        request=request,
        label=label,
        sandbox=sandbox,
        image=image,
        configurations=names,
        trials=planned_trials(names, request.trials),
    )


def planned_client(plan: PlanDoc, clients: Callable[[str], Client]) -> Client:
    """Return the client of a plan: the registered one, with what the plan says of its label.

    Args:
        plan: The plan.
        clients: Returns a registered client by its kind.

    Raises:
        UsageError: There is none of that kind, or it cannot be what its label says.
    """
    return clients(plan.client_kind).configured(
        plan.client,
        command=plan.command,
        key_env=plan.key_env,
        model=plan.model,
        settings=plan.settings,
    )


def check_host(client: Client, environ: Mapping[str, str]) -> None:
    """Refuse to start trials whose client this host cannot start.

    Raises:
        UsageError: Its program, or a variable that it is to get, is not there.
    """
    from pytest_evalarc.runs.session import given_env

    missing = client.missing()
    if missing is not None:
        raise UsageError(f"client {client.name}", missing)
    try:
        given_env(client.needs, environ)
    except SetupError as error:
        raise UsageError(error.where, error.problem, error.hint) from error


def check_plan(task: Task, client: Client, treatment: Treatment | None) -> None:
    """Refuse a plan that cannot be run as asked.

    Raises:
        UsageError: The client has no solution to play, or cannot be treated that way.
    """
    if client.name == "oracle" and not task.has_solution:
        raise UsageError(
            f"--evalarc-client oracle: task {task.name}",
            "has no solution/ to play",
            "add one, or name another client",
        )
    if treatment is not None:
        objection = treatment.supports(client.needs, embedded=client.embedded)
        if objection is not None:
            raise UsageError(f"--evalarc-treatment {treatment.name}", objection)


def make_audit_plan(
    task: Task, request: Request, *, sandbox: str, image: str | None = None
) -> AuditPlan:
    """Return the controls of a task's audit."""
    from pytest_evalarc.model.audit import AuditPlan, PlannedMutant

    return AuditPlan(
        schema_version=SCHEMA_VERSION,
        batch=request.batch,
        task=task.ref,
        mode=request.audit,
        checks={check.id: check.dimensions for check in task.checks},
        weights=task.weights,
        mutants=tuple(
            PlannedMutant(name=mutant.name, target_dimension=mutant.target)
            for mutant in task.mutants
        ),
        sandbox=sandbox,
        image=image,
    )
