from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evalarc.runs import pieces
from pytest_evalarc.runs.pieces import spans_in_pieces
from pytest_evalarc.runs.redaction import Redaction

KEY = 'sk-"osprey"/key+\\0123é'


def events(*texts: str, ascii: bool = True) -> bytes:
    lines = ({"type": "delta", "id": n, "part": {"text": text}} for n, text in enumerate(texts))
    return "".join(json.dumps(line, ensure_ascii=ascii) + "\n" for line in lines).encode()


def told(stream: bytes) -> str:
    lines = [line for line in stream.splitlines() if line.startswith(b"{")]
    return "".join(json.loads(line)["part"]["text"] for line in lines)


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 15])
def test_a_secret_that_events_hold_in_pieces_is_struck_out(
    tmp_path: Path, width: int, ascii: bool
) -> None:
    """Each event stays one, and what a reader joins holds asterisks."""
    text = f"my key is {KEY}, and {KEY} again"
    stream = events(*(text[at : at + width] for at in range(0, len(text), width)), ascii=ascii)
    (tmp_path / "transcript.jsonl").write_bytes(b"no event\n" + stream + b"{torn")

    struck = Redaction([KEY]).strike(tmp_path)

    left = (tmp_path / "transcript.jsonl").read_bytes()
    assert struck == ("transcript.jsonl",)
    assert len(left) == len(stream) + len(b"no event\n{torn")
    joined = told(left.removesuffix(b"{torn"))
    assert "sk-" not in joined and "osprey" not in joined and "0123" not in joined
    # Of a string with escapes all is struck, so a few characters beside the key may go with it.
    assert joined.endswith("in")


def test_strings_of_other_fields_are_in_nobody_s_way() -> None:
    """Between two pieces stand the type and the id of an event."""
    stream = events("a secret", "-0123 b")

    found = [stream[start:end] for start, end in spans_in_pieces(stream, [b"secret-0123"])]

    assert found == [b"secret", b"-0123"]


@pytest.mark.parametrize(
    "stream",
    [
        events("a secret-0123 b"),
        events("secret", "and", "-0123"),
        b'["secret", "-0123"]\n',
        b'{"text": "secret"}\n{"other": "-0123"}\n',
        b'{"secret": "-0123"}\n',
        b"secret\n-0123\n",
        b"",
    ],
)
def test_what_is_no_secret_in_pieces_stays(stream: bytes) -> None:
    """One that stands in a single string is found as it is spelled there."""
    assert list(spans_in_pieces(stream, [b"secret-0123"])) == []


def test_a_stream_too_long_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining takes memory, and a session may print as much as it likes."""
    stream = events("secret", "-0123")
    assert len(list(spans_in_pieces(stream, [b"secret-0123"]))) == 2
    monkeypatch.setattr(pieces, "MOST_BYTES", len(stream) - 1)

    assert list(spans_in_pieces(stream, [b"secret-0123"])) == []
