"""A process leaves with status 0 in the middle of its work, and the status is believed.

Code under test calls `os._exit(0)`, or sees to it that a later exit ends so; thousands of tests are
then neither run nor missed. The hidden checks are attacked in `tests/grading/attacks.py`; these are
the other processes that import what was submitted. Source: facebookresearch/momentum#1312.
"""

from __future__ import annotations

import pytest

from tests.grading.small_task import RIGHT
from tests.needs import needs_bwrap

pytestmark = [needs_bwrap, pytest.mark.slow]

LEAVING = {
    "at import": "import os\n\nos._exit(0)\n",
    "in an exit handler that comes early": (
        "import atexit\nimport os\nimport sys\n\natexit.register(os._exit, 0)\nsys.exit(0)\n"
    ),
    "from a thread": (
        "import os\nimport threading\nimport time\n\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0))).start()\ntime.sleep(5)\n"
    ),
    "by a signal": "import os\nimport signal\n\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "by an alarm": (
        "import signal\nimport time\n\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)\n"
    ),
    "as another program": "import os\n\nos.execv('/bin/true', ['true'])\n",
    "by a fork that goes on": (
        "import os\n\nif os.fork():\n    os._exit(0)\nraise SystemExit(1)\n"
    ),
    "with its stack": (
        "import sys\n\nsys.setrecursionlimit(10**9)\n\n\ndef f():\n    f()\n\n\nf()\n"
    ),
}
each_way = pytest.mark.parametrize("leaving", LEAVING.values(), ids=LEAVING)


@each_way
def test_a_module_that_ends_the_build_has_not_been_built(bench, small_task, leaving: str) -> None:
    """The build imports every module, and one of them may be the last that is imported."""
    task = small_task.load()

    row = bench.step(task, {"app/core.py": RIGHT, "app/zzz.py": leaving}, "build")

    assert row.status == "fail"


@each_way
def test_tests_of_its_own_that_end_their_run_have_not_passed(
    bench, small_task, leaving: str
) -> None:
    """They come before the ones that would have failed."""
    task = small_task.load()
    files = {"tests/test_a.py": leaving, "tests/test_b.py": "def test_b():\n    assert 1 == 2\n"}

    row = bench.step(task, {"app/core.py": RIGHT, **files}, "unit_tests")

    assert row.status == "fail"


@each_way
@pytest.mark.parametrize("form", ["in_process", "child_form"])
def test_a_check_that_was_left_has_not_passed(bench, small_task, leaving: str, form: str) -> None:
    """Whichever form it has; the right answer in the same file is never given."""
    task = small_task.load()

    row = bench.check(task, {"app/core.py": leaving + RIGHT}, form)

    assert row.status in ("failed", "agent_error")
    assert row.verdicts == {form: False}
