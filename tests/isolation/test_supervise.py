from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from pytest_evalarc.isolation import supervise as supervising
from pytest_evalarc.isolation.capture import Capture
from pytest_evalarc.isolation.command import Command, Ended, Policy, Wrapped
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.isolation.supervise import Running, Watch, supervise
from tests.clocks import moved_on
from tests.isolation.programs import (
    PATH,
    SANDBOXES,
    SEES_PYTHON,
    Ran,
    becomes_true,
    living,
    marker,
    python,
    run,
    shell,
)
from tests.needs import needs_bwrap

pytestmark = pytest.mark.slow
SANDBOX = pytest.mark.parametrize("sandbox", [pytest.param("bwrap", marks=needs_bwrap), "local"])
FOREVER = "while :; do sleep 600; done"
LONG_S = 60.0


def watched(sandbox: str, argv: tuple[str, ...], **watch: object) -> Ran:
    watch.setdefault("total_s", LONG_S)
    return run(SANDBOXES[sandbox](), argv, policy=SEES_PYTHON, watch=Watch(**watch))


@SANDBOX
@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_an_exit_status_is_the_command_s_own(sandbox: str, status: int) -> None:
    """A keeper or a sandbox stands between, and neither may add to it."""
    ran = watched(sandbox, shell(f"echo said; exit {status}"))

    assert (ran.exit.reason, ran.exit.status) == (Ended.EXITED, status)
    assert (ran.stdout, ran.exit.stdout_bytes, ran.exit.stderr_bytes) == (b"said\n", 5, 0)


@SANDBOX
def test_a_death_by_signal_is_no_success(sandbox: str) -> None:
    """A crash ends with a status that nothing else has."""
    ran = watched(sandbox, shell("kill -SEGV $$"))

    assert ran.exit.status in (-signal.SIGSEGV, 128 + signal.SIGSEGV)


@SANDBOX
@pytest.mark.parametrize(
    ("watch", "script", "reason"),
    [
        ({"total_s": 0.2}, f"echo said; {FOREVER}", Ended.DEADLINE),
        ({"startup_s": 0.2}, FOREVER, Ended.STARTUP),
        ({"idle_s": 0.4}, f"echo said; {FOREVER}", Ended.IDLE),
        ({"idle_s": 0.2}, FOREVER, Ended.IDLE),
        ({"output_limit_bytes": 9}, f"echo 1234567890; {FOREVER}", Ended.OUTPUT),
        ({"output_limit_bytes": 9}, f"echo 12345; echo 12345 >&2; {FOREVER}", Ended.OUTPUT),
    ],
)
def test_each_bound_ends_a_process_and_is_named(
    sandbox: str, watch: dict[str, float], script: str, reason: Ended
) -> None:
    """A process that hangs at its start failed otherwise than one that stalls or floods."""
    mark = marker()

    ran = watched(sandbox, shell(script, mark), **watch)

    assert ran.exit.reason == reason
    assert ran.exit.survivors == ()
    assert living(mark) == []


@SANDBOX
def test_output_within_the_limit_ends_nothing(sandbox: str) -> None:
    """The limit itself may be used up."""
    ran = watched(sandbox, shell("echo 12345678"), output_limit_bytes=9)

    assert (ran.exit.reason, ran.exit.status) == (Ended.EXITED, 0)


@SANDBOX
def test_a_first_word_ends_the_startup_deadline(
    sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has started may then be silent for as long as its deadline allows."""
    move_on = moved_on(monkeypatch)

    def see(_chunk: bytes) -> bool:
        move_on(2 * LONG_S)
        return False

    ran = watched(
        sandbox,
        shell(f"echo said; {FOREVER}"),
        is_finished=see,
        startup_s=LONG_S,
        total_s=2 * LONG_S,
    )

    assert ran.exit.reason == Ended.DEADLINE


@SANDBOX
def test_a_cancelled_process_ends(sandbox: str) -> None:
    """Ctrl-C in one thread must reach what runs in the others."""
    mark, cancelled = marker(), threading.Event()
    timer = threading.Timer(0.1, cancelled.set)
    timer.start()

    ran = watched(sandbox, shell(FOREVER, mark), cancelled=cancelled)

    timer.join()
    assert ran.exit.reason == Ended.CANCELLED
    assert living(mark) == []


@SANDBOX
def test_a_process_cancelled_at_once_leaves_nothing(sandbox: str) -> None:
    """A sandbox that is killed while it starts must not leave a half-made inside behind."""
    mark, cancelled = marker(), threading.Event()
    cancelled.set()

    ended = [
        watched(sandbox, shell(FOREVER, mark), cancelled=cancelled).exit.reason for _ in range(8)
    ]

    assert set(ended) == {Ended.CANCELLED}
    assert living(mark) == []


@SANDBOX
def test_a_delivered_result_is_kept_although_the_process_hangs(sandbox: str) -> None:
    """Clients print their result and then stay alive; that is no timeout."""
    mark = marker()

    ran = watched(
        sandbox,
        shell(f"echo result; {FOREVER}", mark),
        is_finished=lambda chunk: b"result" in chunk,
        grace_s=0.1,
    )

    assert ran.exit.reason == Ended.FINISHED
    assert ran.stdout == b"result\n"
    assert living(mark) == []


@SANDBOX
def test_a_result_counts_that_came_before_the_deadline(
    sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline is for the work; what is left of it bounds only how long the end may take."""
    move_on = moved_on(monkeypatch)

    def see(chunk: bytes) -> bool:
        move_on(LONG_S)
        return b"result" in chunk

    ran = watched(
        sandbox,
        shell(f"echo result; {FOREVER}", marker()),
        is_finished=see,
        total_s=LONG_S,
        grace_s=LONG_S,
    )

    assert ran.exit.reason == Ended.FINISHED


@SANDBOX
def test_a_process_that_ends_by_itself_after_its_result_keeps_its_status(sandbox: str) -> None:
    """The grace is there to be used."""
    ran = watched(
        sandbox, shell("echo result; exit 3"), is_finished=lambda chunk: True, grace_s=30.0
    )

    assert (ran.exit.reason, ran.exit.status) == (Ended.EXITED, 3)


@SANDBOX
def test_a_polite_end_lets_a_process_say_its_last_words(
    sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is told to end writes its transcript, and its exit status says so."""
    move_on = moved_on(monkeypatch)

    def see(chunk: bytes) -> bool:
        move_on(LONG_S)
        return b"ready" in chunk

    script = "trap 'echo last words; exit 7' TERM; echo ready; while :; do sleep 0.01; done"

    ran = watched(
        sandbox,
        shell(script),
        is_finished=see,
        grace_s=LONG_S,
        polite=True,
        total_s=LONG_S,
    )

    assert ran.lines == ["ready", "last words"]
    assert ran.exit.status == 7


@SANDBOX
def test_a_rude_end_does_not_ask(sandbox: str) -> None:
    """A candidate that is killed must lose what it had not made durable."""
    script = "trap 'echo last words; exit 7' TERM; echo ready; while :; do sleep 0.01; done"

    ran = watched(sandbox, shell(script), is_finished=lambda chunk: True, grace_s=0.05)

    assert ran.lines == ["ready"]


@SANDBOX
def test_who_does_not_listen_is_killed(sandbox: str) -> None:
    """Asking is a courtesy with an end."""
    mark = marker()

    ran = watched(
        sandbox, shell(f"trap '' TERM; {FOREVER}", mark), total_s=0.2, polite=True, grace_s=0.1
    )

    assert ran.exit.reason == Ended.DEADLINE
    assert living(mark) == []


@SANDBOX
@pytest.mark.parametrize("polite", [True, False])
def test_a_process_that_stops_itself_is_ended(sandbox: str, polite: bool) -> None:
    """A stopped process reacts to nothing but the last signal."""
    mark = marker()

    ran = watched(
        sandbox, shell(f"kill -STOP $$; {FOREVER}", mark), total_s=0.2, polite=polite, grace_s=0.1
    )

    assert ran.exit.reason == Ended.DEADLINE
    assert living(mark) == []


LEFT_BEHIND = {
    "in the background": "sleep 600 & echo done",
    "ignoring TERM in a session of its own": "(trap '' TERM; exec setsid sleep 600) & echo done",
    "forked twice": "(setsid sh -c '(sleep 600 &) ; exit') ; echo done",
    "with its streams closed": "setsid sleep 600 <&- >&- 2>&- & echo done",
}


@SANDBOX
@pytest.mark.parametrize("script", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_nothing_that_a_command_leaves_behind_lives(sandbox: str, script: str) -> None:
    """It would burn money, hold files, and rewrite what is about to be graded."""
    mark = marker()
    # `sleep` adds up what it is given, so a number works as a mark.
    number = f"6{int(mark[7:], 16) % 10**12}"

    ran = watched(sandbox, shell(script.replace("600", number)))

    assert ran.lines == ["done"]
    assert (ran.exit.reason, ran.exit.status, ran.exit.survivors) == (Ended.EXITED, 0, ())
    assert living(number) == []


HEADLESS = """
import ctypes, os, sys, threading, time
threading.Thread(target=lambda: time.sleep(600)).start()
if os.fork() == 0:
    threading.Thread(target=lambda: time.sleep(600)).start()
    print("ready", flush=True)
    ctypes.CDLL(None).pthread_exit(None)
os.wait() if sys.argv[1] == "stay" else os._exit(0)
"""


@SANDBOX
@pytest.mark.parametrize("parent", ["stay", "leave"])
def test_a_process_without_its_first_thread_is_ended(sandbox: str, parent: str) -> None:
    """It looks like a dead one and runs on."""
    mark = marker()

    ran = watched(
        sandbox,
        python(HEADLESS, parent, mark),
        is_finished=lambda chunk: b"ready" in chunk,
        grace_s=0.1,
        total_s=5.0,
    )

    assert ran.exit.survivors == ()
    assert threads_of(mark) == []


def threads_of(mark: str) -> list[int]:
    """Return the threads of marked processes, those of headless ones included."""
    found = []
    for process in psutil.process_iter():
        try:
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                if mark in (thread / "cmdline").read_text("utf-8", "replace"):
                    found.append(int(thread.name))
        except OSError:
            continue
    return found


RUNNER = """
import os, sys
while os.fork() == 0:
    pass
os._exit(0)
"""


@SANDBOX
def test_a_process_that_forks_and_ends_for_ever_is_caught(sandbox: str) -> None:
    """Each of its lives is shorter than a look at the list of processes."""
    mark = marker()

    ran = watched(sandbox, python(RUNNER, mark), total_s=0.3)

    assert ran.exit.survivors == ()
    assert living(mark) == []


@SANDBOX
def test_a_flood_on_stderr_alone_blocks_nothing(sandbox: str) -> None:
    """A pipe that nobody reads stops its writer at 64 KiB."""
    ran = watched(sandbox, shell("head -c 1000000 /dev/zero >&2; echo done"))

    assert ran.lines == ["done"]
    assert ran.exit.stderr_bytes == 1_000_000


@SANDBOX
def test_a_flood_on_both_streams_is_counted_and_cut(sandbox: str) -> None:
    """The log keeps its start and its end; the count tells how much there was."""
    script = "yes | head -c 3000000 & yes err | head -c 2000000 >&2; wait; echo end"

    ran = watched(sandbox, shell(script))

    assert (ran.exit.stdout_bytes, ran.exit.stderr_bytes) == (3_000_004, 2_000_000)
    assert ran.stdout.startswith(b"y\ny\n")
    assert ran.stdout.endswith(b"y\nend\n")
    assert b"[2868932 bytes dropped]" in ran.stdout


def test_a_huge_flood_costs_no_memory() -> None:
    """One submission must not take the harness, and all other trials, with it."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    ran = watched("local", shell("head -c 300000000 /dev/zero"))

    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert ran.exit.stdout_bytes == 300_000_000
    assert grown_kib < 64 * 1024


@SANDBOX
def test_a_character_split_across_writes_arrives_whole(sandbox: str) -> None:
    """Bytes are kept as they come, and decoded once, at the end."""
    ran = watched(sandbox, shell("printf '\\303'; sleep 0.05; printf '\\251'"))

    assert ran.stdout.decode() == "é"


@SANDBOX
def test_input_is_fed_whole_and_then_ends(sandbox: str) -> None:
    """Also more than a pipe holds, to a program that answers before it has read all."""
    data = os.urandom(1_000_000)

    ran = run(SANDBOXES[sandbox](), ("/bin/cat",), stdin=data, keeps=len(data))

    assert ran.stdout == data


@SANDBOX
def test_a_program_that_reads_gets_an_end_of_input(sandbox: str) -> None:
    """A client that asks a question would otherwise wait for its deadline."""
    assert watched(sandbox, shell("cat; echo done")).lines == ["done"]


@SANDBOX
@pytest.mark.parametrize("script", ["exit 5", "exec <&-; sleep 0.05; exit 5", "sleep 0.05; exit 5"])
def test_input_that_nobody_reads_harms_nobody(sandbox: str, script: str) -> None:
    """It is the reader's loss, never a broken pipe of the harness."""
    ran = run(SANDBOXES[sandbox](), shell(script), stdin=b"x" * 1_000_000)

    assert (ran.exit.reason, ran.exit.status) == (Ended.EXITED, 5)


@SANDBOX
@pytest.mark.parametrize(
    "argv", [("/no/such/program",), ("no-such-program",), ("/etc/passwd",), ("/",)]
)
def test_a_program_that_cannot_be_started_is_told(sandbox: str, argv: tuple[str, ...]) -> None:
    """Whoever reads the failure needs the name of what was missing."""
    ran = watched(sandbox, argv)

    assert ran.exit.status not in (0, None)
    assert argv[0].encode() in ran.stderr


class Counted:
    """A wrapped command that counts how often it is cleaned up."""

    def __init__(self, **values: object) -> None:
        self.cleaned = 0
        defaults = {"argv": ("/bin/true",), "cwd": Path("/"), "env": PATH, "cleanup": self._clean}
        self.wrapped = Wrapped(**{**defaults, **values})

    def _clean(self) -> None:
        self.cleaned += 1


@pytest.mark.parametrize("descriptor_at", [None, 1])
@pytest.mark.parametrize(
    "values",
    [
        {"cwd": Path("/no/such/folder")},
        {"argv": ("/bin/true", "", "x" * (1 << 22))},
        {"argv": ("/bin/true", "", "nul\0byte")},
        {"env": {"NAME": "nul\0byte"}},
        {"env": {"NA=ME": "x"}},
    ],
    ids=["folder", "too long", "nul", "nul in a variable", "name of a variable"],
)
def test_a_start_that_fails_is_told_and_cleaned_up_once(
    values: dict[str, object], descriptor_at: int | None
) -> None:
    """The control group must be free again, and twice would give it to two."""
    counted = Counted(descriptor_at=descriptor_at, **values)
    before = open_files()

    ended = supervise(counted.wrapped, Watch(total_s=LONG_S), stdout=Capture(10))

    assert (ended.reason, ended.status) == (Ended.NOT_STARTED, None)
    assert ended.detail != ""
    assert counted.cleaned == 1
    assert open_files() == before


def test_a_command_that_ran_is_cleaned_up_once() -> None:
    """Also where nothing failed."""
    counted = Counted()

    supervise(counted.wrapped, Watch(total_s=LONG_S), stdout=Capture(10))

    assert counted.cleaned == 1


def test_a_failing_watcher_leaves_nothing() -> None:
    """It is a client's code that looks for a result, and it may have bugs."""
    mark = marker()
    counted = Counted(argv=shell(f"echo said; {FOREVER}", mark))

    def fail(_chunk: bytes) -> bool:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        supervise(counted.wrapped, Watch(total_s=LONG_S, is_finished=fail), stdout=Capture(10))

    assert counted.cleaned == 1
    assert living(mark) == []


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@SANDBOX
def test_no_descriptor_is_lost(sandbox: str) -> None:
    """A pack starts hundreds of processes in one session."""
    watched(sandbox, ("/bin/true",))
    before = open_files()

    for _ in range(100 if sandbox == "bwrap" else 20):
        watched(sandbox, ("/bin/true",))

    assert open_files() == before


@SANDBOX
def test_processes_of_several_threads_run_at_once(sandbox: str, tmp_path: Path) -> None:
    """Each is watched from the thread that started it, which lives until it has ended."""

    def meet(own: int, folder: Path) -> int | None:
        script = 'echo > "$1/$2"; while [ ! -e "$1/$((1 - $2))" ]; do sleep 0.01; done'
        argv = shell(script, folder, own)
        return run(SANDBOXES[sandbox](), argv, policy=Policy(write=(folder,))).exit.status

    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(meet, number, tmp_path) for number in range(2)]

        assert [one.result() for one in ended] == [0, 0]


@needs_bwrap
def test_a_namespace_dies_with_the_thread_that_started_it() -> None:
    """Why `Running` belongs to one thread: the kernel looks at it, not at the process."""
    mark = marker()
    command = Command(argv=shell(f"echo up; {FOREVER}", mark), cwd=Path("/"), env=PATH)
    wrapped = SANDBOXES["bwrap"]().wrap(command, Policy())
    started: list[Running] = []

    def start() -> None:
        running = Running(wrapped, stdout=Capture(10), stderr=Capture(10))
        started.append(running)
        while not running.stdout.total_bytes:
            running.pump(1.0)
        # Only after it has started the program does the first process bind itself to the sandbox,
        # and then it waits.
        first = psutil.Process(running.pid).children()[0]
        assert becomes_true(lambda: first.status() == psutil.STATUS_SLEEPING)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert becomes_true(lambda: living(mark) == [])
    assert started[0].end() == ()
    started[0].close()
    wrapped.cleanup()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise each time, as it does outside of a session."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@SANDBOX
@pytest.mark.parametrize("at", ["start", "middle", "end"])
def test_an_interrupt_at_any_time_leaves_nothing(
    sandbox: str, at: str, interruptible: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come between the start of a process and the line that remembers it."""
    mark, before = marker(), open_files()
    popen = subprocess.Popen

    def start(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = popen(*arguments, **options)
        if at == "start":
            signal.raise_signal(signal.SIGINT)
        return process

    def see(_chunk: bytes) -> bool:
        signal.raise_signal(signal.SIGINT)
        return False

    class Interrupting(Running):
        def drain(self, timeout_s: float) -> None:
            signal.raise_signal(signal.SIGINT)
            super().drain(timeout_s)

    monkeypatch.setattr(subprocess, "Popen", start)
    if at == "end":
        monkeypatch.setattr(supervising, "Running", Interrupting)

    with pytest.raises(KeyboardInterrupt):
        watched(
            sandbox,
            shell(f"echo said; {FOREVER}", mark),
            is_finished=see if at == "middle" else None,
            # Only the end comes by the deadline; a word that is waited for may be late.
            total_s=0.5 if at == "end" else LONG_S,
        )

    assert living(mark) == []
    assert open_files() == before


HARNESS = """
import sys
from tests.isolation.programs import SANDBOXES, run, shell
run(SANDBOXES[sys.argv[1]](), shell(sys.argv[3], sys.argv[2]))
"""
STUBBORN = f"trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; {FOREVER}' sh $1 & {FOREVER}"


@SANDBOX
@pytest.mark.parametrize("after", ["up", "0.000", "0.003", "0.006", "0.009", "0.012"])
def test_nothing_outlives_a_harness_that_is_killed(sandbox: str, after: str) -> None:
    """No cleanup of ours runs then; also a start that is half done must come to nothing."""
    mark = marker()
    root = str(Path(__file__).parent.parent.parent)
    # It says so itself when it is about to start, which takes it a while.
    code = HARNESS.replace("run(SAND", "print('go', flush=True); run(SAND")
    with subprocess.Popen(
        [sys.executable, "-c", code, sandbox, mark, STUBBORN],
        env={"PYTHONPATH": root, **PATH},
        stdout=subprocess.PIPE,
    ) as harness:
        assert harness.stdout is not None
        harness.stdout.readline()
        if after == "up":
            becomes_true(lambda: len(living(mark)) > 3)
        else:
            time.sleep(float(after))
        harness.kill()

    assert becomes_true(lambda: living(mark) == [])


@SANDBOX
def test_the_environment_of_a_process_is_nobody_else_s(sandbox: str) -> None:
    """A key reaches the client process, and no command line that anybody may read."""
    key, mark = "key-" + marker(), marker()
    seen: list[str] = []

    def look(_chunk: bytes) -> bool:
        for process in psutil.process_iter(["cmdline"]):
            seen.extend(process.info["cmdline"] or ())
        return True

    run(
        SANDBOXES[sandbox](),
        shell(f"echo up; {FOREVER}", mark),
        env={"KEY": key, **PATH},
        watch=Watch(total_s=LONG_S, is_finished=look, grace_s=0.0),
    )

    assert mark in seen
    assert not any(key in word for word in seen)


def test_the_keeper_alone_is_no_way_out() -> None:
    """A command that kills its keeper has its status unknown, never a success."""
    ran = run(Local(), shell("kill -KILL $PPID; exit 0"))

    assert ran.exit.status is None
