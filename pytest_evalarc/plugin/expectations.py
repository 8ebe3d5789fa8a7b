"""Ordinary tests that look at trials: a user's own expectations, each over the trials asked for."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_evalarc.errors import EvalArcError, nearest
from pytest_evalarc.plugin.options import Options
from pytest_evalarc.plugin.timeouts import GRACE_S, is_allowed

if TYPE_CHECKING:
    from pytest_evalarc.plugin.session import EvalSession, TrialHandle

NOBODY_ASKED = "no trial was asked for; name a client: pytest {file} --evalarc-client oracle"
OTHERS_ASKED = "what was asked for is of other tasks or configurations"


class _Subject(NamedTuple):
    """What one of the tests looks at: a trial, or what is wrong with the task it would be of."""

    id: str
    folder: Path
    trial: TrialHandle | EvalArcError | None = None


def parametrise(
    metafunc: pytest.Metafunc, tasks: Path, options: Options, session: Callable[[], EvalSession]
) -> None:
    """Give a test that takes `evalarc_trial` each trial, and one that takes a task each task.

    Where no trial was asked for it is one skipped test that says how to ask: nothing is started
    that nobody asked for.

    Args:
        metafunc: The test.
        tasks: The folder of tasks.
        options: Those of the session.
        session: Returns what the process holds of the evals, which is heavy.

    Raises:
        pytest.Collector.CollectError: A marker names no task.
    """
    _check_task_markers(metafunc, tasks)
    names = [name for name in ("evalarc_trial", "evalarc_task") if name in metafunc.fixturenames]
    reason = OTHERS_ASKED
    if "evalarc_trial" not in names:
        subjects = [_Subject(folder.name, folder) for folder in _folders(metafunc, session())]
    elif options.are_trials_asked_for():
        subjects = list(_trials(metafunc, session()))
    else:
        subjects = []
        reason = NOBODY_ASKED.format(file=metafunc.definition.nodeid.partition("::")[0])
    parameters = [_parameter(metafunc, subject, names) for subject in subjects]
    if not parameters:
        # The mark keeps the fixtures from being made, so nobody sees what stands in their place.
        parameters = [pytest.param(*names, id="none", marks=pytest.mark.skip(reason))]
    metafunc.parametrize(names, parameters, indirect=True)


def trial_id(trial: TrialHandle) -> str:
    """Return how a trial is called in the id of an ordinary test."""
    return f"{trial.task.name}-{trial.plan.client}-{trial.configuration}-{trial.number:03d}"


def trials_by_id(evals: EvalSession) -> Mapping[str, tuple[str, ...]]:
    """Return each trial asked for by its id, as the parts of its node's id."""
    if not evals.options.are_trials_asked_for():
        return {}
    return {
        subject.id: (
            task_id(evals, subject.folder),
            trial.plan.client,
            trial.configuration,
            f"trial-{trial.number:03d}",
        )
        for folder in selected_folders(evals)
        for subject in _trials_of(evals, folder)
        if (trial := subject.trial) is not None and not isinstance(trial, EvalArcError)
    }


def task_id(evals: EvalSession, folder: Path) -> str:
    """Return the node id of a task's file."""
    return Path(os.path.relpath(folder / "task.toml", evals.request.project)).as_posix()


def _parameter(metafunc: pytest.Metafunc, subject: _Subject, names: Sequence[str]) -> Any:
    values = {"evalarc_trial": subject.trial, "evalarc_task": subject.folder}
    marks = []
    if (
        subject.trial
        and not isinstance(subject.trial, EvalArcError)
        and is_allowed(metafunc.config)
    ):
        deadlines = subject.trial.task.deadlines
        allowed_s = deadlines.trial + GRACE_S
        marks.append(pytest.mark.timeout(allowed_s))
    return pytest.param(*(values[name] for name in names), id=subject.id, marks=marks)


def _trials(metafunc: pytest.Metafunc, evals: EvalSession) -> Iterator[_Subject]:
    """Yield the trials that a test looks at, in the order of the plans."""
    for folder in _folders(metafunc, evals):
        for subject in _trials_of(evals, folder):
            configuration = getattr(subject.trial, "configuration", None)
            if configuration is None or _is_marked(
                metafunc, "evalarc_configuration", configuration
            ):
                yield subject


def _trials_of(evals: EvalSession, folder: Path) -> Iterator[_Subject]:
    if evals.work is not None:
        return
    try:
        task = evals.task(folder)
    except EvalArcError as error:
        yield _Subject(folder.name, folder, error)
        return
    for label in evals.clients_for(folder / "task.toml"):
        plan = evals.plan(task, label)
        for entry in plan.trials:
            trial = evals.handle(task, plan, entry)
            yield _Subject(trial_id(trial), folder, trial)


def _folders(metafunc: pytest.Metafunc, evals: EvalSession) -> Iterator[Path]:
    for folder in selected_folders(evals):
        if _is_marked(metafunc, "evalarc_task", folder.name):
            yield folder


def selected_folders(evals: EvalSession) -> Iterator[Path]:
    """Yield the folders of the tasks that the options select, invalid ones too: they are told."""
    for path in sorted(evals.request.tasks.glob("*/task.toml")):
        folder = path.parent
        if evals.has_wanted_name(folder.name) and not evals.is_foreign(folder):
            try:
                is_wanted = evals.has_wanted_tag(evals.task(folder))
            except EvalArcError:
                is_wanted = True
            if is_wanted:
                yield folder


def _is_marked(metafunc: pytest.Metafunc, marker: str, name: str) -> bool:
    """Whether every marker of a kind, the test's own and its module's, lets a name pass."""
    return all(
        any(fnmatch.fnmatchcase(name, pattern) for pattern in mark.args)
        for mark in metafunc.definition.iter_markers(marker)
    )


def _check_task_markers(metafunc: pytest.Metafunc, tasks: Path) -> None:
    """Refuse a marker that no task answers to: its test would never run, and never say so."""
    for mark in metafunc.definition.iter_markers("evalarc_task"):
        names = sorted(path.parent.name for path in tasks.glob("*/task.toml"))
        for pattern in mark.args:
            if not fnmatch.filter(names, pattern):
                problem = f"{metafunc.definition.nodeid}: evalarc_task({pattern!r}) names no task"
                hint = nearest(pattern, tuple(names))
                raise pytest.Collector.CollectError(f"{problem}; {hint}" if hint else problem)
