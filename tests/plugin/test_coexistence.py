"""Beside other plugins of pytest: each does its own to evals as to any test, and no more.

Where one is not installed its tests are skipped with the reason; `nox -s coexistence` has them
all, and there a missing one is a failure.
"""

from __future__ import annotations

import html
import json
import re
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

from tests.needs import needs_bwrap, needs_plugin
from tests.plugin.project import Project

ROOT = Path(__file__).parents[2]
CONFIGURATIONS = ["trial-1-with-skills", "trial-1-without-skills"]
STRICT = ("evals", "--evalarc-client=careless", "--evalarc-strict", "-m", "not evalarc_audit")


class Other(NamedTuple):
    """Another plugin: its distribution, and what it is loaded by."""

    distribution: str
    entry_points: tuple[str, ...]
    options: tuple[str, ...] = ()
    """Without which it does nothing, or would let chance choose."""


ASYNCIO = ("--asyncio-mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")

HTML = ("pytest_html.plugin", "pytest_html.fixtures", "pytest_metadata.plugin")
UNREWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"
"""By its entry points, `-p` would find a module of the standard library of the same name; by its
modules, the first has imported the second, and pytest warns of that."""

OTHERS = (
    Other("anyio", ("anyio",)),
    Other("flaky", ("flaky",), ("--force-flaky",)),
    Other("hypothesis", ("hypothesispytest",)),
    Other("nbval", ("nbval",), ("--nbval",)),
    Other("pytest-asyncio", ("asyncio",), ASYNCIO),
    Other("pytest-bdd", ("pytest-bdd",), ("--gherkin-terminal-reporter",)),
    Other("pytest-benchmark", ("benchmark",), ("--benchmark-disable",)),
    Other("pytest-cov", ("pytest_cov",), ("--cov=evals", "--cov-report=")),
    Other("pytest-html", HTML, ("--html=report.html", "-W", UNREWRITTEN)),
    Other("pytest-markdown-docs", ("pytest_markdown_docs",), ("--markdown-docs",)),
    Other("pytest-mock", ("pytest_mock",)),
    Other("pytest-mypy-plugins", ("pytest-mypy-plugins",)),
    Other("pytest-random-order", ("random_order",), ("--random-order", "--random-order-seed=7")),
    Other("pytest-randomly", ("randomly",), ("--randomly-seed=7",)),
    Other("pytest-rerunfailures", ("rerunfailures",), ("--reruns=2",)),
    Other("pytest-sugar", ("sugar",), ("--force-sugar",)),
    Other("schemathesis", ("schemathesis",)),
    Other("syrupy", ("syrupy",)),
    Other("teamcity-messages", ("pytest-teamcity",), ("--teamcity",)),
)


every_other = pytest.mark.parametrize(
    "other",
    [
        pytest.param(other, id=other.distribution, marks=needs_plugin(other.distribution))
        for other in OTHERS
    ],
)


ENDS = ("failure", "error", "skipped")

AUDIT = ("reference.greets", "reference.names", "starter", "silent", "nameless")
WITHOUT = ("run", "greets", "names", "success")
ALONE = {
    "validate": "passed",
    **{f"audit.{name}": "passed" for name in AUDIT},
    **{f"careless.without-skills.trial-001.{name}": "passed" for name in WITHOUT},
    **{
        f"careless.with-skills.trial-001.{name}": "passed"
        for name in ("run", "greets", "names", "installed-greet")
    },
    # A client that reads no skill misses what is expected of it, which fails nothing.
    **{f"careless.with-skills.trial-001.{name}": "skipped" for name in ("used-greet", "success")},
}
"""What every item comes to where no other plugin is."""


def outcomes(project: Project) -> dict[str, str]:
    """Return each item's outcome by its name below a task file, as `junit.xml` tells it.

    Plugins that show results in their own way change the terminal, and nothing there.
    """
    found: dict[str, str] = {}
    for case in ET.parse(project.root / "junit.xml").getroot().iter("testcase"):
        _, _, item = f"{case.get('classname')}.{case.get('name')}".partition("task.toml.")
        assert item not in found, f"{item} is told twice"
        found[item] = next((child.tag for child in case if child.tag in ENDS), "passed")
    return found


@every_other
@needs_bwrap
@pytest.mark.slow
def test_what_every_item_comes_to_is_the_same_beside_another_plugin(
    project: Project, other: Other
) -> None:
    """Whoever adds either of the two to a project finds that the other goes on as before."""
    session = project.pytest(
        *("evals", "--evalarc-client=careless", "-W", "error", "--junitxml=junit.xml"),
        *other.options,
        plugins=other.entry_points,
    )

    assert session.ret == 0, session.stdout + session.stderr
    assert outcomes(project) == ALONE
    assert sorted(project.starts()) == CONFIGURATIONS


@needs_bwrap
@pytest.mark.slow
def test_all_plugins_that_are_installed_get_on_with_ours_at_once(project: Project) -> None:
    """Projects have many plugins, and each one's hooks see what the others have left."""
    session = project.pytest(
        *("evals", "--evalarc-client=careless", "--junitxml=junit.xml", "-n", "2"),
    )

    assert session.ret == 0, session.stdout + session.stderr
    assert outcomes(project) == ALONE
    assert sorted(project.starts()) == CONFIGURATIONS


def test_what_is_tried_is_installed_by_the_session_and_told_on_the_page() -> None:
    """A plugin that the session lacks would be tried nowhere, and one that nobody tried be told."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    texts = (
        *project["dependency-groups"]["coexistence"],
        *project["project"]["optional-dependencies"]["dev"],
    )
    installed = {Requirement(text).name for text in texts}
    page = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
    told = re.findall(r"^\| `([a-z-]+)` \| [0-9.]+ \|", page, re.MULTILINE)
    tried = [other.distribution for other in OTHERS]

    assert sorted(told) == sorted(tried)
    assert set(tried) <= installed


# Plugins that repeat what fails.


@needs_plugin("pytest-rerunfailures")
@needs_bwrap
@pytest.mark.slow
def test_a_rerun_never_runs_a_trial_again(project: Project) -> None:
    """A trial that is repeated until it passes measures nothing."""
    project.write(
        "evals/test_own.py", "def test_own(evalarc_trial): assert not evalarc_trial.result\n"
    )

    session = project.pytest(*STRICT, "-q", "--reruns=2", plugins=["rerunfailures"])

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    # The two tests, and the expectation and the success that this client misses.
    assert session.counts["rerun"] == 2 * session.counts["failed"] == 8
    assert sorted(project.starts()) == CONFIGURATIONS


@needs_plugin("pytest-rerunfailures")
@needs_bwrap
@pytest.mark.slow
def test_misses_are_not_rerun(project: Project) -> None:
    """They are no failures, so no option that reacts to failures reacts to them."""
    session = project.pytest(
        *("evals", "-q", "--evalarc-client=careless", "--reruns=2", "-m", "evalarc_trial"),
        plugins=["rerunfailures"],
    )

    assert session.ret == 0
    assert "rerun" not in session.counts
    assert session.counts["missed"] == 2


@needs_plugin("flaky")
@needs_bwrap
@pytest.mark.slow
def test_flaky_repeats_failing_items_and_starts_no_trial_again(project: Project) -> None:
    """It runs pytest's own protocol once more, which must find the trial that there is."""
    project.write(
        "evals/test_own.py", "def test_own(evalarc_trial): assert not evalarc_trial.result\n"
    )

    session = project.pytest(*STRICT, "-q", "--force-flaky", "--max-runs=3", plugins=["flaky"])

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    assert session.stdout.count("failed (2 runs remaining out of 3)") == 4
    assert re.search(r"^4 failed, 9 passed", session.stdout, re.MULTILINE)
    assert sorted(project.starts()) == CONFIGURATIONS


# Plugins that shuffle.


@pytest.mark.parametrize(
    ("plugin", "options"),
    [
        pytest.param(
            "randomly", ("--randomly-seed=7",), marks=needs_plugin("pytest-randomly"), id="randomly"
        ),
        pytest.param(
            "random_order",
            ("--random-order-bucket=global", "--random-order-seed=7"),
            marks=needs_plugin("pytest-random-order"),
            id="random-order",
        ),
    ],
)
@pytest.mark.parametrize("workers", ["0", "2"])
@needs_bwrap
@pytest.mark.slow
def test_shuffled_items_run_each_trial_once_and_in_the_order_of_the_plan(
    project: Project, plugin: str, options: tuple[str, ...], workers: str
) -> None:
    """The order of configurations is part of the measurement, and chance is not to choose it."""
    session = project.pytest(
        *("-n", workers, "evals", "-q", "-m", "evalarc_trial", *options),
        *("--evalarc-client=good", "--evalarc-trials=2"),
        plugins=[plugin],
    )

    assert session.ret == 0
    assert session.counts["passed"] == 20
    in_order = [
        *("trial-1-without-skills", "trial-1-with-skills"),
        *("trial-2-with-skills", "trial-2-without-skills"),
    ]
    ran = project.starts()
    assert (ran if workers == "0" else sorted(ran)) == (
        in_order if workers == "0" else sorted(in_order)
    )


# Plugins that run tests in their own way.


OWN_TESTS = {
    "pytest-asyncio": (
        ("asyncio",),
        "import asyncio\nasync def test_own(evalarc_trial):\n"
        "    await asyncio.sleep(0)\n    assert evalarc_trial.result\n",
        ASYNCIO,
    ),
    "anyio": (
        ("anyio",),
        "import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n"
        "@pytest.mark.anyio\nasync def test_own(evalarc_trial): assert evalarc_trial.result\n",
        (),
    ),
    "hypothesis": (
        ("hypothesispytest",),
        # The first example waits for the trial, which no deadline of an example allows.
        "from hypothesis import given, settings, strategies\n"
        "@settings(deadline=None)\n@given(strategies.integers())\n"
        "def test_own(evalarc_trial, number): assert evalarc_trial.result\n",
        (),
    ),
    "pytest-bdd": (
        ("pytest-bdd",),
        "from pytest_bdd import scenario, then\n"
        "@scenario('own.feature', 'It works')\ndef test_own(evalarc_trial): pass\n"
        "@then('the trial has a result')\n"
        "def result(evalarc_trial): assert evalarc_trial.result\n",
        (),
    ),
    "pytest-benchmark": (
        ("benchmark",),
        "def test_own(evalarc_trial, benchmark):\n"
        "    assert benchmark(lambda: evalarc_trial.result)\n",
        ("--benchmark-disable",),
    ),
}
"""By distribution: what it is loaded by, an ordinary test in its style, and options."""


@pytest.mark.parametrize(
    "distribution",
    [pytest.param(name, marks=needs_plugin(name)) for name in OWN_TESTS],
)
@needs_bwrap
@pytest.mark.slow
def test_an_ordinary_test_in_the_style_of_a_plugin_gets_its_trials(
    project: Project, distribution: str
) -> None:
    """Expectations of one's own are tests, and a project writes all of its tests in one style."""
    plugins, source, options = OWN_TESTS[distribution]
    project.write("evals/test_own.py", source)
    project.write(
        "evals/own.feature", "Feature: Own\n  Scenario: It works\n    Then the trial has a result\n"
    )

    session = project.pytest(
        "evals/test_own.py", "-q", "--evalarc-client=good", "-W", "error", *options, plugins=plugins
    )

    assert session.ret == 0, session.stdout + session.stderr
    assert session.counts["passed"] == 2
    assert sorted(project.starts()) == CONFIGURATIONS


@needs_plugin("pytest-benchmark")
@needs_bwrap
@pytest.mark.slow
def test_who_runs_benchmarks_alone_starts_no_client(project: Project) -> None:
    """Measuring one's own code costs no money."""
    session = project.pytest(
        "evals", "-q", "--evalarc-client=good", "--benchmark-only", plugins=["benchmark"]
    )

    assert session.ret == 0
    assert session.counts == {"skipped": 16}
    assert project.starts() == []


# Plugins that collect files of their own.

CELL = {
    "cell_type": "code",
    "execution_count": None,
    "id": "one",
    "metadata": {},
    "outputs": [],
    "source": "1",
}
NOTEBOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
MYPY_CASE = "- case: it_is_typed\n  main: |\n    reveal_type(1)\n"


@pytest.mark.parametrize(
    ("plugins", "options", "name", "text"),
    [
        pytest.param(
            ("pytest_markdown_docs",),
            ("--markdown-docs",),
            "read.md",
            "```python\nassert True\n```\n",
            id="markdown-docs",
            marks=needs_plugin("pytest-markdown-docs"),
        ),
        pytest.param(
            ("nbval",),
            ("--nbval",),
            "note.ipynb",
            json.dumps(NOTEBOOK),
            id="nbval",
            marks=needs_plugin("nbval"),
        ),
        pytest.param(
            ("pytest-mypy-plugins",),
            (),
            "test_types.yml",
            MYPY_CASE,
            id="mypy-plugins",
            marks=needs_plugin("pytest-mypy-plugins"),
        ),
        pytest.param((), ("--doctest-glob=*.md",), "read.md", ">>> 1\n1\n", id="doctest"),
    ],
)
def test_what_lies_in_tasks_and_results_is_no_test_of_any_plugin(
    project: Project, plugins: tuple[str, ...], options: tuple[str, ...], name: str, text: str
) -> None:
    """It belongs to an agent, or to a grader, and running it here would leave the sandbox."""
    task = "evals/tasks/hello"
    folders = [f"{task}/starter/src", f"{task}/checks", f"{task}/solution/src", "evals/fixtures/f"]
    for folder in (*folders, "evals/plugins/guide/skills/greet", "results/hello", "docs"):
        project.write(f"{folder}/{name}", text)

    session = project.pytest("--collect-only", "-q", *options, plugins=plugins)

    found = [line for line in session.stdout.splitlines() if name in line and "::" in line]
    assert len(found) == 1, session.stdout + session.stderr
    assert found[0].startswith("docs/")


# Plugins that show or measure.

COVERED = r"""
from shell import SCRIPTS, ShellClient

def pytest_evalarc_clients():
    script = "env | grep ^COV && exit 3\n" + SCRIPTS["good"]
    return {"covered": lambda: ShellClient(name="covered", script=script)}
"""
"""A client that fails when it is measured too."""


@needs_plugin("pytest-cov")
@needs_bwrap
@pytest.mark.slow
def test_coverage_measures_ordinary_tests_and_no_trial(project: Project) -> None:
    """What it puts into the environment, so that processes are measured, reaches no client."""
    project.write("evals/conftest.py", COVERED)
    project.write(
        "evals/test_own.py", "def test_own(evalarc_trial):\n    assert evalarc_trial.result\n"
    )
    project.write(".coveragerc", "[run]\npatch = subprocess\n")

    session = project.pytest(
        *("evals", "-n", "2", "--evalarc-client=covered", "-m", "not evalarc_audit"),
        *("--cov=evals", "--cov-report=json", "--cov-fail-under=1"),
        plugins=["pytest_cov"],
    )

    assert session.ret == 0, session.stdout + session.stderr
    files = json.loads((project.root / "coverage.json").read_text("utf-8"))["files"]
    assert files["evals/test_own.py"]["summary"]["percent_covered"] == 100
    ends = {name: result["execution"] for name, result in project.trial_results().items()}
    assert ends == dict.fromkeys(CONFIGURATIONS, "completed")


@needs_plugin("pytest-html")
@needs_bwrap
@pytest.mark.slow
def test_the_page_of_pytest_html_shows_every_item_with_its_outcome(project: Project) -> None:
    """Also what was missed, with the reason and as what fails nothing."""
    session = project.pytest(
        *("evals", "--evalarc-client=careless", "-m", "evalarc_trial", "-n", "2"),
        *("--html=report.html", "--self-contained-html"),
        plugins=HTML,
    )

    assert session.ret == 0
    page = (project.root / "report.html").read_text("utf-8")
    (blob,) = re.findall(r'data-jsonblob="([^"]*)"', page)
    tests = json.loads(html.unescape(blob))["tests"]
    shown = Counter(result["result"] for results in tests.values() for result in results)
    assert shown == {"Passed": 8, "XFailed": 2}
    (missed,) = tests["evals/tasks/hello/task.toml::careless::with-skills::trial-001::used-greet"]
    assert "greet" in missed["log"]


@needs_plugin("pytest-sugar")
@needs_bwrap
@pytest.mark.slow
def test_the_summary_stands_below_the_lines_of_pytest_sugar(project: Project) -> None:
    """It puts a reporter of its own in the place of pytest's."""
    session = project.pytest(
        *("evals", "--evalarc-client=careless", "-m", "evalarc_trial", "--force-sugar"),
        plugins=["sugar"],
    )

    assert session.ret == 0
    assert re.search(r"\b8 passed", session.stdout)
    assert "MISSED evals/tasks/hello/task.toml::careless::with-skills::trial-001::used-greet" in (
        session.stdout
    )


SNAPSHOT = """
def test_own(evalarc_trial, snapshot):
    assert evalarc_trial.result.outcome.value == snapshot
"""


@needs_plugin("syrupy")
@needs_bwrap
@pytest.mark.slow
def test_snapshots_of_syrupy_are_compared_beside_evals_and_not_taken_for_unused(
    project: Project,
) -> None:
    """It counts every function that was collected, and evals are functions."""
    project.write("evals/test_own.py", SNAPSHOT)
    options = ("evals", "--evalarc-client=good", "-m", "not evalarc_audit")

    written = project.pytest(*options, "--snapshot-update", plugins=["syrupy"])
    compared = project.pytest(*options, plugins=["syrupy"])

    assert (written.ret, compared.ret) == (0, 0)
    assert "2 snapshots generated." in written.stdout
    assert "2 snapshots passed." in compared.stdout
    assert "unused" not in compared.stdout
