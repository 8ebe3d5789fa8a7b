"""The child form of checks: only one line of strict JSON comes back, whoever wrote it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_evalarc.grading.sandboxed import submission as module
from pytest_evalarc.grading.sandboxed.submission import NoAnswer, Raised, Submission
from tests.grading.small_task import CANARY
from tests.needs import needs_bwrap

PROGRAM = Path(module.__file__).with_name("call.py")
LONG_S = 60.0


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """Makes a submission of one module `it`, to be called outside of any sandbox."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def submit(source: str) -> Submission:
        project = tmp_path / "project"
        project.mkdir()
        (project / "it.py").write_text(source, "utf-8")
        return Submission([str(project)], str(PROGRAM))

    return submit


ANSWER = "import os\n\n\ndef answer(line, descriptor=3):\n    os.write(descriptor, line)\n\n\n"
"""Writes to the descriptor that only `call.py` should write to; a submission can find it."""


def test_a_value_comes_back_as_json_gives_it(submitted):
    """What a check compares is data of its own, and nothing of the submission's."""
    submission = submitted("def echo(*args, **kwargs):\n    return args, kwargs\n")

    value = submission.call("it:echo", 1, "ü\ud800", None, timeout_s=LONG_S, a=[2.5, True])

    assert value == [[1, "ü\ud800", None], {"a": [2.5, True]}]
    assert (submission.calls, submission.answers) == (1, 1)


def test_calls_share_nothing_but_the_scratch_folder(submitted):
    """A value that must outlive a process has to be on disk."""
    submission = submitted(
        "import os\n\nSEEN = []\n\n\ndef note(text):\n    SEEN.append(text)\n"
        "    open('notes', 'a').write(text)\n    return [SEEN, open('notes').read(), os.getcwd()]\n"
    )

    first = submission.call("it:note", "a", timeout_s=LONG_S)
    second = submission.call("it:note", "b", timeout_s=LONG_S)

    assert first == [["a"], "a", str(submission.scratch)]
    assert second == [["b"], "ab", str(submission.scratch)]


def test_requests_and_answers_may_be_large(submitted):
    """Neither side may wait for the other to read."""
    submission = submitted("def echo(text):\n    return text\n")

    assert len(submission.call("it:echo", "x" * 2_000_000, timeout_s=LONG_S)) == 2_000_000


@pytest.mark.parametrize(
    ("source", "kind", "answered"),
    [
        ("def f():\n    raise KeyError('x')\n", "KeyError", 1),
        ("def f():\n    return {1, 2}\n", "TypeError", 1),
        ("def f():\n    return float('nan')\n", "ValueError", 1),
        ("def f():\n    value = []\n    value.append(value)\n    return value\n", "ValueError", 1),
        ("class f:\n    def __eq__(self, other):\n        return True\n", "TypeError", 1),
        ("1 / 0\n", "ZeroDivisionError", 0),
        ("def g():\n    pass\n", "AttributeError", 0),
    ],
)
def test_what_the_function_raised_is_told_by_name(submitted, source, kind, answered):
    """A check of errors needs to know which one it was, without importing its class."""
    submission = submitted(source)

    with pytest.raises(Raised) as caught:
        submission.call("it:f", timeout_s=LONG_S)

    assert caught.value.type == kind
    assert submission.answers == answered


@pytest.mark.parametrize(
    "line",
    [
        rb'{"value": NaN}\n',
        rb'{"value": -Infinity}\n',
        rb'{"value": 1e999}\n',
        rb'{"value": 1, "value": 2}\n',
        rb'{"value": {"a": 1, "\u0061": 2}}\n',
        rb'{"value": 1, "more": 2}\n',
        rb'{"value": 1}',
        rb'{"value": 1}\n{"value": 1}\n',
        rb'\n{"value": 1}\n',
        rb"[1]\n",
        rb"1\n",
        rb"null\n",
        rb"{}\n",
        rb'{"raised": 5, "stage": "call"}\n',
        rb'{"raised": {"type": "X"}, "stage": "call"}\n',
        rb'{"raised": {"type": "X", "message": 1}, "stage": "call"}\n',
        rb'{"raised": {"type": "X", "message": ""}}\n',
        rb'{"value": "\xff"}\n',
        rb'\xef\xbb\xbf{"value": 1}\n',
        rb'{\x00"\x00v\x00a\x00l\x00u\x00e\x00"\x00:\x001\x00}\x00\n',
        rb'{"value": ' + b"9" * 5000 + rb"}\n",
        rb"nonsense\n",
    ],
)
def test_an_answer_that_is_not_one_strict_json_object_is_none(submitted, line):
    """Whoever writes the answer himself gains nothing by writing it badly."""
    submission = submitted(
        f"{ANSWER}def f():\n    answer(b'{line.decode('ascii')}')\n    os._exit(0)\n"
    )

    with pytest.raises(NoAnswer):
        submission.call("it:f", timeout_s=LONG_S)

    assert submission.answers == 0


@pytest.mark.parametrize(
    "body",
    [
        "os._exit(0)",
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "os.close(3)",
        "raise SystemExit(0)",
        "os.execv('/bin/true', ['true'])",
        "answer(b'[' * 100000 + b']' * 100000 + b'\\n')\n    os._exit(0)",
        "answer(b'{\"value\": 42}\\n')",
        "answer(b'{\"value\": 42}\\n' * 1000)\n    os._exit(0)",
        "os.fork()",
        "answer(b'{\"value\": 42}\\n')\n    os._exit(1)",
    ],
)
def test_a_process_that_does_not_give_one_answer_gives_none(submitted, body):
    """Early ends, forged answers before the real one, and two processes that both answer."""
    submission = submitted(f"{ANSWER}def f():\n    {body}\n    return 41\n")

    with pytest.raises(NoAnswer):
        # A fork answers twice at once or not at all, and either is no answer.
        for _ in range(20):
            assert submission.call("it:f", timeout_s=LONG_S) == 41


def test_an_answer_may_not_be_endless(submitted, monkeypatch):
    """A check reads no more of it than it may be long."""
    monkeypatch.setattr(module, "ANSWER_BYTES", 1000)
    submission = submitted("def f():\n    return 'x' * 1000\n")

    with pytest.raises(NoAnswer):
        submission.call("it:f", timeout_s=LONG_S)


def test_a_process_that_hangs_is_ended(submitted):
    """A call is bounded, so that the check can still say what it was that hung."""
    submission = submitted("import time\n\n\ndef f():\n    time.sleep(60)\n")

    with pytest.raises(NoAnswer, match=r"it:f gave no answer within 0\.2 s"):
        submission.call("it:f", timeout_s=0.2)


def test_a_process_left_behind_holds_nobody_up(submitted, tmp_path):
    """It keeps the answer's descriptor open, and the answer was given all the same."""
    submission = submitted(
        "import os\nimport time\n\n\ndef f():\n    ours, theirs = os.pipe()\n"
        "    child = os.fork()\n    if child == 0:\n"
        "        os.write(theirs, b'x')\n        time.sleep(60)\n        os._exit(0)\n"
        "    os.read(ours, 1)\n    return child\n"
    )

    child = submission.call("it:f", timeout_s=LONG_S)

    assert _has_ended(child)


def _has_ended(pid: int) -> bool:
    """Return whether a process that was killed is gone, or waits only to be collected."""
    until_s = time.monotonic() + LONG_S
    while time.monotonic() < until_s:
        try:
            if b") Z" in Path(f"/proc/{pid}/stat").read_bytes():
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_what_a_call_prints_is_no_answer(submitted, capfd):
    """Prints are diagnostics: they stand in the log of the check."""
    submission = submitted("def f():\n    print('{\"value\": 42}')\n    return 41\n")

    assert submission.call("it:f", timeout_s=LONG_S) == 41
    assert '{"value": 42}' in capfd.readouterr().err


def test_a_method_needs_no_instance(submitted):
    """`module:Class.method` reaches what hangs on a class."""
    submission = submitted("class It:\n    @staticmethod\n    def f(a):\n        return a + 1\n")

    assert submission.call("it:It.f", 1, timeout_s=LONG_S) == 2


def test_a_call_imports_little_of_its_own():
    """Each call is a fresh process, so every import is paid for again and again."""
    request = json.dumps({"roots": ["/"], "target": "sys:getsizeof", "args": [1], "kwargs": {}})

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-X", "importtime", str(PROGRAM)],
        input=request,
        capture_output=True,
        text=True,
        check=True,
    )

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert json.loads(done.stdout)["value"] > 0
    assert not imported & {"typing", "subprocess", "tempfile", "pathlib", "ctypes", "dataclasses"}


# From here on behind the boundary, where the check and its calls are neighbours.

CALLS = "def test_it(submission):\n    assert submission.call('app.core:value') == 42\n"


def canary(name: str) -> str:
    return f"{CANARY}-{name}"


ATTACKS = {
    "memory of the check": (
        "import os\n\n\ndef value():\n"
        "    with open(f'/proc/{os.getppid()}/mem', 'r+b', buffering=0):\n        return 42\n"
    ),
    "a descriptor of the check, by name": (
        "import os\n\n\ndef value():\n"
        "    for number in range(3, 64):\n        try:\n"
        "            os.open(f'/proc/{os.getppid()}/fd/{number}', os.O_WRONLY)\n"
        "        except FileNotFoundError:\n            continue\n        return 42\n"
    ),
    "environment of the check": (
        "import os\n\n\ndef value():\n"
        "    with open(f'/proc/{os.getppid()}/environ', 'rb') as file:\n"
        "        file.read()\n    return 42\n"
    ),
    "mappings of the check": (
        "import os\n\n\ndef value():\n"
        "    with open(f'/proc/{os.getppid()}/maps', 'rb') as file:\n"
        "        file.read()\n    return 42\n"
    ),
    "tracing the check": (
        "import ctypes\nimport os\n\n\ndef value():\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    attach, seize = 16, 0x4206\n"
        "    for request in (seize, attach):\n"
        "        if libc.ptrace(request, os.getppid(), None, None) == 0:\n            return 42\n"
        "    return 41\n"
    ),
    "a descriptor taken from the check": (
        "import ctypes\nimport os\n\n\ndef value():\n"
        "    pidfd = os.pidfd_open(os.getppid())\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    return 42 if libc.syscall(438, pidfd, 3, 0) >= 0 else 41\n"
    ),
    "ending the check": (
        "import os\nimport signal\n\n\ndef value():\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n    return 42\n"
    ),
    "ending everything": "import os\n\n\ndef value():\n    os.kill(-1, 9)\n    return 42\n",
    "stopping the first process": (
        "import os\nimport signal\n\n\ndef value():\n"
        "    os.kill(1, signal.SIGKILL)\n    os.kill(1, signal.SIGSTOP)\n    return 41\n"
    ),
}


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("core", ATTACKS.values(), ids=list(ATTACKS))
def test_a_call_reaches_nothing_of_the_check(bench, small_task, core):
    """Each returns the right answer only when it got hold of something of its parent's."""
    small_task.only_check(CALLS)
    task = small_task.load()

    row = bench.check(task, {"app/core.py": core}, "only")

    assert row.status in ("failed", "agent_error")
    assert row.verdicts == {"only": False}


SEARCH = """\
import os


def found(backwards):
    word = backwards[::-1].encode()
    seen = []
    for top in ("/tmp", "/dev/shm", "/proc", "/etc", "/run", "/var", "/home", "/root", {places}):
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if name not in ("task", "net", "sys")]
            seen += [os.path.join(folder, name) for name in names if holds(folder, name, word)]
    return seen


def holds(folder, name, word):
    if word in os.fsencode(name):
        return True
    path = os.path.join(folder, name)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return word in os.read(descriptor, 1 << 20)
    except OSError:
        return False
    finally:
        os.close(descriptor)
"""


@pytest.mark.slow
@needs_bwrap
def test_the_source_of_a_check_is_gone_before_the_first_call(bench, small_task):
    """Whoever can read the check can write a submission that knows its answers."""
    needle = canary("in-the-source")
    small_task.only_check(
        f"# {needle}\n\n\ndef test_it(submission):\n"
        "    planted = submission.scratch / 'planted'\n"
        f"    planted.write_text('{needle}')\n"
        f"    found = submission.call('app.core:found', '{needle[::-1]}', timeout_s=60)\n"
        "    assert found == [str(planted)]\n"
    )
    task = small_task.load()
    places = f"{str(bench.tools.root)!r}, {str(bench.root)!r}, {str(small_task.root)!r}"
    search = SEARCH.replace("{places}", places)

    row = bench.check(task, {"app/core.py": search}, "only")

    # The one hit shows that the search does find what is there.
    assert (row.status, row.detail) == ("passed", "")
