"""A small task for real clients: its trials take seconds, so many things can be tried in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.model_server import Script
from tests.model_server.tasks import solve
from tests.system.evaluation import TasksProject

TASK = "url-slugs"
SKILL = "fixture-settings"
_EXAMPLE = Path(__file__).parents[2] / "docs/examples/first-task/evals/tasks" / TASK
_TOML = """\
kind = "capability"
prompt = {prompt}
toolchain = "python"
editable = ["slugs.py"]
plugins = ["{skill}"]

[deadlines]
agent = {deadline_s}

[expected]
{expected}

[checks.words_are_joined]
dimension = "words"
"""


def add_small_task(
    project: TasksProject,
    *,
    prompt: str = '"Write the function `slug` in slugs.py, as its docstring says."',
    expected: str = f'used = ["{SKILL}"]',
    deadline_s: int = 60,
) -> Path:
    """Add the task to a project, and return its folder.

    Args:
        project: The project; its other tasks are taken out.
        prompt: The prompt, as TOML.
        expected: The lines of `[expected]`.
        deadline_s: Seconds that a session may take.
    """
    shutil.rmtree(project.root / "evals/tasks")
    folder = project.root / "evals/tasks" / TASK
    shutil.copytree(_EXAMPLE, folder)
    toml = _TOML.format(prompt=prompt, skill=SKILL, expected=expected, deadline_s=deadline_s)
    (folder / "task.toml").write_text(toml, "utf-8")
    return folder


def solved(folder: Path, first: Script | None = None) -> Script:
    """Return a session that does something first, then loads the skill and solves the task."""
    return (first or Script(())) + solve(folder)
