"""A trial prepared: its run folder made, its treatment in place, its client ready to start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_evalarc.clients.protocol import Client
from pytest_evalarc.counting.plan import is_treated
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.atomic import write_atomic
from pytest_evalarc.files.strict import dumps
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.lab import FileLab, PackLab, pack_of
from pytest_evalarc.grading.submission import copy_fixtures, make_control
from pytest_evalarc.grading.toolchain import Tools
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.clock import AWAKE
from pytest_evalarc.isolation.command import Command, Ended, Policy, Sandbox
from pytest_evalarc.isolation.host import base_python, python_home
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.limits import MIB
from pytest_evalarc.isolation.supervise import Watch, supervise
from pytest_evalarc.model.controls import STARTER
from pytest_evalarc.model.planned import PlannedTrial
from pytest_evalarc.model.task import Limits, Plugin, Task
from pytest_evalarc.model.trial import PlanDoc
from pytest_evalarc.runs.batch import UNBOUND, Batch
from pytest_evalarc.runs.draft import Draft
from pytest_evalarc.runs.intact import require_intact
from pytest_evalarc.runs.redaction import Redaction
from pytest_evalarc.runs.scripts import script_for
from pytest_evalarc.runs.session import Ready, given_env, secrets_of, session_env
from pytest_evalarc.runs.start import recorded_start
from pytest_evalarc.runs.visible import require_visible
from pytest_evalarc.tasks.plugins import plugins_in
from pytest_evalarc.treatments.prelaunch import require_fresh, require_nothing_above
from pytest_evalarc.treatments.protocol import Staged, Treatment
from pytest_evalarc.treatments.snapshot import snapshot

SESSION_LIMITS = Limits(
    memory_mib=8192, processes=1024, cpus=4.0, tmp_mib=2048, output_mib=256, disk_mib=8192
)
"""What a real client and all that it starts may use. It is an agent with a compiler, not a graded
process, so a task's own limits would end it; yet no session may take the machine from the others.
"""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One planned trial with everything it takes to run it."""

    plan: PlanDoc
    entry: PlannedTrial
    task: Task
    client: Client
    treatment: Treatment | None
    batch: Batch
    folder: Path
    """The result folder."""
    boundary: Sandbox | None = None
    """The sandbox of the session, not proven yet; None is the one that the checks run in."""

    @property
    def layout(self) -> RunLayout:
        """The run folder."""
        return self.batch.folders.run(self.task.name, self.plan.client, self.entry)

    @property
    def is_treated(self) -> bool:
        """Whether the treatment is put in place."""
        return is_treated(self.entry.configuration)

    @cached_property
    def sandbox(self) -> Sandbox:
        """The sandbox of the session, proven.

        Raises:
            InfrastructureError: It does not start, or does not hold what it promises.
        """
        return self.batch.sandbox if self.boundary is None else self.batch.proven(self.boundary)

    @property
    def limits(self) -> Limits:
        """What the session may use."""
        return self.task.limits if self.client.embedded else SESSION_LIMITS


class PrelaunchError(SetupError):
    """A pre-launch check failed."""


def prepare(trial: Trial, draft: Draft) -> Ready:
    """Make the run folder, put the treatment in place, and render how the client starts.

    Raises:
        PrelaunchError: Something was there that no trial may start with.
        SetupError: Something of the task, the treatment or the client is not there.
        InfrastructureError: The sandbox cannot be used.
        Exception: A toolchain, treatment or client of a plugin's may raise anything.
    """
    started_s = AWAKE.now_s()
    lab = trial.batch.lab(trial.task)
    draft.toolchain = lab.toolchain.version
    draft.fmt_step = lab.toolchain.fmt_step
    sandbox = trial.sandbox
    draft.isolation = sandbox.record(trial.limits)
    tools = trial.batch.tools(trial.task)
    _make_run_folder(trial, lab)
    env = session_env(trial.layout, tools)
    staged = _treat(trial, env)
    require_intact(trial.task, lab)
    program = trial.batch.client_program(trial.plan.client, trial.client)
    policy = _policy(trial, lab, tools, staged, program)
    command = _command(
        trial, lab, staged, program=program, env=_whole_env(trial, env, staged), policy=policy
    )
    draft.redaction = Redaction((*command.secrets, *secrets_of(trial.client.needs, os.environ)))
    if sandbox.name not in UNBOUND:
        require_visible(Path(command.argv[0]), policy)
    if staged is not None and trial.treatment is not None:
        _initialise(trial, staged, policy)
        trial.treatment.verify(staged)
        draft.treatment = trial.treatment.ref(staged)
        draft.symposium = staged.symposium
    # What the sandbox is told may name what the treatment has put there.
    draft.policy = sandbox.document(policy)
    write_atomic(trial.folder / f"{sandbox.name}.json", dumps(draft.policy))
    ready = Ready(
        lab=lab,
        staged=staged,
        policy=policy,
        wrapped=sandbox.wrap(command, policy),
        deadline_s=trial.task.deadlines.agent,
        watcher=trial.client.watcher(),
        own=recorded_start(
            trial.batch, trial.plan, trial.client, sandbox, folder=trial.folder.parent
        ),
        # Last, for whatever the treatment's own programs write is no change of the session's.
        config=snapshot(trial.layout, trial.client.needs.places.watched),
    )
    _require_in_time(trial, AWAKE.now_s() - started_s)
    return ready


def _make_run_folder(trial: Trial, lab: FileLab | PackLab) -> None:
    layout = trial.layout
    remove_tree(layout.root)
    for folder in (*layout.writable, layout.bin):
        folder.mkdir(parents=True)
    make_control(trial.task, STARTER, layout.project, pack=pack_of(lab))
    copy_fixtures(trial.task, layout.fixtures)
    (layout.bin / "sh").symlink_to("/bin/sh")


def _treat(trial: Trial, env: Mapping[str, str]) -> Staged | None:
    """Prove that nothing of the treatment is there, then put it in place where it is planned."""
    treatment, needs, layout = trial.treatment, trial.client.needs, trial.layout
    try:
        if trial.sandbox.name in UNBOUND:
            require_nothing_above(layout, needs.places.above)
        if treatment is None:
            require_fresh(layout, needs, treated=False, env=env)
        else:
            treatment.prelaunch(layout, needs, treated=trial.is_treated, env=env)
    except SetupError as error:
        raise PrelaunchError(error.where, error.problem, error.hint) from error
    if treatment is None or not trial.is_treated:
        return None
    staged = treatment.stage(
        trial.task,
        needs,
        layout,
        env=env,
        tools=trial.batch.treatment_tools(treatment),
        noise=_noise(trial.task) if trial.entry.configuration == "noise" else (),
    )
    for name, program in staged.links.items():
        (layout.bin / name).symlink_to(program)
    return staged


def _noise(task: Task) -> tuple[Plugin, ...]:
    """Return all other plugins that lie beside the folder of tasks."""
    own = {os.path.realpath(plugin.root) for plugin in task.plugins}
    beside = plugins_in(task.root.parent.parent / "plugins")
    return tuple(plugin for plugin in beside if os.path.realpath(plugin.root) not in own)


def _initialise(trial: Trial, staged: Staged, policy: Policy) -> None:
    """Run what the treatment needs to have run, inside the boundary of the session.

    It runs without the client's key and without a network: the treatment gets neither.
    """
    for command in staged.init:
        said = Capture(0, MIB)
        exit = supervise(
            trial.sandbox.wrap(command, replace(policy, domains=())),
            Watch(total_s=trial.task.deadlines.setup, cancelled=trial.batch.cancelled),
            stdout=Capture(0, MIB),
            stderr=said,
        )
        if exit.reason is Ended.CANCELLED:
            raise KeyboardInterrupt("the preparation was cancelled")
        if exit.status != 0 or exit.reason is not Ended.EXITED:
            complaint = printable(said.data(), limit=400).strip() or exit.detail
            raise SetupError(
                f"treatment {trial.plan.treatment}: {' '.join(command.argv)}",
                f"ended with {exit.reason.value}, status {exit.status}: {complaint}",
                "see that it runs by hand with an empty home",
            )


def _command(
    trial: Trial,
    lab: FileLab | PackLab,
    staged: Staged | None,
    *,
    program: Path,
    env: Mapping[str, str],
    policy: Policy,
) -> Command:
    settings = trial.plan.settings
    return trial.client.launch(
        trial.task.brief,
        trial.layout,
        python=base_python(),
        program_dir=program,
        env=env,
        model=trial.plan.model,
        settings=settings,
        script=script_for(
            trial.client,
            trial.task,
            trial.entry,
            staged=staged,
            settings=settings,
            project=trial.batch.request.project,
            pack=pack_of(lab),
        ),
        plugins=staged.plugins if staged else (),
        confinement=policy if trial.batch.request.exploratory else None,
    )


def _whole_env(trial: Trial, session: Mapping[str, str], staged: Staged | None) -> dict[str, str]:
    """Return the whole environment of the session, the client's key included.

    Raises:
        SetupError: A variable that the client is to get is not there, or is one of ours.
    """
    ours = {**session, **(staged.env if staged else {})}
    given = given_env(trial.client.needs, os.environ)
    if clash := sorted(ours.keys() & given):
        problem = "is set by every session, so the client cannot get the harness's own"
        raise SetupError(f"variable {clash[0]}", problem, "take it out of the client's table")
    return {**ours, **given}


def _policy(
    trial: Trial, lab: FileLab | PackLab, tools: Tools, staged: Staged | None, program: Path
) -> Policy:
    reads = (trial.layout.root, program, python_home(), tools.root, *tools.reads)
    return Policy(
        read=(*reads, *trial.client.needs.reads, *(staged.reads if staged else ())),
        # What judges is denied to the client too: a pack's code holds its references.
        deny_read=lab.deny_read,
        write=trial.layout.writable,
        domains=trial.client.needs.domains,
        limits=trial.limits,
    )


def _require_in_time(trial: Trial, spent_s: float) -> None:
    deadline_s = trial.task.deadlines.setup
    if spent_s > deadline_s:
        raise SetupError(
            f"task {trial.task.name}: preparing {trial.entry.folder}",
            f"took {spent_s:.0f} s, longer than its deadline of {deadline_s:.0f} s",
            "raise [deadlines] setup",
        )
