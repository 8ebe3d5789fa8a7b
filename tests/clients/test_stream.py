from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.clients.stream import CompletionWatch, read_stream, relative_target
from pytest_evalarc.model.transcript import Offered, Transcript, Usage

START = {"type": "start", "format": "evalarc.stream.v1", "cwd": "/run/project", "skills": ["tidy"]}
CALL = {"type": "tool_call", "id": "1", "kind": "read", "name": "cat", "target": "a.py"}
RESULT = {"type": "tool_result", "id": "1", "is_error": False, "content": "x = 1"}
END = {"type": "completion", "is_error": False}


def stream(*events: dict[str, Any] | bytes) -> bytes:
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(line + b"\n" for line in lines)


def transcript(folder: Path, data: bytes) -> Transcript:
    path = folder / "stdout"
    path.write_bytes(data)
    return read_stream(path, true_bytes=len(data))


def test_a_whole_session_is_told_whole(tmp_path: Path) -> None:
    """Every later decision reads these fields and nothing of the stream itself."""
    usage = {"type": "usage", "input_tokens": 5, "output_tokens": 2, "cache_read_tokens": 0}
    response = {"type": "response", "text": "done"}

    read = transcript(tmp_path, stream(START, CALL, RESULT, usage, response, END))

    assert read.interpreted
    assert read.events == 6
    assert read.offered == Offered(skills=("tidy",))
    (call,) = read.tool_calls
    assert (call.kind, call.name, call.target) == ("read", "cat", "a.py")
    assert (call.result, call.is_error) == ("x = 1", False)
    assert read.usage == Usage(input_tokens=5, output_tokens=2, cache_read_tokens=0)
    assert read.usage is not None
    assert read.usage.cache_write_tokens is None
    assert read.response == "done"
    assert read.completion is not None
    assert not read.completion.is_error


def test_words_of_success_without_a_completion_event_complete_nothing(tmp_path: Path) -> None:
    """A client that asks `what would you like help with?` and exits 0 did not work."""
    response = {"type": "response", "text": "Task completed successfully."}

    read = transcript(tmp_path, stream(START, response))

    assert read.completion is None
    assert read.interpreted


def test_the_last_usage_wins_and_nothing_is_summed(tmp_path: Path) -> None:
    """Usage is repeated as it grows: a sum would count the same tokens several times."""
    usages = [
        {"type": "usage", "input_tokens": 10, "output_tokens": n, "cache_read_tokens": 3}
        for n in (1, 1, 57)
    ]

    read = transcript(tmp_path, stream(START, *usages, END))

    assert read.usage == Usage(input_tokens=10, output_tokens=57, cache_read_tokens=3)


def test_a_stream_without_usage_leaves_it_unknown(tmp_path: Path) -> None:
    """Unknown is not zero, or a silent client would look free."""
    assert transcript(tmp_path, stream(START, END)).usage is None


@pytest.mark.parametrize("count", [-1, 1.5, "7", True])
def test_a_count_that_is_none_is_not_taken_for_one(tmp_path: Path, count: object) -> None:
    """A token count that was guessed at would go into the means."""
    read = transcript(tmp_path, stream(START, {"type": "usage", "input_tokens": count}, END))

    assert read.usage is None
    assert not read.interpreted


@pytest.mark.parametrize(
    "event",
    [
        b'{"type": "completion"',
        b'{"type": "completion", "is_error": true, "is_error": false}',
        {"type": "surprise"},
        {"no": "type"},
        {"type": "completion", "is_error": 0},
        {**CALL, "id": "2", "kind": "dance"},
        {**RESULT, "id": "never-called"},
        {**RESULT, "content": None},
        {**START, "format": "evalarc.stream.v9"},
        START,
        CALL,
        b"\xff\xfe",
        b"\x00",
    ],
)
def test_what_was_not_understood_makes_absences_prove_nothing(
    tmp_path: Path, event: dict[str, Any] | bytes
) -> None:
    """The lost line may have been the very one that loads a skill."""
    read = transcript(tmp_path, stream(START, CALL, event, RESULT, END))

    assert not read.interpreted
    assert len(read.tool_calls) == 1
    assert read.tool_calls[0].is_error is False
    assert read.completion is not None


def test_a_second_completion_does_not_overrule_the_first(tmp_path: Path) -> None:
    """A session ends once; what speaks after its end may be anybody."""
    read = transcript(tmp_path, stream(START, {**END, "is_error": True}, END))

    assert read.completion is not None
    assert read.completion.is_error
    assert not read.interpreted


def test_a_second_result_does_not_overrule_the_first(tmp_path: Path) -> None:
    """A denied read must not become a successful one by a later line."""
    read = transcript(tmp_path, stream(START, CALL, {**RESULT, "is_error": True}, RESULT, END))

    assert read.tool_calls[0].is_error is True
    assert not read.interpreted


def test_a_call_that_was_cut_off_has_no_result(tmp_path: Path) -> None:
    """Neither success nor failure was seen."""
    (call,) = transcript(tmp_path, stream(START, CALL)).tool_calls

    assert call.result is None
    assert call.is_error is None


def test_a_start_that_comes_late_starts_nothing(tmp_path: Path) -> None:
    """Its folder would rename the paths of calls that were made before it."""
    read = transcript(tmp_path, stream({**CALL, "target": "/run/project/a.py"}, START, END))

    assert [call.target for call in read.tool_calls] == ["/run/project/a.py"]
    assert read.offered is None
    assert not read.interpreted


def test_an_empty_stream_shows_nothing_and_is_not_interpreted(tmp_path: Path) -> None:
    """A client that never started must not prove that no skill was loaded."""
    read = transcript(tmp_path, b"")

    assert read == Transcript(events=0, interpreted=False)


def test_keys_of_a_later_writer_are_passed_over(tmp_path: Path) -> None:
    """A recording of next year's player is still readable."""
    assert transcript(tmp_path, stream({**START, "host": "h"}, {**END, "turns": 3})).interpreted


@pytest.mark.parametrize(
    ("target", "cwd", "expected"),
    [
        ("/run/project/src/a.py", "/run/project", "src/a.py"),
        ("/run/project/src/../b.py", "/run/project/", "b.py"),
        ("./src//a.py", "/run/project", "src/a.py"),
        ("/run/project", "/run/project", "."),
        ("/run/project-2/a.py", "/run/project", "/run/project-2/a.py"),
        ("../home/.ssh/id", "/run/project", "/run/home/.ssh/id"),
        ("src/../../../etc/passwd", "/run/project", "/etc/passwd"),
        ("/etc/passwd", None, "/etc/passwd"),
        ("./a.py", None, "a.py"),
        ("", "/run/project", ""),
    ],
)
def test_paths_are_named_below_the_project_or_stay_absolute(
    target: str, cwd: str | None, expected: str
) -> None:
    """One file has one name for whoever compares, and no outside path poses as an inside one."""
    assert relative_target(target, cwd) == expected


def test_commands_and_skill_names_are_not_taken_for_paths(tmp_path: Path) -> None:
    """`a/../b` in a command is the client's own words."""
    calls = [
        {**CALL, "id": kind, "kind": kind, "target": "/run/project/a/../b"}
        for kind in ("command", "skill", "other", "edit")
    ]

    read = transcript(tmp_path, stream(START, *calls, END))

    assert [call.target for call in read.tool_calls] == ["/run/project/a/../b"] * 3 + ["b"]


EVENTS = st.sampled_from([START, CALL, RESULT, END, {"type": "usage"}, {"type": "response"}])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
HOSTILE = st.builds(
    lambda event, key, value: {**event, key: value},
    EVENTS,
    st.sampled_from(["type", "id", "kind", "target", "cwd", "skills", "content", "is_error"]),
    VALUES,
)


@given(
    st.lists(EVENTS | HOSTILE | st.binary().map(lambda raw: raw.replace(b"\n", b"")), max_size=8)
)
def test_no_stream_raises_and_every_transcript_can_be_stored(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any] | bytes]
) -> None:
    """Whatever a client prints, its trial ends in an outcome and a whole result file."""
    read = transcript(tmp_path_factory.getbasetemp(), stream(*events))

    assert Transcript.model_validate_json(read.model_dump_json()) == read


@given(st.integers(min_value=0, max_value=len(stream(START, CALL, RESULT, END))))
def test_a_stream_cut_anywhere_never_shows_more_than_the_whole(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    """A kill can fall on any byte; half a line must not become a result of its own."""
    whole = stream(START, CALL, RESULT, END)

    read = transcript(tmp_path_factory.getbasetemp(), whole[:length])

    assert (read.completion is not None) == (length >= len(whole) - 1)
    assert all(call.is_error in (None, False) for call in read.tool_calls)
    torn = length not in (0, len(whole)) and whole[length - 1 : length + 1].count(b"\n") == 0
    assert not (torn and read.interpreted)


# The end of a session, seen as it comes.


@given(st.binary(max_size=40), st.lists(st.integers(1, 60), max_size=8))
def test_a_completion_is_seen_however_the_stream_is_cut(noise: bytes, sizes: list[int]) -> None:
    """Chunks end where the pipe was full, never where a line does."""
    data = noise.replace(b"\n", b"") + b"\n" + stream(START, CALL, RESULT, END)
    watch, seen = CompletionWatch(), []
    for size in sizes:
        seen.append(watch(data[:size]))
        data = data[size:]

    assert watch(data)
    assert watch(b"")
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"response","text":"completion"}',
        b'{"type":"tool_result","id":"1","is_error":false,"content":"{\\"type\\":\\"completion\\"}"}',
        b'{"type":"completion"}',
        b'{"type":"completion","is_error":false',
        b'x{"type":"completion","is_error":false}',
        b'{"type":"completion","type":"completion","is_error":false}',
        b"completion",
        b'"completion"',
    ],
)
def test_what_is_no_completion_event_ends_no_session(line: bytes) -> None:
    """A session that only talks of its end would be cut off in the middle of its work."""
    watch = CompletionWatch()

    assert not watch(line + b"\n")
    assert not watch(json.dumps(END).encode())
    assert not watch(b" ")
    assert watch(b"\n")


def test_an_error_is_an_end_too() -> None:
    """The session is over, whatever its client thinks of it."""
    assert CompletionWatch()(stream({**END, "is_error": True}))


def test_a_line_too_long_to_be_an_event_costs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood without a newline is cut by its deadline, not by the machine's memory."""
    monkeypatch.setattr("pytest_evalarc.clients.stream.LINE_BYTES", 100)
    watch, end = CompletionWatch(), json.dumps(END).encode()

    for _ in range(100):
        assert not watch(b" " * 90)
    assert len(watch._line) == 101
    assert not watch(end + b"\n")
    assert watch(end + b"\n")
