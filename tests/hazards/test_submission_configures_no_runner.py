"""Files of the submission decide what the runner of hidden checks reports.

A `conftest.py`, a setting, a plugin that an entry point names or a module that the runner imports
late is picked up because it lies in the folder. The attacks that win on a plain runner are in
`tests/grading/attacks.py`; these are the further names that some version of pytest or of Python
looks for, and a right submission that has them all must still pass: pantsbuild/pants#2726.
"""

from __future__ import annotations

import pytest

from tests.grading.small_task import RIGHT, WRONG
from tests.needs import needs_bwrap

pytestmark = [needs_bwrap, pytest.mark.slow]

LEAVES = "import os\n\nos._exit(0)\n"
SETTINGS = {
    "pytest.toml": "[pytest]\naddopts = ['-p', 'evil']\n",
    ".pytest.toml": "[pytest]\naddopts = ['-p', 'evil']\n",
    ".pytest.ini": "[pytest]\naddopts = -p evil\n",
    "pyproject.toml": "[tool.pytest]\naddopts = ['-p', 'evil']\n",
    ".env": "PYTEST_ADDOPTS=-p evil\n",
    ".coveragerc": "[run]\nplugins = evil\n",
    "setup.py": LEAVES,
    "x.egg-info/entry_points.txt": "[pytest11]\nx = evil\n",
    "x-1.dist-info/entry_points.txt": "[pytest11]\nx = evil\n",
    "conftest/__init__.py": LEAVES,
    "pyvenv.cfg": "home = /nowhere\n",
    "__pycache__/core.cpython-311.pyc": "x",
    "python311._pth": ".\nimport site\n",
}
IMPORTED_LATE = (
    *("_pytest", "antigravity", "argcomplete", "ast", "attr", "call", "channel", "colorama"),
    *("conftest", "coverage", "doctest", "exceptiongroup", "execnet", "faulthandler", "greenlet"),
    *("hypothesis", "importlib_metadata", "iniconfig", "inspect", "mock", "nose", "numpy"),
    *("packaging", "pdb", "pexpect", "pkg_resources", "pluggy", "py", "pygments", "pytest"),
    *("pytest_cov", "readline", "setuptools", "sitecustomize", "submission", "tomli", "tomllib"),
    *("trio", "twisted", "typing_extensions", "unittest", "usercustomize", "xdist"),
)
each_form = pytest.mark.parametrize("form", ["in_process", "child_form"])


@each_form
@pytest.mark.parametrize(("name", "content"), SETTINGS.items())
def test_a_setting_of_the_submission_is_data(
    bench, small_task, form: str, name: str, content: str
) -> None:
    """A wrong submission stays wrong, and no plugin of its own is even imported."""
    task = small_task.load(editable=["app", "evil.py", name.partition("/")[0]])

    row = bench.check(task, {"app/core.py": WRONG, "evil.py": LEAVES, name: content}, form)

    # Of the check itself, so that everything up to it went its usual way.
    assert (row.status, row.answered) == ("failed", True)
    assert "assert 41 == 42" in row.detail


@each_form
@pytest.mark.parametrize("core", [RIGHT, WRONG], ids=["right", "wrong"])
def test_no_module_of_the_submission_stands_in_for_one_of_the_runner(
    bench, small_task, form: str, core: str
) -> None:
    """Whatever the runner imports late is its own, and the verdict is that of the work."""
    planted = {f"{name}.py": LEAVES for name in IMPORTED_LATE}
    planted |= {f"app/{name}.py": LEAVES for name in IMPORTED_LATE}
    task = small_task.load(editable=["app", *(path for path in planted if "/" not in path)])

    row = bench.check(task, {**planted, "app/core.py": core}, form)

    assert row.status == ("passed" if core == RIGHT else "failed")
