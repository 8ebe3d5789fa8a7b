"""Two workers list the same folder in another order, and the items of one are never run.

File systems promise no order, and xdist compares the lists item by item: a difference ends the run,
or an item is both failed and passed. Source: pytest-dev/pytest-xdist#432, pytest-dev/pytest#12350.
"""

from __future__ import annotations

import pytest

from tests.needs import needs_bwrap
from tests.plugin.project import Project

pytestmark = [needs_bwrap, pytest.mark.slow]

REVERSED = """\
import os

if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
    scandir, listdir = os.scandir, os.listdir

    class Entries:
        def __init__(self, found):
            self._found = iter(found)

        def __enter__(self):
            return self._found

        def __exit__(self, *_):
            self.close()

        def __iter__(self):
            return self._found

        def close(self):
            pass

    os.scandir = lambda *where: Entries(list(scandir(*where))[::-1])
    os.listdir = lambda *where: listdir(*where)[::-1]

from shell import *
"""


def test_a_worker_that_lists_folders_backwards_runs_the_same_items(project: Project) -> None:
    """Tasks, checks and plugins are sorted where they are read, so every worker has one list."""
    for name in ("aa", "mm", "zz"):
        project.add_task(name)
    project.write("conftest.py", REVERSED)

    session = project.pytest("-n", "2", "evals", "--evalarc-client=good", "-q")

    assert session.ret == 0
    assert session.counts == {"passed": 64}
    scores = [audit["mutation_score"] for audit in project.documents("audit.json").values()]
    assert scores == [1.0] * 4
    hashes = {result["task"]["content_hash"] for result in project.trial_results().values()}
    audits = {audit["task"]["content_hash"] for audit in project.documents("audit.json").values()}
    assert hashes <= audits
