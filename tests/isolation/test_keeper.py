from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evalarc.isolation import keeper
from pytest_evalarc.isolation.host import base_python
from tests.isolation.programs import becomes_true, living, marker, shell

pytestmark = pytest.mark.slow
SCRIPT = (str(base_python()), "-I", "-S", "-B", str(Path(keeper.__file__)))


def keep(*argv: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*SCRIPT, str(theirs.fileno()), "", *argv],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    return process, ours


def last_words(process: subprocess.Popen[bytes], ours: socket.socket) -> bytes:
    with process, ours:
        process.wait(30)
        return ours.recv(4096)


@pytest.mark.parametrize(
    ("script", "said"), [("exit 0", b"0 \n"), ("exit 9", b"9 \n"), ("kill -9 $$", b"-9 \n")]
)
def test_the_keeper_tells_how_the_command_ended(script: str, said: bytes) -> None:
    """Its own exit status could be taken for the command's."""
    assert last_words(*keep(*shell(script))) == said


def test_a_command_that_cannot_be_started_is_told() -> None:
    """As a shell would: nobody may take it for a command that failed."""
    process, ours = keep("/no/such/program")
    assert process.stderr is not None

    complaint = process.stderr.read()

    assert last_words(process, ours) == b"127 \n"
    assert complaint == b"/no/such/program: No such file or directory\n"


def test_a_closed_socket_ends_the_tree() -> None:
    """It closes when the harness asks, and by itself when the harness is dead."""
    mark = marker()
    process, ours = keep(*shell("trap '' TERM; while :; do sleep 600; done", mark))
    assert becomes_true(lambda: len(living(mark)) == 2)

    ours.shutdown(socket.SHUT_WR)

    assert last_words(process, ours) == b"-9 \n"
    assert living(mark) == []


def is_stopped(pid: int) -> bool:
    try:
        return b"T (stopped)" in Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False


def test_a_byte_asks_and_does_not_force() -> None:
    """A process may finish what it is doing, or go on until it is ended."""
    process, ours = keep(*shell("trap 'exit 7' TERM; kill -STOP $$; while :; do sleep 0.01; done"))
    # It has stopped itself, so it has set its trap: before that the signal would end it at once.
    assert becomes_true(lambda: any(is_stopped(pid) for pid in keeper.descendants(process.pid)))

    ours.send(b"t")
    for pid in keeper.descendants(process.pid):
        keeper.send(18, [pid])

    assert last_words(process, ours) in (b"7 \n", b"-15 \n")


def test_signals_to_the_group_do_not_end_the_keeper() -> None:
    """Ctrl-C goes to all of a group, and somebody must be left to sweep."""
    mark = marker()
    process, ours = keep(*shell("while :; do sleep 600; done", mark))
    assert becomes_true(lambda: len(living(mark)) == 2)

    for number in keeper.OWN_SIGNALS:
        os.kill(process.pid, number)
    ours.shutdown(socket.SHUT_WR)

    assert last_words(process, ours) == b"-9 \n"


def test_descendants_are_found_whatever_they_are_called() -> None:
    """The name of a process stands in the middle of the line, and it may hold anything."""
    rename = "import sys; open('/proc/self/comm', 'w').write(') R 1 (x'); print(1, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{rename}; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()

        found = keeper.descendants(os.getpid())

        child.kill()
    assert child.pid in found


def test_a_process_that_has_just_ended_is_no_error() -> None:
    """Between the look and the signal anything may end, and the others must still be reached."""
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with subprocess.Popen(["sleep", "600"]) as living:
        keeper.send(9, [ended.pid, living.pid])

    assert living.returncode == -9
