"""The summary of a benchmark: which columns and remarks a reader sees, and how wide."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_evalarc.counting.power import power_sentence
from pytest_evalarc.model.benchmark import Benchmark
from pytest_evalarc.model.shown import Shown
from pytest_evalarc.plugin.benchmark_table import (
    benchmark_line,
    benchmark_lines,
    verdict_colour,
)
from pytest_evalarc.plugin.tables import WIDTH, aligned, shortened, signed, wrapped
from tests.needs import needs_bwrap
from tests.plugin.project import TASK, Project


def configuration(*, served: dict[str, int], cost: float | None = None) -> dict[str, Any]:
    """Return two trials of which one succeeded."""
    over = {
        "tokens": {"mean": 1200, "trials": 2},
        "agent_secs": {"mean": 3.0, "trials": 2},
        "cost_usd": {"mean": cost, "trials": 0 if cost is None else 2},
    }
    return {
        "planned": 2,
        "setup_failures": 0,
        "cancelled": 0,
        "started": 2,
        "excluded": {"isolation": 0, "grading": 0},
        "eligible": 2,
        "succeeded": 1,
        "failed": 1,
        "inconclusive": 0,
        "success_rate": 0.5,
        "ci95": {"low": 0.09, "high": 0.91},
        "pass_at_k": {1: 0.5, 2: 1.0},
        "pass_pow_k": {1: 0.5, 2: 0.0},
        "pass_all": False,
        "code": {"passed": 1, "eligible": 2, "rate": 0.5},
        "causes": {"setup_failures": {}, "cancelled": {}, "excluded": {}, "failed": {}},
        "cost": {"eligible": over, "succeeded": over},
        "served": served,
    }


def benchmark(
    *,
    reason: str | None = None,
    verdict: Shown | None = None,
    cost: float | None = None,
    treatment: str = "skills",
    **served: Any,
) -> Benchmark:
    """Return a benchmark of two configurations, each answered as `served` says."""
    figures = {"tokens": None, "agent_secs": None, "cost_usd": None if cost is None else 0.0}
    return Benchmark.model_validate(
        {
            "schema_version": "1.0",
            "batch": "b1",
            "task": "hello",
            "kind": "capability",
            "content_hash": "c" * 64,
            "client": "claude",
            "treatment": treatment,
            "isolation": "enforced",
            "selection": "complete",
            "configurations": {
                f"{name}-{treatment}": configuration(served=models, cost=cost)
                for name, models in served.items()
            },
            "delta": {
                "success_rate": None if reason else 0.0,
                "success_rate_ci95": None if reason else {"low": -0.6, "high": 0.6},
                "matched": None,
                "p_value": None,
                "verdict": verdict,
                "code_rate": None,
                "cost": {"eligible": figures, "succeeded": figures},
                "reason": reason,
            },
        }
    )


def test_models_that_differ_are_told_in_one_sentence() -> None:
    """A dash in place of a delta would leave the reader to guess."""
    lines = benchmark_lines(
        benchmark(
            reason="models_differ",
            without={"big-1": 2},
            **{"with": {"big-1": 1, "big-1 + small\x1b": 1}},
        )
    )

    assert lines[-1] == (
        "models differ, so there is no delta: without-skills was answered by big-1 (2); "
        r"with-skills was answered by big-1 (1), big-1 + small\x1b (1)"
    )


def test_money_has_a_column_only_where_it_is_known() -> None:
    """Most clients tell none, and a column of dashes says nothing."""
    _, heads, *rows, delta = benchmark_lines(benchmark(cost=0.125, without={}, **{"with": {}}))

    assert heads.endswith("agent s   US $")
    assert [row.split()[-1] for row in rows] == ["0.12", "0.12"]
    assert all(len(row) <= WIDTH for row in rows)
    assert delta.split()[-1] == "+0.00"
    _, heads, row, *_ = benchmark_lines(benchmark(without={}, **{"with": {}}))
    assert heads.endswith("agent s")
    assert row.endswith("3.00")


def test_rates_stand_beside_their_intervals() -> None:
    """A rate of two trials says little, and the interval says how little."""
    lines = benchmark_lines(
        benchmark(verdict=Shown.TOO_FEW, without={}, **{"with": {}}),
    )

    assert lines == [
        "hello: trials with claude",
        "too few trials to tell whether skills helped",
        "configuration   succeeded   rate   95 % interval  code  tokens  agent s",
        "without-skills     1 of 2   0.50    0.09 to 0.91  0.50    1200     3.00",
        "with-skills        1 of 2   0.50    0.09 to 0.91  0.50    1200     3.00",
        "delta                      +0.00  -0.60 to +0.60     -       -        -",
    ]


@pytest.mark.parametrize(
    ("verdict", "told", "colour"),
    [
        (Shown.HELPED, "skills helped", "green"),
        (Shown.HARMED, "skills harmed", "red"),
        (Shown.NO_DIFFERENCE, "no difference is shown for skills", "yellow"),
        (Shown.TOO_FEW, "too few trials to tell whether skills helped", "yellow"),
    ],
)
def test_the_verdict_stands_above_the_table(verdict: Shown, told: str, colour: str) -> None:
    """It is what a reader came for."""
    found = benchmark(verdict=verdict, without={}, **{"with": {}})

    assert benchmark_lines(found)[1] == told
    assert verdict_colour(found) == colour
    assert benchmark_line(found) == (
        "hello: trials with claude: without-skills 1 of 2, with-skills 1 of 2, "
        f"delta +0.00 (-0.60 to +0.60), {told}"
    )


def test_long_names_are_shortened_and_never_wrapped() -> None:
    """A row that goes on in the next line is no row of a table."""
    found = benchmark(
        cost=1234.5, verdict=Shown.HELPED, treatment="t" * 60, without={}, **{"with": {}}
    )

    table = benchmark_lines(found)[2:6]

    assert max(map(len, table)) <= WIDTH
    assert table[1].startswith("without-ttt")
    assert "ttt…  " in table[1]
    assert table[1].split()[-1] == "1234"


def test_a_table_gives_way_in_its_first_column_alone() -> None:
    """Numbers that are cut would be other numbers."""
    rows = [("name", "number"), ("n" * 40, "1" * 20)]

    assert aligned(rows, width=40) == [
        "name" + " " * 30 + "number",
        "n" * 17 + "…  " + "1" * 20,
    ]
    assert aligned(rows, width=20)[1] == "n" * 7 + "…  " + "1" * 20
    assert shortened("short", 5) == "short"
    assert shortened("longer", 5) == "long…"


def test_verbose_tells_each_cause_and_who_answered() -> None:
    """One line a cause is easier to look up than a sentence of all."""
    found = benchmark(without={}, **{"with": {"big-1": 2}})
    counted = found.configurations["with-skills"]
    causes = {**counted.causes, "failed": {"timeout": 1}, "excluded": {"grading": 2}}
    more = counted.model_copy(update={"causes": causes, "planned": 4})
    found = found.model_copy(update={"configurations": {"with-skills": more}})

    brief = benchmark_lines(found)
    verbose = benchmark_lines(found, verbose=True)

    assert brief[-2:] == [
        "with-skills: 2 of 4 planned trials count",
        "with-skills: excluded: 2 grading; failed: 1 timeout",
    ]
    assert "with-skills: excluded: grading: 2 trials" in verbose
    assert "with-skills: failed: timeout: 1 trial" in verbose
    assert "with-skills: answered by big-1: 2 trials" in verbose


@needs_bwrap
@pytest.mark.slow
def test_quiet_has_one_line_for_each_document(project: Project, pytester: pytest.Pytester) -> None:
    """Whoever asks for less still learns what came out and where it lies."""
    session = project.inline(pytester, "--evalarc-task=hello", "--evalarc-batch=night", "-q")

    told = session.stdout.partition(" evalarc =")[2].splitlines()[1:-1]
    assert told == [
        "hello: audit: mutation score 1.00 (2 of 2 detected), weakest margin 1 "
        "(results/hello/audit/night/audit.json)",
        "hello: trials with oracle: without-skills 1 of 1, with-skills 1 of 1, "
        "delta +0.00 (-0.79 to +0.79), too few trials to tell whether skills helped "
        "(results/hello/oracle/night/benchmark.json)",
    ]


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize(("option", "is_coloured"), [("yes", True), ("no", False)])
def test_colours_are_those_that_pytest_is_told(
    option: str, is_coloured: bool, project: Project, pytester: pytest.Pytester
) -> None:
    """A log file must hold no codes of a terminal."""
    session = project.inline(
        pytester, "evals", "-m", "evalarc_trial", "--evalarc-client=nop", f"--color={option}"
    )

    (line,) = [each for each in session.stdout.splitlines() if "too few trials" in each]
    assert bool(re.search("\x1b\\[33m", line)) is is_coloured
    assert ("\x1b" in line) is is_coloured


def test_a_run_with_trials_begins_with_what_they_can_show(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Whoever plans too few learns it before hours are spent."""
    few = project.inline(pytester, "evals", "--co", "--evalarc-trials=2")
    many = project.inline(pytester, "evals", "--co", "--evalarc-trials=20")
    bare = project.inline(pytester, "evals", "--co")

    told = "2 trials for each configuration are too few to tell a difference; plan at least 5"
    assert f"evalarc: {told}" in unwrapped(few.stdout)
    assert unwrapped(few.stdout).count(told) == 2
    assert "evalarc: 20 trials for each configuration are likely to show a difference" in (
        unwrapped(many.stdout)
    )
    assert "for each configuration" not in bare.stdout


def unwrapped(text: str) -> str:
    """Return a text whose lines no width has parted."""
    return " ".join(text.split())


def test_nothing_is_said_of_differences_where_nothing_is_compared(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A task without a treatment has no difference that more trials could show."""
    expected = '[expected]\ninstalled = ["greet"]\nused = ["greet"]\n\n'
    project.add_task("plain", TASK.replace('plugins = ["guide"]\n', "").replace(expected, ""))
    trials = ("--co", "--evalarc-trials=20")

    alone = project.inline(pytester, *trials, "--evalarc-task=plain")
    named = project.inline(pytester, *trials, "evals/tasks/plain")
    one_side = project.inline(pytester, *trials, "evals", "--evalarc-configuration=with")
    both = project.inline(pytester, *trials, "evals")

    assert "plan: 20 trials" in alone.stdout
    for found in (alone, named, one_side):
        assert "for each configuration" not in unwrapped(found.stdout)
    assert unwrapped(both.stdout).count("20 trials for each configuration") == 2


def test_no_line_that_is_told_is_wider_than_a_terminal() -> None:
    """A terminal parts a line within a word, and the rest of it stands below nothing."""
    sentence = power_sentence(5)

    assert wrapped(f"evalarc: {sentence}") == [
        "evalarc: 5 trials for each configuration are likely to show a difference of",
        "  success rates of 0.79 or more, and not a smaller one (power 0.8, level 0.05)",
    ]
    assert wrapped("short  enough") == ["short  enough"]
    assert wrapped(f"see {'x' * 90}") == ["see", f"  {'x' * 90}"]


@pytest.mark.parametrize(
    ("value", "told"), [(-0.003, "+0.00"), (0.004, "+0.00"), (-0.006, "-0.01"), (0.0, "+0.00")]
)
def test_a_difference_that_rounds_to_nothing_has_no_direction(value: float, told: str) -> None:
    """A reader takes the minus for a finding."""
    assert signed(value) == told


@needs_bwrap
@pytest.mark.slow
def test_the_last_thing_that_a_reader_sees_is_the_answer(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A list of what was missed fills a screen, and would push every verdict off it."""
    project.add_task("again")

    session = project.inline(pytester, "evals", "-m", "evalarc_trial", "--evalarc-client=nop")

    lines = session.stdout.partition(" evalarc =")[2].splitlines()
    misses = [number for number, line in enumerate(lines) if line.startswith("MISSED ")]
    assert misses
    assert max(misses) < lines.index("again: trials with nop") < lines.index("all tasks")
    told = lines[lines.index("all tasks") + 1 :]
    assert told[0].startswith(
        "  With nop over 2 tasks: too few tasks to tell whether skills helped"
    )
    assert told[1] == "    rate +0.00."
    assert told[2].startswith("  Tasks weigh the same, and an interval")
