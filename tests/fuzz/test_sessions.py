"""Sessions of packs: whatever a candidate says is a reply that was asked for, or its fault."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.grading.pack import CandidateError
from pytest_evalarc.grading.session import Bounds, CandidateSession, canonical
from pytest_evalarc.isolation.command import Command, Policy
from pytest_evalarc.isolation.local import Local
from tests.fuzz.forms import JSON, fuzzed

pytestmark = pytest.mark.slow

LONG_S = 120.0
"""Beyond what the busiest machine needs: no candidate here leaves its session waiting."""
PLAY = """\
import json, os, sys
first, answers, last, status = json.loads(sys.argv[1])
def say(text): os.write(1, bytes.fromhex(text))
say(first)
for answer in answers:
    sys.stdin.readline()
    say(answer)
if last is not None:
    sys.stdin.read()
    say(last)
os._exit(status)
"""
"""Says something, then something after each line that it reads, and perhaps after all of them."""
FAULTS = {"unsolicited", "protocol", "early_exit", "exit_status", "output_limit"}


@dataclass(frozen=True)
class Script:
    """What a candidate says, in the order in which it says it."""

    first: bytes
    answers: Sequence[bytes]
    last: bytes | None
    """None when it does not wait for the end of its input."""
    status: int

    @property
    def argument(self) -> str:
        """The script as its player reads it."""
        last = None if self.last is None else self.last.hex()
        answers = [answer.hex() for answer in self.answers]
        return json.dumps([self.first.hex(), answers, last, self.status])

    @property
    def replies(self) -> list[str] | None:
        """What its session must return, or None when it must be found at fault."""
        *earlier, latest = self.answers
        said = [*earlier, latest + (self.last or b"")]
        ends = [answer.partition(b"\n")[2] for answer in said]
        if self.first or self.status or any(ends[:-1]) or ends[-1].strip():
            return None
        try:
            return [canonical(loads(answer.partition(b"\n")[0], where="it")) for answer in said]
        except DocumentError:
            return None


VALID = JSON.map(lambda value: json.dumps(value).encode()).filter(
    lambda line: b"NaN" not in line and b"Infinity" not in line
)
INVALID = st.sampled_from(
    (
        *(b"", b" ", b"{}{}", b"NaN", b'{"a":1,"a":2}', b"\xff", b"1e999", b"[" * 3000, b"\r"),
        *(b'"\\ud800"', b"\xef\xbb\xbf1", b"\x00", b"9" * 5000),
    )
)
NOISE = st.sampled_from((b" ", b"\n", b"x", b"{}\n"))
HONEST = st.builds(
    Script,
    st.just(b""),
    st.lists(VALID.map(lambda line: line + b"\n"), min_size=1, max_size=3),
    st.sampled_from((None, b"", b"\n")),
    st.just(0),
)
ANSWERS = st.builds(lambda line, noise: line + b"\n" + noise, VALID | INVALID, st.just(b"") | NOISE)
SCRIPTS = HONEST | st.builds(
    Script,
    st.just(b"") | NOISE,
    st.lists(ANSWERS, min_size=1, max_size=3),
    st.none() | st.just(b"") | NOISE,
    st.sampled_from((0, 0, 1, 255)),
)


def play(script: Script) -> tuple[list[str], CandidateError | None, CandidateSession]:
    """Ask as often as the script answers; return the replies, the fault and the session."""
    argv = (sys.executable, "-I", "-S", "-B", "-c", PLAY, script.argument)
    command = Command(argv=argv, cwd=Path("/"), env={})
    bounds = Bounds(case_ends_s=math.inf, startup_s=LONG_S, response_s=LONG_S)
    replies: list[str] = []
    with CandidateSession(Local(), command, Policy(), bounds=bounds) as session:
        try:
            for number in range(len(script.answers)):
                replies.append(canonical(session.ask({"number": number})))
            session.end("eof")
        except CandidateError as fault:
            return replies, fault, session
    return replies, None, session


@fuzzed(25)
@given(SCRIPTS)
def test_only_what_was_asked_for_is_a_reply(script: Script) -> None:
    """An answer in advance, one too many or half of one must pass as nothing, whenever it comes."""
    replies, fault, session = play(script)

    if script.replies is None:
        assert fault is not None and fault.kind in FAULTS
    else:
        assert fault is None, fault
        assert replies == script.replies
        assert session.row.exit_code == 0
    assert session.replies == len(replies)
