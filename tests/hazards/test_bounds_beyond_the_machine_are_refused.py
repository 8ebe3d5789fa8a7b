"""A number passes the parser and breaks what it was for: a clock overflows, the kernel says no.

A deadline of 1e300 seconds is finite and above zero, and no timer can wait for it: the timer dies
and the deadline with it. A limit of 2^63 processes is a whole number, and every control of the
audit then fails as if the machine were broken. Both are typing errors of an author, to be told with
file and line before anything runs: python/cpython#157201, hukkin/tomli#304.
"""

from __future__ import annotations

import threading

import pytest

from pytest_evalarc.model.task import MOST_CPUS, MOST_MIB, MOST_PROCESSES, MOST_SECONDS
from tests.needs import needs_bwrap
from tests.plugin.project import Project as RunProject
from tests.tasks.project import LABEL, Project

MIB = ("memory_mib", "tmp_mib", "output_mib", "disk_mib")
BEYOND = [
    *(("deadlines", key, "1e300", "2,592,000") for key in ("setup", "agent", "grading", "check")),
    ("deadlines", "agent", f"{MOST_SECONDS + 1}", "2,592,000"),
    *(("limits", key, f"{2**63 - 1}", "1,073,741,824") for key in MIB),
    ("limits", "processes", f"{2**63 - 1}", "1,048,576"),
    ("limits", "processes", f"{MOST_PROCESSES + 1}", "1,048,576"),
    ("limits", "cpus", "1e300", "1,024"),
]


def set_key(project: Project, table: str, key: str, value: str) -> None:
    """Write a key in place of the one that the table of the small task has."""
    old = {"deadlines": "agent = 60", "limits": "memory_mib = 512"}[table]
    project.edit(old, f"{key} = {value}")


@pytest.mark.parametrize(("table", "key", "value", "most"), BEYOND)
def test_more_than_any_machine_has_is_told_with_its_line(
    written: Project, table: str, key: str, value: str, most: str
) -> None:
    """Otherwise the mistake comes back as a fault of the machine, in every result."""
    set_key(written, table, key, value)

    (sentence,) = written.problems()

    where = f"{LABEL}:{written.line(f'{key} = {value}')} [{table}] {key}: must be at most {most}"
    assert sentence.startswith(f"{where}, found ")


@pytest.mark.parametrize("value", ["0.009", "1e-300"])
def test_less_than_a_machine_can_grant_is_told(written: Project, value: str) -> None:
    """The kernel refuses such a share, and no audit would start."""
    set_key(written, "limits", "cpus", value)

    (sentence,) = written.problems()

    assert "[limits] cpus: must be at least 0.01, found " in sentence


def test_a_check_s_own_deadline_has_the_same_bound(written: Project) -> None:
    """It ends in the same timer."""
    written.edit("deadline = 5", "deadline = 1e300")

    (sentence,) = written.problems()

    assert "[checks.persists] deadline: must be at most 2,592,000, found 1e+300" in sentence


def test_a_timer_can_wait_for_the_longest_deadline() -> None:
    """All four of them one after the other, and the grace around them."""
    assert 5 * MOST_SECONDS < threading.TIMEOUT_MAX


@needs_bwrap
@pytest.mark.slow
def test_the_widest_bounds_run(project: RunProject) -> None:
    """What is not refused must hold: the kernel takes the largest of each."""
    project.edit(
        "agent = 60",
        "".join(f"{key} = {MOST_SECONDS}\n" for key in ("setup", "agent", "grading", "check"))
        + "\n[limits]\n"
        + "".join(f"{key} = {MOST_MIB}\n" for key in MIB)
        + f"processes = {MOST_PROCESSES}\ncpus = {MOST_CPUS}\n",
    )

    session = project.pytest("evals", "--evalarc-client=good", "-W", "error", "-q")

    assert session.ret == 0
    assert project.document("audit.json")["mutation_score"] == 1.0
