"""Ordinary tests that look at trials: which they get, and that nothing starts unasked."""

from __future__ import annotations

import pytest

from pytest_evalarc.plugin.scheduling import trial_in
from tests.needs import needs_bwrap
from tests.plugin.project import TASK, Project

OWN = "evals/test_own.py"
BOTH = ["test_own[hello-good-without-skills-001]", "test_own[hello-good-with-skills-001]"]

OTHER = "test_own[other-good-baseline-001]"
BARE = TASK[: TASK.index("plugins")] + TASK[TASK.index("[deadlines]") :]


@pytest.fixture
def own(project: Project) -> Project:
    """Return a project with a test that looks at every trial."""
    project.write(OWN, "def test_own(evalarc_trial):\n    assert evalarc_trial.result\n")
    return project


def collected(project: Project, pytester: pytest.Pytester, *arguments: str) -> list[str]:
    session = project.inline(pytester, OWN, "--co", "-q", *arguments)
    return [each.partition("::")[2] for each in session.ids()]


# What is collected.


def test_a_test_is_collected_for_each_trial_of_the_plan_in_its_order(
    own: Project, pytester: pytest.Pytester
) -> None:
    """A person tells from the id which trial it is, and `-k` selects by any part of it."""
    ids = collected(own, pytester, "--evalarc-client=good", "--evalarc-trials=2")

    assert ids == [
        "test_own[hello-good-without-skills-001]",
        "test_own[hello-good-with-skills-001]",
        "test_own[hello-good-with-skills-002]",
        "test_own[hello-good-without-skills-002]",
    ]


def test_several_clients_and_the_selected_tasks_are_looked_at(
    own: Project, pytester: pytest.Pytester
) -> None:
    """The options that choose trials choose them here as well."""
    own.add_task("other", TASK.replace("greetings", "partings"))
    clients = ("--evalarc-client=good", "--evalarc-client=nop", "--evalarc-configuration=with")

    ids = collected(own, pytester, *clients, "--evalarc-tag=partings")
    named = collected(own, pytester, *clients, "--evalarc-task=hell*")

    assert ids == ["test_own[other-good-with-skills-001]", "test_own[other-nop-with-skills-001]"]
    assert named == ["test_own[hello-good-with-skills-001]", "test_own[hello-nop-with-skills-001]"]


@pytest.mark.parametrize(
    ("markers", "ids"),
    [
        (['evalarc_task("hello")'], BOTH),
        (['evalarc_task("oth*", "he*")'], [*BOTH, OTHER]),
        (['evalarc_configuration("with-*", "baseline")'], [BOTH[1], OTHER]),
        (['evalarc_task("hello")', 'evalarc_configuration("without-*")'], BOTH[:1]),
        (['evalarc_task("*")', 'evalarc_task("other")'], [OTHER]),
        (['evalarc_configuration("nothing-*")'], ["test_own[none]"]),
    ],
)
def test_markers_limit_tasks_and_configurations(
    own: Project, pytester: pytest.Pytester, markers: list[str], ids: list[str]
) -> None:
    """An expectation is mostly about one task, or about what a treatment brings."""
    own.add_task("other", BARE)
    decorators = "".join(f"@pytest.mark.{marker}\n" for marker in markers)
    own.write(OWN, f"import pytest\n{decorators}def test_own(evalarc_trial): pass\n")

    assert collected(own, pytester, "--evalarc-client=good") == ids


def test_a_marker_that_names_no_task_is_told(own: Project, pytester: pytest.Pytester) -> None:
    """A misspelt name would keep a test from ever running, and nobody would know."""
    own.write(
        OWN,
        "import pytest\n@pytest.mark.evalarc_task('helo')\ndef test_own(evalarc_trial): pass\n",
    )

    session = own.inline(pytester, OWN, "-q")

    assert session.ret == pytest.ExitCode.INTERRUPTED
    assert "evalarc_task('helo') names no task; nearest: hello" in session.stdout
    assert "Traceback" not in session.stdout


# What is run.


@pytest.mark.parametrize("arguments", [(), ("--evalarc-configuration=with",), ("-k", "own")])
def test_without_trials_a_test_is_skipped_and_says_how_to_run_it(
    own: Project, pytester: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    """A bare pytest must never start an agent."""
    own.write(
        "conftest.py",
        "from shell import *\nimport pytest\n@pytest.fixture\ndef dear(): raise AssertionError\n",
    )
    own.write(
        OWN, "def test_own(evalarc_trial, evalarc_task, dear): evalarc_trial.result.outcome\n"
    )

    session = own.inline(pytester, OWN, "-q", "-rs", "-W", "error", *arguments)

    assert session.ret == 0
    assert session.counts == {"skipped": 1}
    assert f"no trial was asked for; name a client: pytest {OWN} --evalarc-client" in session.stdout
    assert own.starts() == []
    assert not own.results.exists()


def test_an_invalid_task_fails_its_own_tests_alone(own: Project, pytester: pytest.Pytester) -> None:
    """One task that is being written must not keep all others from being looked at."""
    own.add_task("broken", "kind = 1\n")
    own.write(
        OWN,
        "def test_own(evalarc_trial, evalarc_task): pass\n"
        "def test_task(evalarc_task): assert evalarc_task.checks\n",
    )

    session = own.inline(pytester, OWN, "-q", "--evalarc-client=good")

    assert session.counts == {"passed": 3, "error": 2}
    assert "task.toml" in session.stdout
    assert "Traceback" not in session.stdout


@needs_bwrap
@pytest.mark.slow
def test_a_trial_offers_what_an_expectation_needs(own: Project, pytester: pytest.Pytester) -> None:
    """Everything that is known of a trial is at hand, with its task."""
    own.write(
        OWN,
        "def test_own(evalarc_trial, evalarc_task):\n"
        "    trial = evalarc_trial\n"
        "    assert trial.result.outcome == 'succeeded'\n"
        "    assert trial.transcript.completion.is_error is False\n"
        "    assert (trial.submission / 'src/greeting').read_text() == 'hello world\\n'\n"
        "    assert trial.grading.code_passed\n"
        "    assert (trial.folder / 'result.json').is_file()\n"
        "    assert (trial.task.name, trial.configuration, trial.number) == (\n"
        "        evalarc_task.name, trial.result.mode, 1)\n",
    )

    session = own.inline(pytester, OWN, "-q", "-W", "error", "--evalarc-client=good")

    assert session.ret == 0
    assert session.counts == {"passed": 2}


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_trial_runs_once_whichever_test_asks_first(own: Project, workers: str) -> None:
    """Three modules and the items of the task ask for the same trials."""
    text = "def test_{0}(evalarc_trial):\n    assert evalarc_trial.result.outcome\n"
    own.write("evals/a_first/test_before.py", text.format("before"))
    own.write("tests/test_after.py", text.format("after"))

    session = own.pytest("-n", workers, "-q", "-m", "not evalarc_audit", "--evalarc-client=good")

    assert session.ret == 0
    assert sorted(own.starts()) == ["trial-1-with-skills", "trial-1-without-skills"]
    assert session.counts["passed"] == 17
    assert own.document("benchmark.json")["selection"] == "complete"


@needs_bwrap
@pytest.mark.slow
def test_an_override_of_the_trial_or_the_sandbox_works_in_ordinary_tests_too(
    own: Project, pytester: pytest.Pytester
) -> None:
    """They are ordinary fixtures wherever they are asked for."""
    own.write(
        "evals/conftest.py",
        "import pytest\n"
        "@pytest.fixture(scope='class')\n"
        "def evalarc_trial(evalarc_trial):\n"
        "    evalarc_trial.result\n"
        "    return evalarc_trial.folder.name\n",
    )
    own.write(OWN, "def test_own(evalarc_trial):\n    assert evalarc_trial.startswith('trial-1')\n")

    session = own.inline(pytester, OWN, "-q", "--evalarc-client=good")

    assert session.counts == {"passed": 2}


def test_a_timeout_for_unit_tests_cuts_no_trial_that_a_test_asks_for(
    own: Project, pytester: pytest.Pytester
) -> None:
    """The trial has its own deadlines; what the user says of this one test holds."""
    own.write("pytest.ini", "[pytest]\ntimeout = 5\n")
    own.write(
        OWN,
        "import pytest\n"
        "def limit(request): return request.node.get_closest_marker('timeout').args\n"
        "def test_own(request, evalarc_trial): assert limit(request) == (540.0,)\n"
        "@pytest.mark.timeout(7)\n"
        "def test_short(request, evalarc_trial): assert limit(request) == (7,)\n",
    )

    session = own.inline(pytester, OWN, "-q", "--evalarc-client=good")

    assert session.counts == {"passed": 4}


# How it is handed out.


@pytest.mark.parametrize(
    ("nodeid", "trial"),
    [
        ("test_x.py::test_x[a-b-nop-with-x-001]", ("a-b",)),
        ("test_x.py::test_x[1-a-b-nop-with-x-001-yes]", ("a-b",)),
        ("test_x.py::test_x[a-b-nop-with-x-002]", None),
        ("test_x.py::test_x", None),
        ("test_x.py::test_x[]", None),
        (f"test_x.py::test_x[{'-' * 9999}]", None),
    ],
)
def test_a_test_goes_to_the_worker_of_its_trial(nodeid: str, trial: object) -> None:
    """Other parameters stand before and behind the trial in an id."""
    assert trial_in(nodeid, {"a-b-nop-with-x-001": ("a-b",)}) == trial


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "workers"),
    [(("-m", "evalarc_trial"), 2), (("evals/tasks", "--evalarc-check-tasks"), 1), ((), 3)],
)
def test_no_more_workers_start_by_themselves_than_have_work(
    project: Project, arguments: tuple[str, ...], workers: int
) -> None:
    """A worker costs a start and has nothing to do; one that does unit tests is wanted."""
    cores = "def pytest_xdist_auto_num_workers(config): return 3\n"
    project.write("conftest.py", f"from shell import *\n{cores}")

    session = project.pytest("-n", "auto", "--evalarc-client=good", "-k", "nothing", *arguments)

    assert f"{workers}/{workers} worker" in session.stdout
