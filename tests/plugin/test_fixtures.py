"""The fixtures of evals, which a conftest may override."""

from __future__ import annotations

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import TASK, TASK_ID, Project

pytestmark = [needs_bwrap, pytest.mark.slow]

OVERRIDE = """
import pytest

class Named:
    def __init__(self, sandbox):
        self._sandbox, self.name = sandbox, "{name}"

    def __getattr__(self, name):
        return getattr(self._sandbox, name)

    def record(self, limits):
        record = self._sandbox.record(limits)
        return record.model_copy(update={{"sandbox": self.name}})

@pytest.fixture(scope="{scope}")
def evalarc_sandbox(evalarc_sandbox):
    return Named(evalarc_sandbox)
"""


def test_a_sandbox_is_brought_by_a_project_or_by_one_task(
    project: Project, pytester: pytest.Pytester
) -> None:
    """An isolation of one's own is an ordinary fixture, nearest conftest first."""
    project.add_task("other")
    project.write("evals/conftest.py", OVERRIDE.format(name="house", scope="session"))
    project.write("evals/tasks/other/conftest.py", OVERRIDE.format(name="own", scope="module"))

    session = project.inline(
        pytester, "evals", "-q", "--evalarc-client=good", "-m", "evalarc_trial"
    )

    assert session.ret == 0
    used = {
        path.split("/")[0]: (
            result["sandbox"]["name"],
            result["gradings"][0]["isolation"]["sandbox"],
        )
        for path, result in project.documents("result.json").items()
    }
    assert used == {"hello": ("house", "house"), "other": ("own", "own")}


def test_a_trial_offers_all_that_is_known_of_it_when_it_is_asked(
    project: Project, pytester: pytest.Pytester
) -> None:
    """What a user looks at is there only once the trial has run, so asking runs it, once."""
    project.write(
        "evals/conftest.py",
        "import os, pathlib, pytest\n"
        "@pytest.fixture(scope='class')\n"
        "def evalarc_trial(evalarc_trial):\n"
        "    starts = pathlib.Path(os.environ['SHELL_STARTS'])\n"
        "    assert not starts.exists()\n"
        "    assert evalarc_trial.transcript.interpreted\n"
        "    assert (evalarc_trial.submission / 'src/greeting').read_text() == 'hello world\\n'\n"
        "    assert evalarc_trial.grading.code_passed\n"
        "    assert evalarc_trial.result.outcome == 'succeeded'\n"
        "    assert len(starts.read_text().splitlines()) == 1\n"
        "    yield evalarc_trial\n",
    )

    session = project.inline(pytester, f"{TASK_ID}::good::with-skills", "-q")

    assert session.ret == 0
    assert session.counts == {"passed": 6}


def test_a_task_can_be_looked_at_by_a_conftest(project: Project, pytester: pytest.Pytester) -> None:
    """The task is a module's fixture, made once for all its items."""
    project.write(
        "evals/tasks/hello/conftest.py",
        "import pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def evalarc_task(evalarc_task):\n"
        "    print('made', evalarc_task.name)\n"
        "    return evalarc_task\n",
    )

    session = project.inline(pytester, "evals", "-q", "-s")

    assert session.counts == {"passed": 6}
    assert session.stdout.count("made hello") == 1


def test_autouse_fixtures_of_every_scope_work_on_evals(
    project: Project, pytester: pytest.Pytester
) -> None:
    """A project's root conftest does not know that evals exist."""
    fixtures = "".join(
        f"@pytest.fixture(scope='{scope}', autouse=True)\n"
        f"def auto_{scope}(request):\n"
        f"    {look}\n"
        "    yield\n"
        for scope, look in (
            ("session", "request.session"),
            ("package", "request.node"),
            ("module", "request.module.__name__, request.path"),
            ("class", "request.cls, request.node"),
            ("function", "request.function, request.instance, request.node.reportinfo()"),
        )
    )
    project.write("conftest.py", f"from shell import *\nimport pytest\n{fixtures}")

    session = project.inline(pytester, "--evalarc-task=hello", "-q", "-W", "error")

    assert session.ret == 0
    assert session.counts == {"passed": 16}


def test_a_class_fixture_lives_as_long_as_a_trial(
    project: Project, pytester: pytest.Pytester
) -> None:
    """Isolation between trials is the ordinary isolation between classes."""
    project.edit(TASK[TASK.index("[expected]") : TASK.index("[deadlines]")], "")
    project.write(
        "evals/conftest.py",
        "import pytest\n"
        "@pytest.fixture(scope='class', autouse=True)\n"
        "def lifetime(request):\n"
        "    yield\n"
        "    print('left', request.node.name)\n",
    )

    session = project.inline(
        pytester, "--evalarc-task=hello", "--evalarc-trials=2", "-q", "-s", "-k", "oracle"
    )

    assert session.ret == 0
    lines = [line.rpartition("left ")[2] for line in session.stdout.splitlines()]
    assert [line for line in lines if line.startswith("trial-")] == [
        *("trial-001", "trial-001", "trial-002", "trial-002")
    ]
