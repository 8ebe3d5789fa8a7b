"""The file that makes a folder a task is a link to nowhere, a pipe, a device, or has no end.

Taken for no task it would vanish without a word, and opened it would hold the session up for ever
or fill its memory: otiai10/copy#47, python/cpython#81882.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import TASK_ID, Project

pytestmark = pytest.mark.slow


def sparse(path: Path) -> None:
    """Make a file of a terabyte that holds nothing."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "link to nowhere": (lambda path: path.symlink_to("gone.toml"), "No such file or directory"),
    "link to itself": (lambda path: path.symlink_to("task.toml"), "Too many levels"),
    "pipe": (os.mkfifo, "it is no regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is no regular file"),
    "folder": (Path.mkdir, "it is no regular file"),
    "terabyte": (sparse, "it is larger than 1,048,576 bytes"),
}


@pytest.mark.parametrize(("make", "told"), KINDS.values(), ids=KINDS)
def test_what_stands_in_place_of_a_task_file_is_a_failed_validation(
    project: Project, make: Callable[[Path], object], told: str
) -> None:
    """And the other tasks beside it are run as ever."""
    project.add_task("other")
    file = project.root / TASK_ID
    file.unlink()
    make(file)

    session = project.pytest("evals", "-k", "validate", "-q")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.counts["failed"] == session.counts["passed"] == 1
    assert f"{TASK_ID}: cannot be read: {told}" in session.stdout


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "is no file of the task"),
        (lambda path: path.symlink_to("/dev/zero"), "is no file of the task"),
        (sparse, "cannot be read: it is larger than 16,777,216 bytes"),
    ],
    ids=["pipe", "device", "terabyte"],
)
def test_a_prompt_without_end_is_told(
    project: Project, make: Callable[[Path], object], told: str
) -> None:
    """It is read when the task is, long before any limit of a trial holds."""
    project.edit(
        'prompt = "Make the greeting say hello to the world."', 'prompt_file = "prompt.md"'
    )
    make(project.root / "evals/tasks/hello/prompt.md")

    session = project.pytest("evals", "-k", "validate", "-q")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert told in session.stdout


@needs_bwrap
def test_a_pipe_in_a_plugin_voids_no_trial_without_it(project: Project) -> None:
    """The treatment cannot be put in place, which is a failure of its own arm alone."""
    os.mkfifo(project.root / "evals/plugins/guide/skills/greet/pipe")

    session = project.pytest("evals", "-m", "evalarc_trial", "--evalarc-client=careless", "-q")

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = {name: each["outcome"] for name, each in project.trial_results().items()}
    assert outcomes == {
        "trial-1-without-skills": "succeeded",
        "trial-1-with-skills": "setup_failure",
    }
