"""Candidates that keep to the protocol, and all the ways in which they do not."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.grading.pack import CandidateError
from pytest_evalarc.grading.session import Bounds, CandidateSession, canonical
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.command import Command, Policy, Wrapped
from pytest_evalarc.isolation.host import base_python, python_home
from tests.needs import needs_bwrap

pytestmark = [pytest.mark.slow, needs_bwrap]

LONG_S = 60.0
"""Beyond what the busiest machine needs, where the wait itself is not under test."""
SHORT_S = 0.3
"""Where nothing will ever come."""

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()\n"


@dataclass
class Counted(Bwrap):
    """A sandbox that counts how often it gets its resources back."""

    cleanups: int = 0

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        wrapped = super().wrap(command, policy)

        def cleanup():
            self.cleanups += 1
            wrapped.cleanup()

        return replace(wrapped, cleanup=cleanup)


@dataclass
class Stage:
    """Where scripted candidates are put on."""

    sandbox: Counted = field(default_factory=Counted)

    def open(self, code, *, cancelled=None, **bounds):
        program = (str(base_python()), "-I", "-S", "-B", "-c", code)
        return self.start(program, cancelled=cancelled, **bounds)

    def start(self, argv, *, cancelled=None, **bounds):
        given = {"case_ends_s": time.monotonic() + LONG_S, "response_s": LONG_S, **bounds}
        command = Command(argv=argv, cwd=Path("/tmp"), env={"PATH": "/usr/bin:/bin"})
        return CandidateSession(
            self.sandbox,
            command,
            Policy(read=(python_home(),)),
            bounds=Bounds(**given),
            cancelled=cancelled,
        )

    def fault(self, code, *, requests=1, **bounds):
        """Return what a candidate is found guilty of when it is asked and then let go."""
        with self.open(code, **bounds) as session, pytest.raises(CandidateError) as caught:
            for number in range(requests):
                session.ask({"number": number})
            session.end("eof")
        assert self.sandbox.cleanups == 1
        return caught.value.kind, session.row


@pytest.fixture
def stage():
    return Stage()


def living(marker):
    """Return the processes whose command line holds a marker, once those about to die are gone."""
    until_s = time.monotonic() + 10
    while found := [pid for pid in psutil.pids() if marker in _command_line(pid)]:
        if time.monotonic() > until_s:
            return found
        time.sleep(0.01)
    return []


def _command_line(pid):
    with contextlib.suppress(psutil.Error):
        return " ".join(psutil.Process(pid).cmdline())
    return ""


def test_replies_are_returned_in_turn_and_a_clean_exit_is_no_fault(stage):
    """The ordinary course of a session, against which all faults below are told."""
    with stage.open(ECHO) as session:
        replies = [session.ask(value) for value in ({"a": [1, 2.5, None]}, "text", True)]
        session.end("eof")

    assert replies == [{"a": [1, 2.5, None]}, "text", True]
    assert session.replies == 3
    assert (session.row.exit_code, session.row.reason) == (0, "exited")
    assert session.row.output_bytes == len('{"a": [1, 2.5, null]}\n"text"\ntrue\n')
    assert stage.sandbox.cleanups == 1


def test_requests_travel_in_ascii(stage):
    """A candidate in any locale, and one that reads bytes, must get the same characters."""
    code = (
        "import sys, json\n"
        "for line in sys.stdin.buffer: print(json.dumps(line.decode('ascii')), flush=True)\n"
    )
    with stage.open(code) as session:
        assert session.ask({"key": "钥\ud800"}) == '{"key": "\\u94a5\\ud800"}\n'


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"NaN", id="nan"),
        pytest.param(b'{"a": -Infinity}', id="infinity"),
        pytest.param(b"1e999", id="overflow"),
        pytest.param(b"9" * 5000, id="5000 digits"),
        pytest.param(b'{"ok": false, "ok": true}', id="key twice"),
        pytest.param(b'[{"a": {"a": 1, "\\u0061": 2}}]', id="key twice after escapes"),
        pytest.param(b'"\xff"', id="not utf-8"),
        pytest.param(b"[" * 100_000, id="nesting bomb, unclosed"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="nesting bomb"),
        pytest.param(b"", id="blank line"),
        pytest.param(b"{'ok': True}", id="python"),
        pytest.param(b"{} {}", id="two values"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
    ],
)
def test_a_reply_that_readers_would_read_differently_is_a_protocol_error(stage, reply):
    """What a reply means must not depend on who parses it, and no reply may break the harness."""
    head, middle, tail = reply[:1], reply[1:-1], reply[-1:]
    text = repr(reply) if len(reply) < 100 else f"{head!r} * {reply.count(head)}"
    if middle and len(reply) >= 100 and head != tail:
        text += f" + {tail!r} * {reply.count(tail)}"
    code = f"import os; input(); os.write(1, {text} + b'\\n'); input()"

    kind, row = stage.fault(code)

    assert kind == "protocol"
    assert row.reason == "killed"


@pytest.mark.parametrize("number", ["9223372036854775808", "9" * 4300, "-0.0", "1e-999"])
def test_numbers_that_every_reader_can_hold_or_round_are_replies(stage, number):
    """Being strict must not reject what JSON allows."""
    code = f"import sys; input(); print('{number}', flush=True); sys.stdin.read()"
    with stage.open(code) as session:
        assert canonical(session.ask(None)) == number.replace("1e-999", "0.0")
        session.end("eof")


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("print('{}', flush=True)\nwhile True: pass", id="one answer, nothing read"),
        pytest.param(
            "import sys\nprint('{}', flush=True)\nsys.stdin.read()", id="one answer, then all read"
        ),
        pytest.param("print('{}\\n' * 9, flush=True)\nimport sys; sys.stdin.read()", id="nine"),
        pytest.param("while True: print('READ 0')", id="endless"),
        pytest.param("print('{}', flush=True)\n" + ECHO, id="one too many at the start"),
        pytest.param("input(); print('{}\\n{}', flush=True); input()", id="two lines at once"),
        pytest.param(ECHO + "print('{}')", id="one more at the end of input"),
        pytest.param(ECHO + "print('half', end='')", id="part of a line at the end of input"),
    ],
)
def test_what_nobody_asked_for_is_a_fault(stage, code):
    """Answers printed in advance would pass a check that reads whatever lies in the pipe."""
    kind, _ = stage.fault(code)

    assert kind == "unsolicited"


def test_output_that_lies_in_the_pipe_before_the_request_is_a_fault(stage):
    """Between two requests there is nothing to say, even to one who reads each of them."""
    code = (
        "import sys\n"
        "print(input(), flush=True)\n"
        "print('{}', file=sys.stderr, flush=True)\n"
        "print('early', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with stage.open(code) as session:
        with contextlib.suppress(CandidateError):
            session.ask(1)
        wait_for_stdout(session)
        with pytest.raises(CandidateError) as caught:
            session.ask(2)

    assert caught.value.kind == "unsolicited"


def wait_for_stdout(session):
    """Let the session see what the candidate goes on to print."""
    until_s = time.monotonic() + LONG_S
    while not session._unread and time.monotonic() < until_s:
        session._running.pump(0.1)


def test_blank_lines_at_the_end_are_no_output(stage):
    """A print with nothing in it is how many programs end."""
    with stage.open(ECHO + "print('\\n \\n')") as session:
        session.ask({})
        session.end("eof")

    assert session.row.exit_code == 0


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True: pass", id="never answers"),
        pytest.param("input(); print('{}', end='', flush=True); input()", id="no newline"),
        pytest.param("import sys; input(); print('{}'); sys.stdin.read()", id="no flush"),
        pytest.param("import os; os.close(1)\nwhile True: pass", id="closed its output"),
    ],
)
def test_no_whole_line_in_time_is_a_timeout(stage, code):
    """Both sides wait for each other, and the harness must be the one to stop."""
    kind, row = stage.fault(code, response_s=SHORT_S)

    assert kind == "timeout"
    assert row.reason == "deadline"


def test_the_deadline_of_the_case_bounds_every_reply(stage):
    """Many slow sessions must not add up beyond what the case may take."""
    kind, _ = stage.fault("while True: pass", case_ends_s=time.monotonic() + 2.0)

    assert kind == "timeout"


def test_a_case_that_is_over_starts_no_session(stage):
    """Started late and killed at once, the sandbox itself would look broken."""
    with pytest.raises(CandidateError) as caught:
        stage.open(ECHO, case_ends_s=time.monotonic())

    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("raise SystemExit(5)", 5, id="exits at once"),
        pytest.param("input(); raise SystemExit(0)", 0, id="reads and leaves"),
        pytest.param("input(); print('{}', end='')", 0, id="half a line"),
        pytest.param(
            "import sys; sys.stderr.write('bwrap: no namespaces'); sys.exit(1)", 1, id="poses"
        ),
    ],
)
def test_a_process_that_leaves_before_it_answers_is_at_fault(stage, code, status):
    """Whatever it says on its way out, its own program ran: no exclusion can be bought."""
    kind, row = stage.fault(code)

    assert kind == "early_exit"
    assert (row.reason, row.exit_code) == ("exited", status)


def test_a_last_answer_counts_although_its_process_has_left(stage):
    """The reply was whole when it came; how it exited is asked at the end of input."""
    with stage.open("print(input())") as session:
        assert session.ask({"a": 1}) == {"a": 1}
        session.end("eof")


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_is_cut_off_and_not_kept(stage, stream):
    """Unbounded output would take the memory of the harness, whichever stream it comes by."""
    kind, row = stage.fault(f"import os; input()\nwhile True: os.write({stream}, b'x' * 65536)")

    assert kind == "output_limit"
    assert row.reason == "output_limit"
    assert row.output_bytes > 1 << 20
    assert len(row.stderr_tail) <= 2048


def test_a_flood_at_the_end_of_input_is_cut_off(stage):
    """The last words of a process are bounded as all others are."""
    code = ECHO + "while True: print(' ' * 65536, flush=True)"

    kind, _ = stage.fault(code)

    assert kind == "output_limit"


def test_complaints_on_stderr_do_no_harm_and_are_shown(stage):
    """Diagnostics are free, also when they fill the pipe while an answer is awaited."""
    code = "import sys; sys.stderr.write('x' * 300_000 + ' the end'); print(input())"
    with stage.open(code) as session:
        assert session.ask([]) == []
        session.end("eof")

    assert session.row.stderr_tail.endswith("x the end")


def test_an_exit_with_an_error_after_the_input_ended_is_a_fault(stage):
    """Work that fails while it is put away, as a last flush, was not done."""
    kind, row = stage.fault(ECHO + "raise SystemExit(3)")

    assert kind == "exit_status"
    assert (row.reason, row.exit_code) == ("exited", 3)


def test_a_process_that_stays_after_its_input_ended_is_a_timeout(stage):
    """Somebody has to end it, and then it is unknown what it would have kept."""
    code = ECHO + "while True: pass"
    with stage.open(code) as session:
        session.ask({})
        session._bounds = replace(session._bounds, response_s=SHORT_S)
        with pytest.raises(CandidateError) as caught:
            session.end("eof")

    assert caught.value.kind == "timeout"
    assert session.row.reason == "deadline"


HOLDS_THE_PIPES = (
    "import subprocess, sys\n"
    "child = [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(600)', '{marker}']\n"
    "subprocess.Popen(child, start_new_session=True)\n"
)


def test_a_grandchild_that_holds_the_pipes_ends_with_its_parent(stage):
    """A daemon that was left behind would make the wait for the end of output endless."""
    code = HOLDS_THE_PIPES.format(marker="left-behind-at-eof") + ECHO
    with stage.open(code) as session:
        session.ask({})
        session.end("eof")

    assert session.row.exit_code == 0
    assert living("left-behind-at-eof") == []


def test_kill_takes_the_whole_tree_and_asks_for_no_clean_exit(stage):
    """What is tested is whether an acknowledgement outlives a process that cannot tidy up."""
    code = HOLDS_THE_PIPES.format(marker="left-behind-at-kill") + ECHO + "print('tidied up')"
    with stage.open(code) as session:
        session.ask({})
        session.end("kill")

    assert session.row.reason == "killed"
    assert session.row.output_bytes == len("{}\n")
    assert living("left-behind-at-kill") == []
    assert stage.sandbox.cleanups == 1


def test_a_session_that_was_never_ended_is_closed_with_its_tree(stage):
    """An error on our own side must leave no candidate running."""
    code = "marker = 'never-ended'\n" + ECHO
    with pytest.raises(ZeroDivisionError), stage.open(code) as session:
        session.ask(1 / 0)

    assert living("never-ended") == []
    assert stage.sandbox.cleanups == 1
    session.close()
    assert stage.sandbox.cleanups == 1


def test_a_program_that_is_not_there_is_our_own_fault(stage):
    """The command comes from the pack, so a candidate cannot be blamed for it."""
    with pytest.raises(InfrastructureError, match="/no/such/program cannot be run"):
        stage.start(("/no/such/program",))

    assert stage.sandbox.cleanups == 1


@pytest.mark.parametrize(
    ("argv", "startup_s", "said"),
    [
        (("/bin/sh", "-c", "echo no namespaces >&2; exit 1"), LONG_S, "no namespaces"),
        (("/bin/sh", "-c", "echo something else"), LONG_S, "said nothing"),
        (("/bin/sh", "-c", "exec sleep 600"), SHORT_S, "said nothing"),
        (("/no/such/sandbox",), LONG_S, "No such file"),
    ],
)
def test_a_sandbox_that_does_not_come_up_is_our_own_fault(
    stage, monkeypatch, argv, startup_s, said
):
    """A candidate that never ran has shown nothing, neither good nor bad."""
    # How long it may take until one that is just starting has come so far that it can be ended.
    monkeypatch.setattr("pytest_evalarc.isolation.tree.END_S", 2.0)
    wrap = stage.sandbox.wrap
    monkeypatch.setattr(stage.sandbox, "wrap", lambda *given: replace(wrap(*given), argv=argv))

    with pytest.raises(InfrastructureError, match=said):
        stage.open(ECHO, startup_s=startup_s)

    assert stage.sandbox.cleanups == 1


def test_a_request_beyond_its_bound_is_our_own_fault(stage):
    """The bound is a promise to candidates, and only a pack can break it."""
    with stage.open(ECHO, request_bytes=20) as session:
        assert session.ask("x" * 17) == "x" * 17
        with pytest.raises(InfrastructureError, match="21 bytes"):
            session.ask("x" * 18)


def test_a_cancelled_session_stops_waiting(stage):
    """Whoever presses Ctrl-C does not want to sit through a deadline."""
    cancelled = threading.Event()
    with stage.open("while True: pass", cancelled=cancelled) as session:
        cancelled.set()
        with pytest.raises(KeyboardInterrupt):
            session.ask({})

    assert stage.sandbox.cleanups == 1


def test_the_transcript_is_the_same_for_the_same_values_alone(stage):
    """Flakiness is a transcript that changed; spelling and layout are none of it."""

    def transcript(code, *, how="eof"):
        with stage.open(code) as session:
            session.ask({"op": "get"})
            session.end(how)
        return session.transcript_sha256

    plain = transcript('import sys; input(); print(\'{"b": 1, "a": 2}\', flush=True)')

    assert transcript('input(); print(\'{  "a":2,"b":1}\')') == plain
    assert transcript('input(); print(\'{"a": 2, "b": 1.0}\')') != plain
    assert transcript(ECHO, how="kill") != transcript(ECHO)


@pytest.mark.parametrize(
    ("value", "other"), [(1, True), (1, 1.0), (0.0, -0.0), (None, False), ("1", 1), ({}, [])]
)
def test_values_that_python_may_hold_for_equal_are_spelt_apart(value, other):
    """A service that confuses true with 1 is one of the faults that checks must notice."""
    assert canonical({"a": value}) != canonical({"a": other})


def test_the_order_of_keys_is_no_difference():
    """JSON objects have none."""
    assert canonical({"b": [{"d": 1, "c": 2}], "a": 3}) == '{"a": 3, "b": [{"c": 2, "d": 1}]}'


class Ending:
    """A process that ends between two questions whether it has."""

    def __init__(self):
        self._answers = iter((False, True))
        self.was_drained = False

    @property
    def has_ended(self):
        return next(self._answers)

    def drain(self, timeout_s):
        self.was_drained = True


def test_a_process_has_said_all_only_when_its_pipes_were_read_after_its_end():
    """A last answer in the pipe of one that has just left would count as no answer."""
    session = object.__new__(CandidateSession)
    session._running = Ending()

    assert session._has_said_all() is False
    assert session._running.was_drained is False
    assert session._has_said_all() is True
    assert session._running.was_drained is True
