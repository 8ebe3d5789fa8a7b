"""A submission is nested so deeply that no path to its files can be opened.

Each name is short enough, and all together are longer than the system takes in one call: whoever
joins paths gets an error that is neither the submission's nor the machine's, and what cannot be
opened cannot be removed either. The walk goes by descriptors: cloudfoundry/bosh-agent#313.
"""

from __future__ import annotations

import os

import pytest

from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.submission import keep, read_kept, read_submission
from tests.grading.small_task import RIGHT, outcomes
from tests.needs import needs_bwrap


def nest(folder: str | os.PathLike[str], *, levels: int) -> None:
    """Make a module below so many folders of 250 characters each."""
    name = "d" * 250
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    module = os.open("x.py", os.O_WRONLY | os.O_CREAT, dir_fd=at)
    os.write(module, b"x = 1\n")
    os.close(module)
    os.close(at)


@needs_bwrap
@pytest.mark.slow
@pytest.mark.parametrize("place", ["app", "."], ids=["editable", "elsewhere"])
def test_a_path_longer_than_the_system_takes_ends_as_an_outcome(
    bench, small_task, place: str
) -> None:
    """It is listed, kept, read back and judged; where it is no source, it does no harm at all."""
    task = small_task.load()
    project = bench.submit(task, {"app/core.py": RIGHT}).root
    nest(project / place, levels=25)

    submission = read_submission(project)
    keep(submission, bench.root / "kept")
    again = read_kept(bench.root / "kept")
    grading = bench.grade(task, submission)

    assert max(len(entry.path) for entry in submission.manifest.entries) > os.pathconf(
        "/", "PC_PATH_MAX"
    )
    assert again.sha256 == submission.sha256
    assert grading.status == "graded"
    assert outcomes(grading)["build"] == ("fail" if place == "app" else "pass")
    assert grading.code_passed is (place != "app")
    remove_tree(bench.root)
    assert not bench.root.exists()
