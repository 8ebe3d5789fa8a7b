"""Python submissions: how they are built, tested, checked and formatted, and by what."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_evalarc.grading.submission import GradingCopy, make_copy
from pytest_evalarc.grading.toolchains.python import Python
from pytest_evalarc.isolation.local import Local
from tests.grading.small_task import RIGHT, WRONG, outcomes
from tests.needs import needs_bwrap

slow = pytest.mark.slow
UNFORMATTED = RIGHT + "\n\nvalues = [ 1,2 ]\n"
DOUBLE_QUOTES = RIGHT.replace("'", '"')
LAX = "[format]\nquote-style = 'preserve'\nexclude = ['*']\n"


def test_the_staged_environment_holds_pytest_and_nothing_of_ours(staged):
    """The harness's environment holds references and mutants; no agent may import them."""
    names = {path.name for path in (staged.root / "lib").glob("python*/site-packages/*")}

    assert {"pytest", "_pytest", "pluggy"} <= names
    assert not [name for name in names if "evalarc" in name or name.startswith("pydantic")]


def test_the_staged_environment_is_compiled(staged):
    """Nobody may write there, so what is not compiled is compiled anew by every check."""
    folder = next((staged.root / "lib").glob("python*/site-packages/_pytest"))

    sources = {path.stem for path in folder.glob("*.py")}
    compiled = {path.name.partition(".")[0] for path in (folder / "__pycache__").glob("*.pyc")}

    assert sources == compiled
    assert list((staged.root / "grader" / "__pycache__").glob("submission.*.pyc"))


@slow
def test_the_staged_programs_run(staged):
    """An agent works with them as with those of any virtual environment."""
    said = {}
    for program, *arguments in (
        ["python3", "-c", "import pytest"],
        ["pytest", "--version"],
        ["ruff", "--version"],
    ):
        done = subprocess.run(
            [staged.root / "bin" / program, *arguments],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin"},
            check=True,
        )
        said[program] = done.stdout.partition(" ")[0]

    assert said == {"python3": "", "pytest": "pytest", "ruff": "ruff"}


def test_nothing_is_missing_where_the_package_is_installed():
    """Pytest and ruff are what it depends on itself."""
    assert Python().missing() is None


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    """Whoever reads it can act on it."""
    from importlib.metadata import PackageNotFoundError

    def distribution(name):
        if name == "ruff":
            raise PackageNotFoundError(name)

    monkeypatch.setattr("pytest_evalarc.grading.toolchains.python.distribution", distribution)

    assert Python().missing() == "the package ruff is not installed; pip install ruff"


def test_the_version_names_the_implementation():
    """Results of different interpreters are told apart."""
    assert Python().version.startswith("CPython 3.")


def copy_of(bench, task, files, tmp_path) -> GradingCopy:
    return make_copy(task, bench.submit(task, files), tmp_path / "copy")


def test_the_build_imports_modules_and_no_scripts(bench, small_task, tmp_path):
    """What may only be run, or belongs to a test runner, is compiled and not imported."""
    import json

    task = small_task.load(editable=["app", "tests", "single.py", "setup.py"])
    files = dict.fromkeys(
        [
            "app/sub/__init__.py",
            "app/sub/deep.py",
            "app/__main__.py",
            "app/conftest.py",
            "app/test_it.py",
            "app/it_test.py",
            "app/tests/helper.py",
            "app/not-a-name.py",
            "app/2nd.py",
            "single.py",
            "setup.py",
            "tests/helper.py",
        ],
        "",
    )
    build, _own_tests, _format = Python().steps(
        task, copy_of(bench, task, files, tmp_path), bench.tools
    )

    asked = json.loads(build.graders[0].request("nonce"))

    assert asked["modules"] == [
        "app",
        "app._fixtures",
        "app.core",
        "app.sub",
        "app.sub.deep",
        "single",
    ]
    assert set(files) <= set(asked["sources"])


@slow
@needs_bwrap
def test_a_package_below_src_is_imported_by_its_own_name(bench, small_task):
    """Many projects keep their package there, and nobody imports `src.package`."""
    small_task.only_check(
        "def test_it(submission):\n    assert submission.call('kept.here:value') == 42\n"
    )
    task = small_task.load(editable=["app", "src", "tests"])
    files = {
        "src/kept/__init__.py": "",
        "src/kept/here.py": "def value():\n    return 42\n",
        "tests/test_kept.py": (
            "from kept.here import value\n\n\ndef test_it():\n    assert value()\n"
        ),
    }

    grading = bench.grade(task, bench.submit(task, files))

    assert {step.name: step.status for step in grading.steps} == {
        "build": "pass",
        "unit_tests": "pass",
        "fmt_check": "pass",
    }
    assert [row.status for row in grading.rows] == ["passed"]


def test_there_may_be_nothing_to_do(bench, small_task, tmp_path):
    """No tests is fine, and what holds no source is formatted."""
    task = small_task.load()
    gone = ["app/__init__.py", "app/_fixtures.py", "app/core.py"]
    copy = make_copy(task, bench.submit(task, {}, gone=gone), tmp_path / "copy")

    steps = {step.name: step.graders for step in Python().steps(task, copy, bench.tools)}

    assert steps["unit_tests"] == ()
    assert steps["fmt_check"] == ()


@slow
@needs_bwrap
@pytest.mark.parametrize(
    ("core", "reason"),
    [
        ("def value(:\n", "app/core.py: SyntaxError"),
        ("x = '\0'\n", "app/core.py: SyntaxError|app/core.py: ValueError"),
        (b"x = '\xff'\n", "app/core.py: SyntaxError"),
        ("x = " + "(" * 10000 + "\n", "app/core.py: "),
        ("import no_such_module\n", "import app.core: ModuleNotFoundError"),
        ("import sys\n\nsys.exit(0)\n", "import app.core: SystemExit: 0"),
        ("raise KeyboardInterrupt\n", "import app.core: KeyboardInterrupt"),
        ("import os\n\nos._exit(0)\n", "its process ended before the run did"),
    ],
)
def test_what_does_not_build_says_why(bench, small_task, core, reason):
    """The first thing that an author of a failed trial wants to know."""
    task = small_task.load()

    row = bench.step(task, {"app/core.py": core}, "build")

    assert row.status == "fail"
    assert any(row.detail.startswith(part) for part in reason.split("|")), row.detail


@slow
@needs_bwrap
def test_a_module_called_like_one_of_ours_is_built(bench, small_task):
    """The runner's own modules must not stand in for the submission's."""
    task = small_task.load(editable=["app", "channel.py"])

    row = bench.step(task, {"channel.py": "import no_such_module\n"}, "build")

    assert row.status == "fail"


@slow
@needs_bwrap
@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({"tests/test_it.py": "def test_it():\n    pass\n"}, "pass"),
        ({"tests/test_it.py": "def helper():\n    pass\n"}, "pass"),
        ({"tests/test_it.py": "def test_it():\n    assert 0\n"}, "fail"),
        ({"tests/test_it.py": "import no_such_module\n"}, "fail"),
        ({"tests/test_it.py": "import os\n\nos._exit(0)\n"}, "fail"),
        # Its own configuration holds in its own tests, and they may write beside themselves.
        (
            {
                "tests/conftest.py": (
                    "import pytest\n\n\n@pytest.fixture\ndef here():\n    return 'here'\n"
                ),
                "tests/test_it.py": (
                    "from pathlib import Path\n\nfrom app import core\n\n\n"
                    "def test_it(here):\n"
                    "    Path(__file__).with_name('written').write_text(here)\n"
                    "    assert core.value() == 42\n"
                ),
                "app/core.py": RIGHT,
            },
            "pass",
        ),
    ],
)
def test_own_tests_run_as_their_author_runs_them(bench, small_task, files, status):
    """They are part of what an agent is asked for; having none is not held against it."""
    task = small_task.load()

    assert bench.step(task, files, "unit_tests").status == status


@slow
@needs_bwrap
@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({"app/core.py": RIGHT}, "pass"),
        ({"app/core.py": UNFORMATTED}, "fail"),
        # The starter's own settings ask for single quotes.
        ({"app/core.py": DOUBLE_QUOTES}, "fail"),
        ({"app/core.py": DOUBLE_QUOTES, "app/ruff.toml": LAX}, "fail"),
        ({"app/core.py": DOUBLE_QUOTES, "app/.ruff.toml": LAX}, "fail"),
        (
            {"app/core.py": DOUBLE_QUOTES, "app/pyproject.toml": "[tool.ruff]\nexclude=['*']\n"},
            "fail",
        ),
        ({"app/core.py": UNFORMATTED, "pyproject.toml": "[tool.ruff]\nexclude=['*']\n"}, "fail"),
        ({"app/core.py": UNFORMATTED, ".ruff.toml": LAX}, "fail"),
        ({"app/core.py": RIGHT, "pyproject.toml": "not TOML"}, "pass"),
        ({"app/core.py": RIGHT, "app/.gitignore": "*\n", "app/more.py": "x=1\n"}, "fail"),
    ],
)
def test_the_starters_settings_decide_what_is_formatted(bench, small_task, files, status):
    """Whoever may edit settings could otherwise switch the check off."""
    task = small_task.load(editable=["app", "pyproject.toml", ".ruff.toml"])

    row = bench.step(task, files, "fmt_check")

    assert row.status == status
    assert status == "pass" or "app/" in row.detail


@slow
@needs_bwrap
def test_without_settings_ruffs_own_hold(bench, small_task):
    """Not those of a folder above, which is another one on every machine."""
    (small_task.folder / "starter" / "pyproject.toml").unlink()
    task = small_task.load()
    files = {"app/core.py": DOUBLE_QUOTES, "app/_fixtures.py": ""}

    assert bench.step(task, files, "fmt_check").status == "pass"
    assert bench.step(task, {**files, "app/core.py": RIGHT}, "fmt_check").status == "fail"


@slow
def test_a_trusted_submission_leaves_no_byte_code(bench, small_task):
    """Without a boundary it could write to the copy, and the next check would run that."""
    task = small_task.load()
    submission = bench.reference(task)

    grading = bench.grade(task, submission, Local())

    assert outcomes(grading)["in_process"] == "passed"
    assert not list(submission.root.rglob("__pycache__"))


def test_the_interpreter_is_the_hosts_own(bench, small_task, tmp_path):
    """Isolated, without site packages and without byte code: nothing of anybody is read."""
    task = small_task.load()
    copy = copy_of(bench, task, {"app/core.py": WRONG}, tmp_path)

    (grader,) = Python().check(task, task.checks[0], copy, bench.tools)

    assert grader.argv[1:4] == ("-I", "-S", "-B")
    assert Path(grader.argv[4]).is_relative_to(bench.tools.root)
