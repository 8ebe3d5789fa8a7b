"""What a test needs from the machine: absent, it is skipped with the reason, and fails in CI.

A skip in CI would read as a pass of something that never ran. A test that starts real programs is
tried a second time there, in sight: see `pytest_collection_modifyitems`.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from functools import lru_cache

import pytest


def needs(program: str) -> pytest.MarkDecorator:
    """Return a mark for tests that start a program of the machine, as `git` or `node`."""
    return pytest.mark.needs(program)


needs_bwrap = needs("bwrap")
"""A bubblewrap, from the system or from its wheel, that may make user namespaces here."""

needs_srt = needs("srt")
"""The sandbox runtime, installed as a tool, with the programs that it starts."""

needs_claude = needs("claude")
needs_codex = needs("codex")
"""An agent's command line, installed as a tool; neither an account nor a key goes with it."""

needs_podman = needs("podman")
"""A podman that root may use: its limits then hold on every machine."""

needs_sshd = needs("sshd")
"""OpenSSH's daemon with its client: tests start daemons of their own on loopback."""

needs_mount = needs("mount")
"""A user who may mount a file system that nobody else sees."""

COEXISTENCE = "EVALARC_COEXISTENCE"
"""Set by `nox -s coexistence`, whose environment holds every plugin: none may then be missing."""


def needs_plugin(distribution: str) -> pytest.MarkDecorator:
    """Return a mark for tests of what another plugin of pytest does beside ours.

    Not every environment has them all, in CI neither: most would change the sessions of all other
    tests, as one that shows results in its own way.
    """
    return pytest.mark.needs_plugin(distribution)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(program): skipped where it is missing, fails in CI")
    config.addinivalue_line(
        "markers", "needs_plugin(distribution): skipped where it is not installed"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let a slow test that fails in CI run once more; pytest's closing line counts each `rerun`.

    Hundreds of real programs on a machine shared by others leave something to chance, and a whole
    run is half an hour. A test that was rerun is named by `-rR`, and is a fault to be mended.
    """
    has = config.pluginmanager.hasplugin
    # The plugin `flaky` would read the same mark in its own way.
    if os.environ.get("CI") == "true" and has("rerunfailures") and not has("flaky"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs_plugin"):
        if not _is_installed(mark.args[0]):
            missing = f"{mark.args[0]} is not installed; nox -s coexistence has it"
            skip_or_fail = pytest.fail if os.environ.get(COEXISTENCE) else pytest.skip
            skip_or_fail(missing)
    for mark in item.iter_markers("needs"):
        lacking = _lacking(mark.args[0])
        if lacking and os.environ.get("CI") == "true":
            pytest.fail(f"{lacking}, and CI must run every test", pytrace=False)
        elif lacking:
            pytest.skip(lacking)


@lru_cache
def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@lru_cache
def _lacking(program: str) -> str | None:  # noqa: PLR0911 - one for each program.
    """Return what is lacking as a sentence, or None when the program can be used."""
    if program == "bwrap":
        return _lacking_bwrap()
    if program in ("claude", "codex"):
        from pytest_evalarc.isolation.toolset import missing

        return missing(program)
    if program == "srt":
        from pytest_evalarc.isolation.srt import missing

        return _lacking_bwrap() or missing()
    if program == "sshd":
        return lacking_sshd()
    if program == "mount":
        return _lacking_mount()
    if program == "podman" and os.geteuid() != 0:
        return "podman is tried as root alone"
    if program == "node":
        from pytest_evalarc.grading.toolchains.node import Node

        return Node().missing()
    return None if shutil.which(program) else f"{program} is not on PATH"


def _lacking_bwrap() -> str | None:
    from pytest_evalarc.isolation.host import find_bwrap

    program = find_bwrap()
    if program is None:
        return "bwrap is neither on PATH nor installed as a wheel"
    # Many hosts have the program and forbid what it does, so only a real start can tell.
    argv = [str(program.path), "--ro-bind", "/", "/", "--unshare-all", "--unshare-user", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"bwrap cannot start: {done.stderr.strip()}" if done.returncode else None


def _lacking_mount() -> str | None:
    if not shutil.which("unshare"):
        return "unshare is not on PATH"
    argv = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"nothing can be mounted here: {done.stderr.strip()}" if done.returncode else None


def lacking_sshd() -> str | None:
    """Return which program of OpenSSH is not here, or None."""
    # Daemons are kept off the PATH of users.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
    for name in ("sshd", "ssh", "ssh-keygen"):
        if not shutil.which(name, path=path):
            return f"{name} is not installed"
    return None
