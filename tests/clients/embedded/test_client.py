from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evalarc.clients.embedded.client import Embedded, client_sha256, program_files
from pytest_evalarc.clients.embedded.nop import nop
from pytest_evalarc.clients.embedded.oracle import oracle
from pytest_evalarc.clients.embedded.replay import replay
from pytest_evalarc.clients.protocol import Client, Needs, Plays, Script
from pytest_evalarc.errors import InfrastructureError, UsageError
from pytest_evalarc.isolation.command import Command, Ended, Exit
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import TaskBrief

PROMPT = "Please fix the parser."


def launch(client: Client, script: Script | None, layout: RunLayout) -> Command:
    return client.launch(
        TaskBrief(name="fix-parser", prompt=PROMPT),
        layout,
        python=Path("/stage/python"),
        program_dir=Path("/stage/tools"),
        env={"HOME": "/run/home"},
        model=None,
        settings={},
        script=script,
    )


@pytest.mark.parametrize(
    ("make", "plays"),
    [(oracle, Plays.SOLUTION), (nop, Plays.NOTHING), (replay, Plays.RECORDING)],
)
def test_the_embedded_clients_differ_in_whose_work_they_play_alone(
    make: Callable[[], Embedded], plays: Plays
) -> None:
    """They are controls of one pipeline, so all of them must go through the same of it."""
    client = make()
    layout = RunLayout(root=Path("/run"))
    script = Script(writes={"a": (b"\xff", 0o600)}, links={"l": "t"}, transcript=b"\x00")

    command = launch(client, script, layout)

    assert client.plays is plays
    assert client.embedded
    assert client.needs == Needs()
    assert command.argv == ("/stage/python", "-I", "-S", "-B", "/stage/tools/player.py")
    assert command.cwd == Path("/run/project")
    assert command.env == {"HOME": "/run/home"}
    assert command.secrets == ()
    told = json.loads(command.stdin)
    assert b64decode(told["writes"]["a"][0]) == b"\xff"
    assert told["writes"]["a"][1] == 0o600
    assert told["links"] == {"l": "t"}
    assert b64decode(told["transcript"]) == b"\x00"
    assert told["skill_folder"] == ".agents/skills"


def test_a_launch_without_a_script_is_refused() -> None:
    """An oracle that was told nothing would look like one whose solution is empty."""
    with pytest.raises(InfrastructureError, match="client oracle: was launched without a script"):
        launch(oracle(), None, RunLayout(root=Path("/run")))


def test_reading_tells_when_the_capture_kept_less_than_was_printed(tmp_path: Path) -> None:
    """The kept part may parse without a fault, and still prove no absence."""
    stdout = tmp_path / "stdout"
    stdout.write_bytes(b'{"type": "start", "format": "evalarc.stream.v1", "cwd": "/p"}\n')
    size = stdout.stat().st_size
    layout = RunLayout(root=tmp_path)

    def ended(stdout_bytes: int) -> Exit:
        return Exit(
            reason=Ended.EXITED,
            status=0,
            stdout_bytes=stdout_bytes,
            stderr_bytes=0,
            wall_time_s=0.1,
        )

    assert nop().read(stdout, ended(size), layout).interpreted
    assert not nop().read(stdout, ended(size + 1), layout).interpreted


def test_the_digest_names_the_program_that_is_staged() -> None:
    """Results record it: two batches with one digest ran one client."""
    (name,) = program_files()
    content = program_files()[name]

    inner = hashlib.sha256(content).digest()

    assert name == "player.py"
    assert client_sha256() == hashlib.sha256(b"player.py\0" + inner).hexdigest()
    assert oracle().sha256() == client_sha256()


def test_what_is_staged_is_the_program_that_is_launched(tmp_path: Path) -> None:
    """The session sees no other copy of it."""
    nop().stage(tmp_path)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == program_files()


def test_a_label_configures_nothing_but_settings() -> None:
    """A command that nothing heeds would stand in the plan as if it had run."""
    client = replay()
    facts = {"command": (), "key_env": (), "model": "m", "settings": {"recording": "old"}}

    assert client.configured("friday", **facts) is client
    for key, value in (("command", ("agent",)), ("key_env", ("MY_KEY",))):
        with pytest.raises(UsageError, match=f"client friday: is replay, which takes no {key}"):
            client.configured("friday", **{**facts, key: value})


def test_each_session_is_watched_on_its_own() -> None:
    """The end of one trial must not end the next."""
    client, end = oracle(), b'{"type":"completion","is_error":false}\n'
    first, second = client.watcher(), client.watcher()

    assert first(end)
    assert not second(b"")
