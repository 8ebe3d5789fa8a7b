"""Budgets of a batch: what a session under one starts, shows, and goes on with."""

from __future__ import annotations

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

SPENDERS = """
from dataclasses import dataclass, field
from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.clients.stream import read_stream
from shell import DONE, SKILL, START, WORK, ShellClient, line

@dataclass(frozen=True, kw_only=True)
class Priced(ShellClient):
    needs: Needs = field(default_factory=lambda: Needs(reports_cost=True))

    def read(self, stdout, exit, layout):
        found = read_stream(stdout, true_bytes=exit.stdout_bytes)
        priced = found.usage.model_copy(update={"cost_usd": 0.25})
        return found.model_copy(update={"usage": priced})

def pytest_evalarc_clients():
    usage = line(type="usage", input_tokens=90, output_tokens=10)
    script = START + SKILL + WORK + usage + DONE
    return {
        "spender": lambda: ShellClient(name="spender", script=script),
        "priced": lambda: Priced(name="priced", script=script),
    }
"""

RUN = ("evals", "-m", "evalarc_trial", "--evalarc-batch=night", "--evalarc-trials=3")
SPENDER = (*RUN, "--evalarc-client=spender")


@pytest.fixture
def spending(project: Project) -> Project:
    """Return a project with clients whose sessions use 100 tokens each."""
    project.write("evals/conftest.py", SPENDERS)
    return project


def causes(project: Project) -> dict[str, dict[str, int]]:
    configurations = project.document("benchmark.json")["configurations"]
    return {name: counted["causes"]["cancelled"] for name, counted in configurations.items()}


def test_a_batch_ends_with_whole_rounds_and_goes_on_with_a_larger_budget(
    spending: Project, pytester: pytest.Pytester
) -> None:
    """Both configurations have as many trials, no final result is written, and nothing failed."""
    session = spending.inline(pytester, *SPENDER, "--evalarc-max-tokens=300", "-rs")

    assert session.ret == 0
    assert len(spending.starts()) == 4
    assert session.counts == {"passed": 20, "skipped": 10, "deselected": 6}
    assert "not started: the budget is used up: 400 of 300 tokens are used" in session.stdout
    assert "\nbudget: 400 of 300 tokens are used\n" in session.stdout
    assert "cancelled: 1 budget" in session.stdout
    assert causes(spending) == {
        "without-skills": {"budget": 1},
        "with-skills": {"budget": 1},
    }
    assert len(spending.trial_results()) == 4

    more = spending.inline(pytester, *SPENDER, "--evalarc-max-tokens=500")

    assert more.ret == 0
    assert len(spending.starts()) == len(set(spending.starts())) == 6
    assert causes(spending) == {"without-skills": {}, "with-skills": {}}
    assert spending.document("benchmark.json")["selection"] == "complete"


def test_workers_keep_one_budget(spending: Project) -> None:
    """Each asks for itself, and rounds stay whole; those under way at once may exceed it."""
    session = spending.pytest(*SPENDER, "--evalarc-trials=8", "--evalarc-max-tokens=200", "-n2")

    configurations = spending.document("benchmark.json")["configurations"]
    rounds = {counted["succeeded"] for counted in configurations.values()}
    assert session.ret == 0, session.stdout
    assert len(rounds) == 1
    assert 1 <= rounds.pop() <= 3
    for counted in configurations.values():
        assert counted["causes"]["cancelled"] == {"budget": 8 - counted["succeeded"]}


LINED_UP = """
import time
from pytest_evalarc.runs.slots import LocalSlots

alone = LocalSlots.line_up

def line_up(self, client, place):
    waiting = alone(self, client, place)
    seen = self.folders.results.parent / "lined_up"
    seen.mkdir(exist_ok=True)
    (seen / f"{place.round}.{place.order}").touch()
    while len(list(seen.iterdir())) < 3:
        time.sleep(0.01)
    return waiting

LocalSlots.line_up = line_up
"""
"""Lets no worker look for its turn before the trials of all three have lined up."""


def test_a_budget_is_looked_at_once_a_slot_is_free(spending: Project) -> None:
    """What waits for a slot has used nothing yet: it must not be let in before it may run."""
    spending.write("evals/conftest.py", SPENDERS + LINED_UP)

    session = spending.pytest(
        *(*SPENDER, "--evalarc-trials=8", "--evalarc-max-tokens=200", "-n3"),
        "--evalarc-max-parallel=spender=1",
    )

    assert session.ret == 0, session.stdout
    assert sorted(spending.starts()) == ["trial-1-with-skills", "trial-1-without-skills"]
    assert causes(spending) == {
        "without-skills": {"budget": 7},
        "with-skills": {"budget": 7},
    }


def test_money_is_a_budget_for_a_client_that_tells_it(
    spending: Project, pytester: pytest.Pytester
) -> None:
    """The mean is in the table then, and the sum below it."""
    session = spending.inline(
        pytester, *RUN, "--evalarc-client=priced", "--evalarc-max-cost-usd=0.5"
    )

    assert session.ret == 0
    assert len(spending.starts()) == 2
    assert "budget: 0.50 of 0.50 US dollars are used" in session.stdout
    (heads,) = [line for line in session.stdout.splitlines() if "agent s" in line]
    (row,) = [line for line in session.stdout.splitlines() if line.startswith("  with-skills ")]
    assert heads.split()[-2:] == ["US", "$"]
    assert row.split()[-1] == "0.25"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--evalarc-client=spender", "--evalarc-max-cost-usd=1"),
        ("--evalarc-client=oracle", "--evalarc-max-cost-usd=1"),
        ("--evalarc-trials=1", "--evalarc-max-cost-usd=1"),
    ],
)
def test_a_budget_of_money_needs_a_client_that_tells_it(
    spending: Project, pytester: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    """It would never be reached, and whoever relied on it would pay."""
    session = spending.inline(pytester, "evals", *arguments)

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert "does not report what its sessions cost" in session.stderr
    assert spending.starts() == []


def test_a_projects_budget_of_money_does_not_keep_the_embedded_clients(
    spending: Project, pytester: pytest.Pytester
) -> None:
    """They cost nothing, and a project writes its budget down for its agents."""
    spending.write("pytest.ini", "[pytest]\nevalarc_max_cost_usd = 1\nevalarc_max_tokens = 1\n")

    session = spending.inline(pytester, *RUN, "--evalarc-client=nop", "--co")
    refused = spending.inline(pytester, *SPENDER, "--co")

    assert session.ret == 0
    assert refused.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("option", ["max-tokens", "max-cost-usd"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e3", "many", "0.0", "1_000"])
def test_a_budget_that_is_no_amount_is_told(
    project: Project, pytester: pytest.Pytester, option: str, value: str
) -> None:
    """One that is misread is no limit at all."""
    session = project.inline(pytester, "evals", f"--evalarc-{option}={value}")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--evalarc-{option} '{value}'" in session.stderr
