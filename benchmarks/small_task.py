"""A task that is valid and costs next to nothing beside what is measured."""

from __future__ import annotations

from pathlib import Path

CHECKS = 8
ITEMS_OF_A_TRIAL = CHECKS + 2
"""`run`, each check and `success`."""


def write_small_task(task: Path, *, checks: int = CHECKS, solved: bool = False) -> None:
    """Write a task with so many checks, with a solution for the oracle or without one."""
    names = [f"check_{number}" for number in range(checks)]
    (task / "starter").mkdir(parents=True)
    (task / "checks").mkdir()
    (task / "starter" / "answer.py").write_text("value = 1\n", "utf-8")
    for name in names:
        body = "from answer import value\n\n\ndef test_it():\n    assert value == 2\n"
        (task / "checks" / f"{name}.py").write_text(body, "utf-8")
    if solved:
        (task / "solution").mkdir()
        (task / "solution" / "answer.py").write_text("value = 2\n", "utf-8")
    head = 'kind = "capability"\nprompt = "Do it."\n'
    head += 'toolchain = "python"\neditable = ["answer.py"]\n'
    tables = "".join(f"[checks.{name}]\n" for name in names)
    (task / "task.toml").write_text(head + tables, "utf-8")
