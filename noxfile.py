"""Sessions for developers and CI: `check` is what a commit must pass."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

nox.options.sessions = ["check"]

GUIDED = ("channel", "claude", "codex", "document", "gate", "listing", "own", "task")
PYTEST_VERSIONS = {"8.1": "8.1.*", "8.4": "8.4.*", "9.0": "9.0.*", "newest": ""}


def _program(name: str) -> str:
    """Return a program of the environment that nox itself runs in, activated or not."""
    return str(Path(sys.executable).with_name(name))


@nox.session(venv_backend="none")
def check(session: nox.Session) -> None:
    """Check format, lint, types, imports and tests, in the environment at hand."""
    # Queued first: whoever breaks a lint rule still learns in the same run whether the tests pass.
    session.notify("tests")
    session.run(_program("ruff"), "format", "--check")
    session.run(_program("ruff"), "check")
    session.run(_program("mypy"))
    session.run(_program("lint-imports"))


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run the tests alone; arguments after `--` go to pytest."""
    # Without compiled files each worker rewrites the assertions of all tests again, at every run.
    env = {"PYTHONDONTWRITEBYTECODE": None}
    session.run(_program("pytest"), "-n", "2", "-rR", *session.posargs, env=env)


@nox.session(venv_backend="venv", reuse_venv=True)
@nox.parametrize("version", list(PYTEST_VERSIONS), ids=list(PYTEST_VERSIONS))
def matrix(session: nox.Session, version: str) -> None:
    """Run the tests on one version of pytest, in an environment of its own."""
    exact = PYTEST_VERSIONS[version]
    wanted = f"pytest=={exact}" if exact else "pytest"
    session.install("--upgrade", "-e", ".[dev]", wanted)
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session(venv_backend="venv", reuse_venv=True)
def coexistence(session: nox.Session) -> None:
    """Test what other plugins do beside ours, in an environment that has them all."""
    project = nox.project.load_toml("pyproject.toml")
    session.install("-e", ".[dev]", *nox.project.dependency_groups(project, "coexistence"))
    # Those plugins are for the sessions that the tests start, and would change that of the tests.
    env = {"EVALARC_COEXISTENCE": "true", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    own = ("-p", "evalarc", "-p", "timeout", "-p", "xdist")
    wanted = session.posargs or ["-n", "2", "tests/plugin/test_coexistence.py"]
    session.run("pytest", *own, *wanted, env=env)


@nox.session(venv_backend="venv", reuse_venv=True)
def pytest_own(session: nox.Session) -> None:
    """Run pytest's own tests without the plugin and with it; `-- --short` runs a few files."""
    session.install("--upgrade", "-e", ".", "pytest[dev]")
    session.run("python", "-m", "tests.compat.own_suite", *session.posargs)


@nox.session(venv_backend="none")
def fuzz(session: nox.Session) -> None:
    """Fuzz for an hour, or `-- --minutes N`; docs/fuzzing.md tells what, and how to go on."""
    session.run(_program("python"), "tests/fuzz/campaign.py", *session.posargs)


@nox.session(venv_backend="venv", reuse_venv=True)
def guided(session: nox.Session) -> None:
    """Fuzz each reader for some minutes, led by coverage; arguments after `--` go to each."""
    session.install("-e", ".[dev]", "atheris>=3")
    for target in GUIDED:
        session.run("python", "tests/fuzz/guided.py", target, *session.posargs)


@nox.session(venv_backend="none")
def schemas(session: nox.Session) -> None:
    """Write the JSON Schemas below docs/schemas again, after a document has changed."""
    session.run(_program("python"), "-m", "pytest_evalarc.cli.schemas", "docs/schemas")


@nox.session(venv_backend="venv", reuse_venv=True)
def locks(session: nox.Session) -> None:
    """Pin every environment again; `-- --upgrade` takes newer versions too."""
    _install_release_tools(session)
    session.run("python", "-m", "release.locks", *session.posargs)


@nox.session(venv_backend="venv", reuse_venv=True)
def advisories(session: nox.Session) -> None:
    """Ask whether holes are known in what is pinned; status 3 says that it could not be asked."""
    _install_release_tools(session)
    session.run("python", "-m", "release.advisories")


@nox.session(venv_backend="venv", reuse_venv=True)
def build(session: nox.Session) -> None:
    """Build the commit that is checked out twice, and keep it in dist/ when both are the same."""
    _install_release_tools(session)
    session.run("python", "-m", "release.build", "dist")


def _install_release_tools(session: nox.Session) -> None:
    session.install("--require-hashes", "-r", "requirements/release.txt")


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Build the site into site/, warnings being errors; `-- serve` shows it while it is written."""
    command = session.posargs or ["build", "--strict"]
    # The theme tells of its successor at every start.
    env = {"NO_MKDOCS_2_WARNING": "1"}
    session.run(_program("python"), "-m", "mkdocs", *command, env=env)


@nox.session(venv_backend="none")
def pictures(session: nox.Session) -> None:
    """Make the pictures of the pages again from real runs; look at them before they are kept."""
    session.run(_program("python"), "-m", "docsite.pictures")


@nox.session(venv_backend="none")
def faults(session: nox.Session) -> None:
    """Inject a fault at every system call of a session; arguments after `--` go to it."""
    wanted = session.posargs or ["--json", "faults.json"]
    session.run(_program("python"), "-m", "tests.faults", *wanted)


@nox.session(venv_backend="none")
def soak(session: nox.Session) -> None:
    """Run 500 hostile trials within bounds; arguments after `--` go to it."""
    session.run(_program("python"), "benchmarks/soak.py", *session.posargs)
