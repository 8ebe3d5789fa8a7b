"""What a client lists at its start in an empty home: its own, and no trial's doing."""

from __future__ import annotations

from pathlib import Path

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Policy, Sandbox
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.base import SCHEMA_VERSION, Model
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Offered
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.runs.batch import Batch
from pytest_evalarc.runs.once import once
from pytest_evalarc.runs.session import session_env

START_S = 60.0
NO_CREDENTIAL = "no-credential-for-a-start-alone"
"""Stands in for a key: a client may list other things when it is told to use another account."""
NAME = "start.json"


class StartDoc(Model):
    """start.json: what a client lists at its start when nobody has given it anything."""

    schema_version: str
    offered: Offered


def recorded_start(
    batch: Batch, plan: PlanDoc, client: Client, sandbox: Sandbox, *, folder: Path
) -> Offered:
    """Return what a client offers of its own, recorded once per batch and kept with the results.

    The session has an empty home and project, no network and no key, and is ended as soon as it
    has listed what it has, so it costs nothing.

    Args:
        batch: The batch.
        plan: Names the label and the model.
        client: The client of the label.
        sandbox: The sandbox of its sessions, proven.
        folder: Where the results of the task and client are.

    Raises:
        SetupError: It was started and listed nothing.
    """
    if client.start_watcher() is None:
        return Offered()
    document = once(
        batch.folders.work / f"start-{plan.client}.json",
        StartDoc,
        lambda: StartDoc(
            schema_version=SCHEMA_VERSION, offered=_offered(batch, plan, client, sandbox)
        ),
    )
    kept = folder / NAME
    if not kept.exists():
        write_atomic(kept, dumps(document.to_json()))
    return document.offered


def _offered(batch: Batch, plan: PlanDoc, client: Client, sandbox: Sandbox) -> Offered:
    layout = RunLayout(root=batch.folders.work / f"start-{plan.client}")
    remove_tree(layout.root)
    for made in (*layout.writable, layout.bin):
        made.mkdir(parents=True)
    try:
        return _listed(batch, plan, client, sandbox, layout)
    finally:
        remove_tree(layout.root)


def _listed(
    batch: Batch, plan: PlanDoc, client: Client, sandbox: Sandbox, layout: RunLayout
) -> Offered:
    program = batch.client_program(plan.client, client)
    env = session_env(layout, Tools(root=layout.bin))
    policy = Policy(
        read=(layout.root, program, python_home(), *client.needs.reads),
        deny_read=batch.deny_read,
        write=layout.writable,
    )
    command = client.launch(
        TaskBrief(name="start", prompt="Say nothing.", agent_deadline_s=START_S),
        layout,
        python=base_python(),
        program_dir=program,
        env={**env, **dict.fromkeys(client.needs.key_env, NO_CREDENTIAL)},
        model=plan.model,
        settings=plan.settings,
        script=None,
        confinement=policy if batch.request.exploratory else None,
    )
    stream, complaints = layout.root / "stream", Capture(0, MIB)
    with stream.open("wb", buffering=0) as file:
        exit = supervise(
            sandbox.wrap(command, policy),
            Watch(
                total_s=START_S,
                polite=True,
                grace_s=1.0,
                is_finished=client.start_watcher(),
                cancelled=batch.cancelled,
            ),
            stdout=Capture(16 * MIB, file=file),
            stderr=complaints,
        )
    found = client.read(stream, exit, layout).offered
    if found is None:
        said = printable(complaints.data(), limit=400).strip() or exit.detail or "nothing"
        raise SetupError(
            f"client {plan.client}",
            f"did not list what it has when it was started in an empty home; it said: {said}",
            "see that it starts by hand with a cleared environment",
        )
    return found
