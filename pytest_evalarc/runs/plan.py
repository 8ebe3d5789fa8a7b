"""Which trials a request asks of a task: plan.json, and what an audit consists of."""

from __future__ import annotations

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.audit import AuditPlan, PlannedMutant
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.task import Task
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.runs.request import ClientLabel, Request
from pytest_evalarc.treatments.protocol import Treatment

DEFAULT_TREATMENT = "skills"


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


def make_plan(task: Task, request: Request, label: ClientLabel, *, sandbox: str) -> PlanDoc:
    """Return every trial of a task with one client: a function of options and task alone."""
    return PlanDoc(
        schema_version=SCHEMA_VERSION,
        batch=request.batch,
        task=task.ref,
        client=label.label,
        client_kind=label.kind,
        model=label.model,
        settings=label.settings,
        treatment=treatment_name(task, request),
        deadlines_secs=task.deadlines,
        sandbox=sandbox,
        trials=planned_trials(configurations(task, request), request.trials),
    )


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


def make_audit_plan(task: Task, request: Request, *, sandbox: str) -> AuditPlan:
    """Return the controls of a task's audit."""
    return AuditPlan(
        schema_version=SCHEMA_VERSION,
        batch=request.batch,
        task=task.ref,
        mode="full",
        checks={check.id: check.dimensions for check in task.checks},
        weights=task.weights,
        mutants=tuple(
            PlannedMutant(name=mutant.name, target_dimension=mutant.target)
            for mutant in task.mutants
        ),
        sandbox=sandbox,
    )
