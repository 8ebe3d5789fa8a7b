"""Candidates in real containers: what they can do, what they cannot, and that nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.tree import remove_tree
from pytest_evalarc.grading.pack import CandidateError
from pytest_evalarc.grading.session import Bounds, CandidateSession
from pytest_evalarc.isolation import engine_program
from pytest_evalarc.isolation.command import Command, Names, Policy
from pytest_evalarc.isolation.engine import Engine
from pytest_evalarc.isolation.engine_program import OOM_STATUS
from pytest_evalarc.model.task import Limits
from tests.isolation.images import IMAGE, containers
from tests.isolation.programs import becomes_true, living, marker
from tests.needs import needs_podman

pytestmark = [pytest.mark.slow, needs_podman]

LONG_S = 120.0
"""Beyond what the busiest machine needs, where the wait itself is not under test."""
LIMITS = Limits(memory_mib=128, processes=20, tmp_mib=16, disk_mib=32)
SYSTEM = Path(__file__).parent.parent.parent

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()\n"
EVALUATES = """
import json, os, socket, subprocess, sys
def told(act):
    try:
        return act()
    except Exception as error:
        return type(error).__name__
def tried(act, *arguments):
    return told(lambda: act(*arguments) and None)
for line in sys.stdin: print(json.dumps(told(lambda: eval(json.loads(line)))), flush=True)
"""
OUTLIVES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(60)
    os._exit(0)
for line in sys.stdin: print(line, end="", flush=True)
"""


@dataclass
class Stage:
    """Where candidates are put on: one engine, one folder of theirs, one state."""

    engine: Engine
    environ: Mapping[str, str]
    folder: Path
    opened: int = 0
    """Rights that everybody gets to the candidate's files."""

    def open(
        self, code: str, *arguments: str, program: str | None = None, **bounds: float
    ) -> CandidateSession:
        workspace, state = self.folder / "workspace", self.folder / "state"
        workspace.mkdir(exist_ok=True)
        state.mkdir(exist_ok=True)
        (workspace / "main.py").write_text(code)
        for path in (workspace, workspace / "main.py"):
            path.chmod(path.stat().st_mode | self.opened)
        host = Names(word="python", program="", workspace=workspace, state=state)
        names = self.engine.names(host)
        command = Command(
            argv=(program or names.program, "-I", "-B", "main.py", *arguments),
            cwd=names.workspace,
            env={"PATH": "/nowhere", "HOME": "/tmp", "LANG": "C.UTF-8"},
        )
        given = {"case_ends_s": time.monotonic() + LONG_S, "startup_s": LONG_S, **bounds}
        return CandidateSession(
            self.engine,
            command,
            Policy(read=(workspace,), write=(state,), limits=LIMITS),
            bounds=Bounds(**{"response_s": LONG_S, **given}),  # type: ignore[arg-type]
        )

    def fault(self, code: str, **bounds: float) -> tuple[str, int | None]:
        """Return what a candidate is found guilty of, and its status."""
        with self.open(code, **bounds) as session, pytest.raises(CandidateError) as caught:
            session.ask(None)
            session.end("eof")
        assert self.left == []
        return caught.value.kind, session.row.exit_code

    @property
    def left(self) -> list[str]:
        return containers(self.environ, os.getpid())


@pytest.fixture
def stage(podman: Engine, podman_environ: dict[str, str], tmp_path: Path) -> Stage:
    return Stage(podman, podman_environ, tmp_path)


def test_replies_are_returned_in_turn_and_nothing_is_left(stage: Stage) -> None:
    """The ordinary course of a session, against which all faults below are told."""
    with stage.open(ECHO) as session:
        replies = [session.ask(value) for value in ({"a": [1, 2.5, None]}, "text", True)]
        session.end("eof")

    assert replies == [{"a": [1, 2.5, None]}, "text", True]
    assert (session.row.exit_code, session.row.reason) == (0, "exited")
    assert session.row.output_bytes == len('{"a": [1, 2.5, null]}\n"text"\ntrue\n')
    assert session.row.stderr_tail == ""
    assert stage.left == []


def test_state_outlives_a_kill_and_can_be_removed_by_the_harness(stage: Stage) -> None:
    """What was acknowledged must still be there, in folders that the candidate made as well."""
    with stage.open(EVALUATES) as session:
        session.ask("os.makedirs('/state/deep/er')")
        session.ask("open('/state/deep/er/file', 'w').write('kept')")
        session.end("kill")
    with stage.open(EVALUATES) as session:
        kept = session.ask("open('/state/deep/er/file').read()")
        session.end("eof")

    assert kept == "kept"
    assert (stage.folder / "state/deep/er/file").read_text() == "kept"
    remove_tree(stage.folder / "state")


def test_only_state_and_a_small_memory_file_system_can_be_written(stage: Stage) -> None:
    """All else belongs to the image, to the harness or to the host."""
    places = ["/x", "/candidate/x", "/candidate/main.py", "/usr/x", "/etc/passwd", "/run/x"]
    # Its mode would let anybody write there, and so would those of the candidate's own files.
    places += ["/dev/x", "/var/tmp/x", "/sys/fs/cgroup/x", "/proc/sys/kernel/hostname"]
    stage.opened = 0o666
    with stage.open(EVALUATES) as session:
        written = [at for at in places if session.ask(f"tried(open, {at!r}, 'w')") is None]
        too_big = session.ask("tried(open('/tmp/x', 'wb', 0).write, bytes(15 << 20))")
        full = session.ask("told(lambda: open('/tmp/y', 'wb', 0).write(bytes(4 << 20)) >> 20)")
        session.ask("os.unlink('/tmp/x')")
        session.ask("open('/tmp/run', 'w').write('#!/bin/sh') and os.chmod('/tmp/run', 0o755)")
        run = session.ask("tried(subprocess.run, ['/tmp/run'])")
        session.end("kill")

    assert written == []
    assert too_big is None
    assert full == 1
    assert run == "PermissionError"


def test_a_file_beyond_its_limit_is_refused(stage: Stage) -> None:
    """A candidate must not fill the disk of the host through its state folder."""
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + EVALUATES
    with stage.open(code) as session:
        size = session.ask("open('/state/x', 'wb', 0).write(bytes(40 << 20))")
        core = session.ask("__import__('resource').getrlimit(4)[1]")
        session.end("kill")

    assert size == LIMITS.disk_mib << 20
    assert core == 0


def test_host_network_and_privileges_are_out_of_reach(stage: Stage) -> None:
    """Whatever a candidate could gain from them is not its own work."""
    (stage.folder / "secret").write_text("hidden")
    status = "{l.split(':')[0]: l.split()[-1] for l in open('/proc/self/status') if ':' in l}"
    with stage.open(EVALUATES) as session:
        seen = session.ask(f"os.path.exists({str(stage.folder)!r})")
        interfaces = session.ask("os.listdir('/sys/class/net')")
        sent = session.ask("tried(socket.create_connection, ('192.0.2.1', 80), 5)")
        status = session.ask(status)
        variables = session.ask("dict(os.environ)")
        first = session.ask("open('/proc/1/environ').read()")
        session.end("eof")

    assert seen is False
    assert interfaces == ["lo"]
    assert sent == "OSError"
    assert isinstance(status, dict)
    assert isinstance(variables, dict)
    assert isinstance(first, str)
    assert (status["Uid"], status["Gid"], status["NoNewPrivs"]) == ("65534", "65534", "1")
    assert int(str(status["CapEff"]), 16) == int(str(status["CapBnd"]), 16) == 0
    assert (variables["HOME"], variables["LANG"]) == ("/tmp", "C.UTF-8")
    assert "/nowhere" not in str(variables["PATH"])
    assert set(variables) | {"PWD"} == {
        *("HOME", "LANG", "PATH", "PWD"),
        *("HOSTNAME", "TERM", "container"),
    }
    assert "CONTAINERS_CONF" not in first


def test_a_fork_bomb_is_bounded(stage: Stage) -> None:
    """The number is that of the limits, as in every other sandbox."""
    code = """
import os, sys, time
input()
children = 0
try:
    while True:
        if os.fork() == 0:
            while True: time.sleep(60)
        children += 1
except OSError:
    print(children, flush=True)
sys.stdin.read()
"""
    with stage.open(code) as session:
        children = session.ask(None)
        session.end("kill")

    assert children == LIMITS.processes - 1
    assert stage.left == []


@pytest.mark.parametrize("survives", [False, True])
def test_memory_beyond_the_limit_ends_the_candidate(stage: Stage, survives: bool) -> None:
    """Swap is no way around, and neither is a child that is sacrificed."""
    bomb = "held = []\nwhile True: held.append(bytearray(b'x' * (1 << 20)))\n"
    child = "import os\ninput()\nif os.fork() == 0:\n    exec({!r})\nos.wait()\n{}"
    code = child.format(bomb, "print(1)") if survives else "input()\n" + bomb

    kind, status = stage.fault(code)

    assert (kind, status) == ("out_of_memory", OOM_STATUS)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_candidate_that_signals_itself_ends_early(stage: Stage, number: int) -> None:
    """The first process of a container would not even notice, so it is not that one."""
    code = f"import os, time; input(); os.kill(os.getpid(), {number}); time.sleep(600)"

    assert stage.fault(code) == ("early_exit", 128 + number)


def test_a_flood_of_output_is_cut(stage: Stage) -> None:
    """The engine keeps no log of it, which would fill the host's disk."""
    code = "import os\nwhile True: os.write(2, b'x' * 65536)"

    kind, _ = stage.fault(code)

    assert kind == "output_limit"


def test_a_candidate_that_ignores_the_end_of_its_input_is_killed(stage: Stage) -> None:
    """A client that is killed leaves its container running, so that is removed by name."""
    mark = marker()
    code = ECHO + "import time\nwhile True: time.sleep(60)"
    with stage.open(code, mark) as session:
        session.ask(1)
        session._bounds = Bounds(case_ends_s=time.monotonic() + 0.5, response_s=0.5)
        with pytest.raises(CandidateError) as caught:
            session.end("eof")

    assert caught.value.kind == "timeout"
    assert living(mark) == []
    assert stage.left == []


@pytest.mark.parametrize("how", ["eof", "kill"])
def test_what_forks_and_leaves_its_session_ends_too(stage: Stage, how: str) -> None:
    """Whatever writes on after the end could change what the next session finds."""
    mark = marker()
    with stage.open(OUTLIVES, mark) as session:
        session.ask(1)
        assert becomes_true(lambda: len([*living(mark)]) >= 3)
        session.end(how)  # type: ignore[arg-type]
        assert living(mark) == []
        assert stage.left == []


def test_sessions_side_by_side_do_not_touch_each_other(stage: Stage, tmp_path: Path) -> None:
    """Cases run concurrently, and the end of one must not be the end of another."""
    with stage.open(ECHO) as one, stage.open(ECHO) as two:
        one.end("kill")
        assert two.ask("still here") == "still here"
        two.end("eof")

    assert stage.left == []


def test_a_name_that_is_taken_is_our_failure(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about the candidate that could not be started."""
    with stage.open(ECHO) as first:
        taken = first._wrapped.argv[first._wrapped.argv.index("--name") + 1]
        monkeypatch.setattr("secrets.token_hex", lambda _: taken.removeprefix("evalarc-"))
        with pytest.raises(InfrastructureError, match="already in use"):
            stage.open(ECHO)


def test_a_program_that_the_image_lacks_is_told(stage: Stage) -> None:
    """The image is the user's choice, and another one may have it."""
    with pytest.raises(InfrastructureError) as caught:
        stage.open(ECHO, program="no-such-program")

    assert str(caught.value) == (
        f"sandbox podman, image {IMAGE}: the candidate was not started: "
        "no-such-program cannot be run"
    )

    assert stage.left == []


def test_a_container_that_is_slow_to_start_is_our_failure(stage: Stage) -> None:
    """No answer was asked for yet, and nothing of it may appear later."""
    with pytest.raises(InfrastructureError, match="the candidate was not started"):
        stage.open(ECHO, startup_s=0.001)

    assert stage.left == []


def test_a_strict_umask_hides_nothing_from_the_candidate(stage: Stage) -> None:
    """It is another user inside, and its own files must be readable to it."""
    old = os.umask(0o077)
    try:
        with stage.open(ECHO) as session:
            assert session.ask("hello") == "hello"
    finally:
        os.umask(old)


def test_a_name_that_moves_on_does_not_move_the_image(
    stage: Stage, podman_environ: dict[str, str]
) -> None:
    """All cases of an evaluation run in the image that the first one ran in."""
    moving = f"localhost/moving-{os.getpid()}"

    def podman(*words: str, stdin: bytes = b"") -> None:
        argv = ["podman", *words]
        subprocess.run(argv, input=stdin, env=podman_environ, capture_output=True, check=True)

    podman("tag", IMAGE, moving)
    stage.engine = Engine("podman", moving, environ=podman_environ)
    before = stage.engine.record(LIMITS)
    podman("import", "-", moving, stdin=b"\0" * 10240)

    with stage.open(ECHO) as session:
        assert session.ask("same") == "same"
    assert stage.engine.record(LIMITS) == before
    assert Engine("podman", moving, environ=podman_environ).record(LIMITS).image_id != (
        before.image_id
    )
    podman("rmi", moving)


HARNESS = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.isolation.images import IMAGE
from tests.isolation.test_engine_sessions import OUTLIVES, Stage
from pytest_evalarc.isolation.engine import Engine
session = Stage(Engine("podman", IMAGE), {}, Path(sys.argv[2])).open(OUTLIVES, sys.argv[3])
session.ask(1)
print("asked", flush=True)
time.sleep(600)
"""


def test_nothing_is_left_of_a_harness_that_is_killed(
    stage: Stage, podman_environ: dict[str, str], tmp_path: Path
) -> None:
    """Its candidate dies with it, and whoever uses the engine next removes the container."""
    mark = marker()
    argv = [sys.executable, "-c", HARNESS, str(SYSTEM), str(tmp_path), mark]
    harness = subprocess.Popen(argv, env=podman_environ, stdout=subprocess.PIPE)
    try:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"asked\n"
        assert len(containers(podman_environ, harness.pid)) == 1
    finally:
        harness.kill()
        harness.communicate()
    assert becomes_true(lambda: not [pid for pid in living(mark) if pid != harness.pid])

    Engine("podman", IMAGE, environ=podman_environ).record(LIMITS)

    assert containers(podman_environ, harness.pid) == []


def test_containers_of_another_machine_are_left_alone(
    stage: Stage, podman_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines may share an engine, and a process id of one says nothing on the other."""
    with stage.open(ECHO) as session, monkeypatch.context() as elsewhere:
        elsewhere.setattr(engine_program, "place", lambda: "elsewhere")
        elsewhere.setattr(psutil, "pid_exists", lambda _: False)

        Engine("podman", IMAGE, environ=podman_environ).record(LIMITS)

        assert session.ask("alive") == "alive"
    with contextlib.suppress(CandidateError):
        session.close()
