from __future__ import annotations

import tracemalloc
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.isolation.capture import Capture

SIZES = st.integers(min_value=0, max_value=12)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut bytes into chunks, some of them empty."""
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.binary(max_size=40), st.lists(st.integers(0, 40)), SIZES, SIZES)
def test_what_is_kept_does_not_depend_on_how_the_stream_is_cut(
    data: bytes, cuts: list[int], head: int, tail: int
) -> None:
    """The kernel decides where a read ends, and a record must be the same twice."""
    capture = Capture(head, tail)

    for chunk in split(data, cuts):
        capture.add(chunk)

    over = data[head:]
    kept = over[len(over) - tail :] if len(over) > tail else over
    dropped = len(over) - len(kept)
    marker = f"\n[{dropped} bytes dropped]\n".encode() if dropped else b""
    assert capture.total_bytes == len(data)
    assert capture.tail == kept
    assert capture.dropped_bytes == dropped
    assert capture.data() == data[:head] + marker + kept


@given(st.binary(max_size=40), st.lists(st.integers(0, 40)), SIZES, SIZES)
def test_a_file_ends_up_with_what_memory_would_hold(
    data: bytes, cuts: list[int], head: int, tail: int
) -> None:
    """A long transcript goes to disk as it comes; its reader must not notice."""

    class Kept(BytesIO):
        content = b""

        def close(self) -> None:
            self.content = self.content or self.getvalue()
            super().close()

    file = Kept()
    in_file, in_memory = Capture(head, tail, file=file), Capture(head, tail)

    for chunk in split(data, cuts):
        in_file.add(chunk)
        in_memory.add(chunk)
    in_file.close()
    in_file.close()

    assert file.content == in_memory.data()
    assert in_file.dropped_bytes == in_memory.dropped_bytes


def test_the_head_is_on_disk_before_the_end(tmp_path: Path) -> None:
    """A harness that dies leaves what was said until then."""
    path = tmp_path / "out"
    with path.open("wb", buffering=0) as file:
        capture = Capture(10, file=file)

        capture.add(b"so far")

        assert path.read_bytes() == b"so far"


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_memory_is_bounded_however_small_the_chunks(chunk: int) -> None:
    """A byte at a time must not cost an object each."""
    capture, data = Capture(1000, 100_000), b"x" * chunk
    tracemalloc.start()

    for _ in range(300_000 // chunk + 1):
        capture.add(data)

    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 600_000
