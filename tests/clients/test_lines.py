from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.clients import lines
from pytest_evalarc.clients.lines import EventWatch, decode_event, read_events, read_into


def events(folder: Path, data: bytes, *, lost_bytes: int = 0) -> list[object]:
    stream = folder / "stdout"
    stream.write_bytes(data)
    return list(read_events(stream, true_bytes=len(data) + lost_bytes))


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "start"',
        b"plain words",
        b'{"a": 1} {"b": 2}',
        b"[1, 2]",
        b'"text"',
        b'{"passed": false, "passed": true}',
        b'{"a": {"b": [{"c": 1, "c": 1}]}}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\x00"}',
        b'{"a": 1}\x00',
        b'{"a": "\xff"}',
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'\xef\xbb\xbf{"a": 1}',
    ],
)
def test_a_line_without_one_clear_meaning_is_no_event(line: bytes) -> None:
    """Two readers of such a line would disagree, so nothing may rest on it."""
    assert decode_event(line) is None


def test_a_half_surrogate_is_replaced_and_the_rest_of_its_line_kept() -> None:
    """Clients do print them, and one would abort every later write of the transcript."""
    event = decode_event(b'{"a\\ud835": ["x\\ud835", {"b": "\\udc00y"}], "n": 1}')

    assert event == {"a\ufffd": ["x\ufffd", {"b": "\ufffdy"}], "n": 1}
    json.dumps(event, ensure_ascii=False).encode("utf-8")


def test_a_torn_last_line_is_lost_and_what_came_before_it_stands(tmp_path: Path) -> None:
    """A killed client leaves half a line; the whole ones before it are still evidence."""
    assert events(tmp_path, b'{"a": 1}\n{"b": 2}\n{"c": ') == [{"a": 1}, {"b": 2}, None]


def test_a_last_line_that_lacks_only_its_newline_is_an_event(tmp_path: Path) -> None:
    """The object is whole, so nothing of it can be missing."""
    assert events(tmp_path, b'{"a": 1}\n{"b": 2}') == [{"a": 1}, {"b": 2}]


def test_an_empty_line_says_nothing(tmp_path: Path) -> None:
    """Some clients print them; counting them as lost would make every absence unprovable."""
    assert events(tmp_path, b'\n{"a": 1}\r\n  \n') == [{"a": 1}]


def test_bytes_that_the_capture_dropped_count_as_a_lost_part(tmp_path: Path) -> None:
    """A flooded stream is cut in its middle; what was cut may have held a load."""
    assert events(tmp_path, b'{"a": 1}\n', lost_bytes=1) == [{"a": 1}, None]


def test_a_reader_takes_every_line_and_every_loss_in_order(tmp_path: Path) -> None:
    """What it folds depends on what came before."""

    class Taken(list[object]):
        take = list.append

    stream, reader = tmp_path / "stdout", Taken()
    stream.write_bytes(b'{"a": 1}\nnoise\n{"b": 2}\n')

    found = read_into(reader, stream, true_bytes=100)

    assert found is reader
    assert found == [{"a": 1}, None, {"b": 2}, None]


@pytest.mark.parametrize("excess", [0, 1, 7, 8, 9, 100])
def test_a_giant_line_is_lost_as_one_and_never_held_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excess: int
) -> None:
    """A client that prints without newlines must cost neither memory nor the next event."""
    monkeypatch.setattr(lines, "LINE_BYTES", 16)
    giant = b"x" * (16 + excess)

    assert events(tmp_path, giant + b'\n{"a": 1}\n' + giant) == [None, {"a": 1}, None]


@given(st.lists(st.binary() | st.just(b"\n") | st.just(b'{"a": 1}\n')))
def test_no_content_raises_or_hides_a_whole_line(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    """A stream is whatever a client printed; its reader answers for every line of it."""
    data = b"".join(parts)

    found = events(tmp_path_factory.getbasetemp(), data)

    assert len(found) == sum(1 for line in data.split(b"\n") if line.strip())


# A stream that is watched as it comes.


def is_end(event: object) -> bool:
    return isinstance(event, dict) and event.get("a") == 1


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_the_end_is_seen_in_whatever_pieces_it_comes(size: int) -> None:
    """A pipe hands over bytes, and knows no lines."""
    watch, data = EventWatch(is_end), b'\n{"a": 2}\nnonsense\n["a"]\n{"a": 1}\n{"a": 3}\n'

    seen = [watch(data[start : start + size]) for start in range(0, len(data), size)]

    assert seen[-1]
    first = seen.index(True)
    assert min((first + 1) * size, len(data)) > data.index(b'{"a": 1}\n') + 8
    assert all(seen[first:])


def test_an_end_without_its_newline_has_not_come_yet() -> None:
    """The rest of the line may still make it something else."""
    watch = EventWatch(is_end)

    assert not watch(b'{"a": 1}')
    assert not watch(b" {}\n")
    assert watch(b'{"a": 1}\n')


def test_a_giant_line_is_no_end_and_is_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watching must not cost more memory than reading."""
    monkeypatch.setattr(lines, "LINE_BYTES", 16)
    watch = EventWatch(is_end)

    assert not watch(b'{"a": 1' + b" " * 100)
    assert len(watch._line) == 17
    assert not watch(b"}\n")
    assert watch(b'{"a": 1}\n')
