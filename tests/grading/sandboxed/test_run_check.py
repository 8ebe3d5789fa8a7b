"""The runner of hidden checks, against submissions that attack it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.adversarial.corpus import attacks
from tests.grading.attacks import CLOSED, Attack
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

SECURITY = Path(__file__).parents[3] / "docs" / "security.md"

each_closed = pytest.mark.parametrize("attack", CLOSED, ids=lambda attack: attack.name)


@each_closed
def test_attacks_lose(bench, small_task, attack: Attack):
    """None of these does what was asked, and each would be a point for nothing."""
    task = small_task.load(editable=attack.editable)

    row = bench.check(task, attack.submitted, "in_process")

    assert row.status in ("failed", "agent_error")
    assert row.verdicts == {"in_process": False}


def test_the_documentation_lists_what_remains_open():
    """A hole that is known and not told would be found by the wrong people first."""
    section = SECURITY.read_text("utf-8").partition("### Inside the process of a check")[2]
    table = section.partition("\n### ")[0].partition("\n**The child form")[0]

    listed = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)

    remaining = [each for each in attacks("python") if not each.stoppable]
    assert len(listed[1:]) == len(set(listed[1:])) == len(remaining)


def test_a_submission_may_have_modules_called_like_ours(bench, small_task):
    """Names that the runner uses for itself are names that anybody may choose."""
    small_task.only_check(
        "import channel\nimport submission\n\n\n"
        "def test_it():\n    assert channel.NAME + submission.NAME == 'theirs'\n"
    )
    task = small_task.load(editable=["app", "channel.py", "submission.py"])
    files = {"channel.py": "NAME = 'the'\n", "submission.py": "NAME = 'irs'\n"}

    row = bench.check(task, files, "only")

    assert row.status == "passed"


def test_a_check_that_takes_the_submission_cannot_import_it(bench, small_task):
    """Its interpreter stays free of foreign code, also of modules that pytest looks for."""
    small_task.only_check("def test_it(submission):\n    import app\n")
    task = small_task.load()

    row = bench.check(task, {}, "only")

    assert (row.status, row.answered) == ("failed", False)
    assert "No module named 'app'" in row.detail


@pytest.mark.parametrize(
    ("source", "status", "cause"),
    [
        ("import pytest\n\n\ndef test_it():\n    pytest.skip('x')\n", "agent_error", "not_run"),
        ("import pytest\n\n\ndef test_it():\n    pytest.xfail('x')\n", "agent_error", "not_run"),
        (
            "import pytest\n\npytest.importorskip('app.nothing')\n\n\ndef test_it(): ...\n",
            "agent_error",
            "collection",
        ),
        ("import app.nothing\n\n\ndef test_it(): ...\n", "agent_error", "collection"),
        (
            "import pytest\n\n\n@pytest.fixture\ndef bad():\n    assert 0\n\n\n"
            "def test_it(bad): ...\n",
            "agent_error",
            "not_run",
        ),
        (
            "import pytest\n\n\n@pytest.fixture\ndef bad():\n    yield\n    assert 0\n\n\n"
            "def test_it(bad): ...\n",
            "agent_error",
            "collection",
        ),
        ("def test_it(no_such_fixture): ...\n", "agent_error", "not_run"),
        ("def test_it():\n    assert 1 == 2\n", "failed", None),
        ("def test_it():\n    raise KeyError('x')\n", "failed", None),
    ],
)
def test_only_a_test_that_ran_to_its_end_has_a_verdict(bench, small_task, source, status, cause):
    """Absence is never success, and never the same as a wrong answer."""
    small_task.only_check(source)
    task = small_task.load()

    row = bench.check(task, {}, "only")

    assert (row.status, row.cause.kind if row.cause else None) == (status, cause)


@pytest.mark.parametrize(
    "source",
    [
        "def test_it(capsys):\n    print('x')\n    assert capsys.readouterr().out == 'x\\n'\n",
        (
            "import logging\n\n\ndef test_it(caplog):\n"
            "    logging.getLogger('x').warning('y')\n    assert 'y' in caplog.text\n"
        ),
        (
            "import warnings\n\n\ndef test_it(recwarn):\n"
            "    warnings.warn('x')\n    assert len(recwarn) == 1\n"
        ),
        (
            "import warnings\n\nimport pytest\n\n\n@pytest.mark.filterwarnings('error')\n"
            "def test_it():\n"
            "    with pytest.raises(UserWarning):\n        warnings.warn('x')\n"
        ),
        "import unittest\n\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        pass\n",
        (
            "import os\n\n\ndef test_it(tmp_path, monkeypatch, request):\n"
            "    monkeypatch.chdir(tmp_path)\n    monkeypatch.setenv('X', '1')\n"
            "    assert os.getcwd() == str(tmp_path)\n"
        ),
        "# -*- coding: latin-1 -*-\ndef test_it():\n    assert len('\xe9') == 1\n",
    ],
)
def test_what_pytest_offers_is_there(bench, small_task, source):
    """Only what no single test needs is left out for speed."""
    small_task.only_check("def test_it(): ...\n")
    (small_task.folder / "checks" / "only.py").write_bytes(source.encode("latin-1"))
    task = small_task.load()

    row = bench.check(task, {}, "only")

    assert (row.status, row.detail) == ("passed", "")


def test_nothing_leaks_from_one_check_to_the_next(bench, small_task):
    """Each check has an interpreter, an environment and a temporary folder of its own."""
    small_task.only_check(
        "import os\nimport tempfile\n\n\ndef test_it():\n"
        "    from app import core\n\n"
        "    assert core.value() == 42\n"
        "    assert not {'PYTEST_ADDOPTS', 'NODE_OPTIONS', 'SEEN'} & os.environ.keys()\n"
        "    os.environ.update(PYTEST_ADDOPTS='--co', NODE_OPTIONS='-r x', SEEN='1')\n"
        "    with open(os.path.join(tempfile.gettempdir(), 'seen'), 'x'):\n        pass\n"
    )
    small_task.write("checks/second.py", (small_task.folder / "checks/only.py").read_text())
    task = small_task.load()

    grading = bench.grade(task, bench.reference(task), jobs=1)

    assert [row.status for row in grading.rows] == ["passed", "passed"]


BOUNDS = [
    ("while True:\n    print('x' * 10000)\n", "output_limit"),
    ("def value():\n    return bytearray(900 << 20)\n", "out_of_memory"),
]


@pytest.mark.parametrize(("core", "cause"), BOUNDS, ids=[cause for _, cause in BOUNDS])
@pytest.mark.parametrize("form", ["in_process", "child_form"])
def test_whoever_exceeds_a_bound_fails(bench, small_task, core, cause, form):
    """Exhausted memory or patience for output is the submission's own failure."""
    task = small_task.load()

    row = bench.check(task, {"app/core.py": core}, form)

    assert (row.status, row.cause.kind) == ("agent_error", cause)


def test_a_check_that_hangs_ends_at_its_deadline(bench, small_task):
    """A submission that never answers has failed, and does not hold up the others."""
    task = small_task.load(check=3)
    core = "import time\n\n\ndef value():\n    time.sleep(60)\n"

    row = bench.check(task, {"app/core.py": core}, "in_process")

    assert (row.status, row.cause.kind) == ("agent_error", "timeout")
    assert row.verdicts == {"in_process": False}
