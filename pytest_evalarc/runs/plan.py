"""Which trials a request asks of a task: plan.json, and what an audit consists of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evalarc.counting.plan import planned_trials
from pytest_evalarc.counting.shards import own_trials
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
    session_sandbox: str
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
    def own(self) -> frozenset[PlannedTrial]:
        """The trials that are run here: all of them, unless this is one of several shards."""
        own = own_trials(self.trials, self.request.shard, task=self.task.name, client=self.client)
        return frozenset(own)

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
            session_sandbox=self.session_sandbox,
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
    task: Task,
    request: Request,
    label: ClientLabel,
    *,
    sandbox: str,
    session_sandbox: str | None = None,
    image: str | None = None,
) -> Plan:
    """Return every trial of a task with one client: a function of options and task alone.

    Args:
        task: The task.
        request: What the user asked for.
        label: The client.
        sandbox: What submissions are judged in.
        session_sandbox: What the client's sessions run in; None is the same.
        image: What candidates of packs run in; None for a sandbox without images.
    """
    names = configurations(task, request)
    return Plan(
        task=task,
        request=request,
        label=label,
        sandbox=sandbox,
        session_sandbox=session_sandbox or sandbox,
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
    label = ClientLabel(
        label=plan.client,
        kind=plan.client_kind,
        model=plan.model,
        settings=plan.settings,
        key_env=plan.key_env,
        command=plan.command,
    )
    return labelled_client(label, clients)


def labelled_client(label: ClientLabel, clients: Callable[[str], Client]) -> Client:
    """Return the client behind a label, as it will be planned.

    Raises:
        UsageError: There is none of that kind, or it cannot be what its label says.
    """
    return clients(label.kind).configured(
        label.label,
        command=label.command,
        key_env=label.key_env,
        model=label.model,
        settings=label.settings,
    )


def planned_treatment(
    plan: PlanDoc, treatments: Callable[[str], Treatment], *, program: Path | None
) -> Treatment | None:
    """Return the treatment of a plan; None for one without.

    Args:
        plan: The plan.
        treatments: Returns a registered treatment by its name.
        program: The program under evaluation that the user named; None is the treatment's choice.

    Raises:
        UsageError: There is no such treatment, or it takes no program.
    """
    if plan.treatment is None:
        return None
    treatment = treatments(plan.treatment)
    return treatment if program is None else treatment.with_program(program)


def check_host(
    client: Client,
    treatment: Treatment | None,
    environ: Mapping[str, str],
    *,
    is_staged: bool = False,
) -> None:
    """Refuse to start trials that this host cannot start.

    Args:
        client: The client.
        treatment: The treatment; None for a task without one.
        environ: The environment of the harness.
        is_staged: Whether the batch has staged the client's program already.

    Raises:
        UsageError: The client's or the treatment's program, or a variable that the client is to
            get, is not there.
    """
    from pytest_evalarc.runs.session import given_env

    missing = None if is_staged else client.missing()
    if missing is not None:
        raise UsageError(f"client {client.name}", missing)
    if treatment is not None and (missing := treatment.missing()) is not None:
        raise UsageError(f"--evalarc-treatment {treatment.name}", missing)
    try:
        given_env(client.needs, environ)
    except SetupError as error:
        raise UsageError(error.where, error.problem, error.hint) from error


def check_key(label: ClientLabel, client: Client, environ: Mapping[str, str]) -> None:
    """Refuse a client whose key is written down where plans and process lists would show it.

    Raises:
        UsageError: Its command, settings or model hold the value of one of its credentials.
    """
    from pytest_evalarc.runs.redaction import Redaction
    from pytest_evalarc.runs.session import secrets_of

    written = {
        "command": label.command,
        "settings": (json.dumps(label.settings, ensure_ascii=False),),
        "model": (label.model or "",),
    }
    redaction = Redaction(secrets_of(client.needs, environ))
    for place, words in written.items():
        if any(redaction.text(word) != word for word in words):
            raise UsageError(
                f"client {label.label}: {place}",
                f"holds the value of {' or '.join(client.needs.key_env)}, and every plan keeps it",
                "take it out: the client finds it in its environment",
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
