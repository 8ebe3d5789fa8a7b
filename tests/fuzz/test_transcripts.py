"""Streams of clients: whatever an agent or a later version prints, something can be told of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.clients.claude.client import ClaudeClient
from pytest_evalarc.clients.codex.client import CodexClient
from pytest_evalarc.clients.stream import CompletionWatch, read_stream
from pytest_evalarc.files.strict import as_model, document_bytes, read_model
from pytest_evalarc.isolation.command import Ended, Exit
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.transcript import Transcript
from pytest_evalarc.model.trial import PlanDoc, TrialResult
from pytest_evalarc.reporting.atif import trajectory_document
from pytest_evalarc.reporting.transcripts import KeptTrial, session_lines
from pytest_evalarc.reporting.turns import Turn, turns_of
from tests.documents import write_trials
from tests.fuzz.forms import altered, damaged, fuzzed

CLIENTS = Path(__file__).parents[1] / "clients"
READABLE = {"claude": ClaudeClient, "codex": CodexClient}
RECORDED = {
    name: [path.read_bytes() for path in sorted((CLIENTS / name / "transcripts").glob("*.jsonl"))]
    for name in READABLE
}
OWN = [
    b'{"type":"start","format":"evalarc.stream.v1","cwd":"/p","skills":["tidy"]}\n'
    b'{"type":"tool_call","id":"1","kind":"read","name":"read","target":"src/app.py"}\n'
    b'{"type":"tool_result","id":"1","is_error":false,"content":"x"}\n'
    b'{"type":"usage","input_tokens":10,"output_tokens":2}\n'
    b'{"type":"response","text":"done"}\n'
    b'{"type":"completion","is_error":false}\n'
]
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_trials(tmp_path_factory.mktemp("trials"))


def read(name: str, folder: Path, stream: bytes, *, lost: int = 0) -> Transcript:
    """Return what a client's reader makes of a stream of which some bytes were dropped."""
    file = folder / "stdout"
    file.write_bytes(stream)
    said = len(stream) + lost
    if name == "own":
        return read_stream(file, true_bytes=said)
    exit = Exit(reason=Ended.EXITED, status=0, stdout_bytes=said, stderr_bytes=0, wall_time_s=1.0)
    return READABLE[name]().read(file, exit, RunLayout(root=folder))


@st.composite
def event_altered(draw: Any, streams: list[bytes]) -> bytes:
    """Return a stream in which some events have other values, and are still JSON."""
    lines = draw(st.sampled_from(streams)).splitlines()
    for _ in range(draw(st.integers(1, 3)) if lines else 0):
        at = draw(st.integers(0, len(lines) - 1))
        try:
            event = json.loads(lines[at])
        except ValueError:
            continue
        lines[at] = json.dumps(draw(altered(event))).encode()
    return b"\n".join(lines) + b"\n"


def calls_in(turns: tuple[Turn, ...]) -> int:
    return sum(1 + calls_in(call.turns) for turn in turns for call in turn.calls)


def require_told(transcript: Transcript, trials: Path) -> None:
    """See that a transcript survives on disk, and can be shown in every form there is."""
    again = as_model(document_bytes(transcript), Transcript, where="it")
    assert document_bytes(again) == document_bytes(transcript)
    unique = {call.id for call in transcript.tool_calls}
    assert calls_in(turns_of(transcript, prompt="do it")) == len(unique)
    plan = read_model(trials / "plan.json", PlanDoc)
    path = next(trials.glob("trial-*/result.json"))
    result = read_model(path, TrialResult)
    entry = next(entry for entry in plan.trials if entry.folder == path.parent.name)
    trajectory_document(transcript, result, "do it")
    kept = KeptTrial(plan=plan, entry=entry, transcript=transcript, result=result)
    for line in session_lines(kept, prompt="do it", width=80):
        assert not UNSAFE.search(line) and "\n" not in line, ascii(line)


@pytest.mark.parametrize("name", [*READABLE, "own"])
@fuzzed(40)
@given(st.data())
def test_a_damaged_stream_is_told(
    trials: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    """A client may be killed within a line, and its words may be anything at all."""
    stream = data.draw(damaged(RECORDED.get(name, OWN)))
    lost = data.draw(st.sampled_from((0, 0, 1, 1 << 40)))

    found = read(name, tmp_path, stream, lost=lost)

    assert not (lost and found.interpreted)
    require_told(found, trials)


@pytest.mark.parametrize("name", [*READABLE, "own"])
@fuzzed(40)
@given(st.data())
def test_events_with_other_values_are_told(
    trials: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    """A later version of a client may give any key another type."""
    require_told(read(name, tmp_path, data.draw(event_altered(RECORDED.get(name, OWN)))), trials)


@pytest.mark.parametrize("name", list(READABLE))
@fuzzed(25)
@given(st.data())
def test_a_stream_in_any_chunks_ends_where_it_ends_in_one(name: str, data: st.DataObject) -> None:
    """A pipe splits what it carries wherever it likes, and a session is ended by what is seen."""
    watch = READABLE[name]().watcher
    require_same_end(watch, data, data.draw(damaged(RECORDED[name])))


@fuzzed(25)
@given(st.data())
def test_an_own_stream_in_any_chunks_ends_where_it_ends_in_one(data: st.DataObject) -> None:
    """The same of the embedded clients, whose end is looked for in another way."""
    require_same_end(CompletionWatch, data, data.draw(damaged(OWN)))


def require_same_end(watch: Any, data: st.DataObject, stream: bytes) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    split, whole = watch(), watch()
    ends = [split(stream[a:b]) for a, b in zip([0, *places], [*places, len(stream)], strict=True)]

    assert ends[-1] == whole(stream)
    assert ends == sorted(ends)
