from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pytest_evalarc.clients.claude.client import ClaudeClient
from pytest_evalarc.clients.codex.client import CodexClient
from pytest_evalarc.errors import UsageError
from pytest_evalarc.isolation import toolset
from pytest_evalarc.isolation.toolset import FOLDER_VARIABLE, MINIMUM
from tests.clients.installed import install

Agents: TypeAlias = ClaudeClient | CodexClient

NEW, NEWER, OLD = "900.1.2", "900.1.3", "0.0.1"


@pytest.fixture(params=[ClaudeClient, CodexClient], ids=lambda kind: str(kind.name))
def agent(request: pytest.FixtureRequest) -> Agents:
    """Return each client as the package brings it, before a table says anything."""
    made: Agents = request.param()
    return made


def labelled(agent: Agents, *command: str, **facts: Any) -> Agents:
    given = {"key_env": (), "model": "m-1", "settings": {}, **facts}
    return agent.configured("mine", command=command, **given)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder in which programs are found."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "tools"))
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    return tmp_path / "tools"


# What a table makes of it.


def test_what_a_table_leaves_out_stays_the_client_s_own(agent: Agents) -> None:
    """A table of three lines is enough, and says all that is not as usual."""
    plain = labelled(agent)
    asked = labelled(agent, "/opt/agent", key_env=("A", "B"), settings={"max_retries": 3})

    assert (plain.label, plain.name, plain.embedded) == ("mine", agent.name, False)
    assert (plain.command, plain.key_env) == (None, agent.key_env)
    assert plain.settings == agent.settings
    assert (asked.command, asked.key_env) == (Path("/opt/agent"), ("A", "B"))
    assert asked.settings.max_retries == 3
    assert asked.name == agent.name


@pytest.mark.parametrize(
    ("command", "facts", "sentence"),
    [
        ((), {"model": None}, "client mine: names no model; add .*, or give --evalarc-model"),
        ((), {"model": ""}, "client mine: names no model"),
        (("/a/b", "-x"), {}, 'mine: command: is more than a program; leave .* client = "command"'),
        (("b",), {}, "mine: command: is no absolute path; write the absolute path of a {name}, or"),
        (("/a\0b",), {}, "client mine: command: is no absolute path"),
        ((), {"key_env": ("MY KEY",)}, "client mine: key_env: 'MY KEY' is no variable"),
        ((), {"settings": {"model": "x"}}, "client mine: takes no setting 'model'"),
    ],
)
def test_a_table_that_cannot_be_meant_is_told_in_one_sentence(
    agent: Agents, command: tuple[str, ...], facts: dict[str, Any], sentence: str
) -> None:
    """Which model an account prefers is no part of an evaluation, so none is assumed."""
    with pytest.raises(UsageError, match=sentence.format(name=agent.name)):
        labelled(agent, *command, **facts)


# The program.


def test_the_installed_program_is_used(agent: Agents, tools: Path) -> None:
    """Results name the version and the digest of what runs."""
    program = install(agent.name, tools, NEW, b"\x7fELF one")
    made = labelled(agent)

    assert (made.missing(), made.version, made.tool.path) == (None, NEW, program)
    assert made.sha256() == hashlib.sha256(b"\x7fELF one").hexdigest()


def test_a_program_that_is_not_there_is_told_before_the_first_trial(
    agent: Agents, tools: Path, tmp_path: Path
) -> None:
    """A setup failure is final."""
    nowhere, gone = labelled(agent), labelled(agent, str(tmp_path / "gone"))

    told = str(nowhere.missing())
    assert f"{agent.name} is neither in {tools}" in told
    assert "run `pytest-evalarc tools install`" in told
    assert "is not there, or cannot be executed" in str(gone.missing())
    for made in (nowhere, gone):
        assert (made.version, made.sha256()) == (None, None)


def test_a_program_that_is_too_old_is_told(agent: Agents, tools: Path, tmp_path: Path) -> None:
    """What it prints could be read as something else."""
    install(agent.name, tools, OLD)
    other = install(agent.name, tmp_path / "elsewhere", OLD)
    installed, named = labelled(agent), labelled(agent, str(other))

    assert f"is older than {MINIMUM[agent.name]}" in str(installed.missing())
    assert named.missing() == (
        f"client mine: command {other}: is {OLD}, older than {MINIMUM[agent.name]}; update it"
    )
    for made in (installed, named):
        assert (made.version, made.sha256()) == (None, None)


def test_another_program_can_be_named(agent: Agents, tools: Path, tmp_path: Path) -> None:
    """Two versions are compared under two labels."""
    install(agent.name, tools, NEW)
    other = install(agent.name, tmp_path / "elsewhere", NEWER, b"\x7fELF other")

    made = labelled(agent, str(other))

    assert (made.version, made.missing()) == (NEWER, None)
    assert made.sha256() == hashlib.sha256(b"\x7fELF other").hexdigest()


def test_a_program_outside_of_a_package_is_asked_for_its_version(
    agent: Agents, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats change between versions, and results name one."""
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    said = {"version": f"agent {NEW}"}
    monkeypatch.setattr(toolset, "ask", lambda *_: said["version"])
    made = labelled(agent, str(program))

    assert (made.version, made.tool.path) == (NEW, program)

    said["version"] = f"agent {OLD}"
    program.write_bytes(b"\x7fELF older")
    assert f"command {program}: is {OLD}, older than" in str(made.missing())


def test_a_script_in_front_of_the_program_is_not_the_program(
    agent: Agents, tools: Path, tmp_path: Path
) -> None:
    """What it would start is known to it alone, and lies where a trial may not read."""
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho {NEW}\n")
    script.chmod(0o755)

    told = str(labelled(agent, str(script)).missing())

    assert f"command {script}: is a script, or tells no version; name the program itself" in told
