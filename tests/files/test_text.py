"""Foreign text, made safe once for terminals, JSON and XML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.files.text import in_line, printable


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        (b"ok \xff\xfe", "ok \ufffd\ufffd"),
        ("half \ud835 of a pair", "half \ufffd of a pair"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("nul \x00 del \x7f c1 \x9b", "nul \\x00 del \\x7f c1 \\x9b"),
        ("line\nnext\ttab\rreturn", "line\nnext\ttab\\x0dreturn"),
        ("turned \u202e round", "turned \\u202e round"),
        ("no character \uffff", "no character \\uffff"),
        ("né 漢 🐍".encode(), "né 漢 🐍"),
    ],
)
def test_what_is_no_plain_text_is_made_visible(foreign: str | bytes, shown: str) -> None:
    """A sequence that restyles a terminal must be read in a report, never obeyed."""
    assert printable(foreign) == shown


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_can_be_stored_everywhere(text: str) -> None:
    """One odd character in an agent's words must not cost the whole report."""
    shown = printable(text)

    assert (ET.fromstring(f"<a>{escape(shown)}</a>").text or "") == shown
    assert json.loads(json.dumps(shown, ensure_ascii=False).encode()) == shown


@pytest.mark.parametrize("limit", [2, 7, 100])
def test_a_cut_keeps_both_ends_and_says_how_much_is_gone(limit: int) -> None:
    """The cause stands at the start or at the end, and a silent cut reads as the whole."""
    text = "a" * 5000 + "b" * 5000

    shown = printable(text, limit=limit)

    head, tail = limit - limit // 2, limit // 2
    assert shown == f"{'a' * head}[… {10_000 - limit} characters dropped …]{'b' * tail}"


def test_a_text_of_exactly_the_limit_is_whole() -> None:
    """An edge that drops nothing must not claim that it did."""
    assert printable("x" * 2000) == "x" * 2000


@pytest.mark.parametrize("end", ["\n", "\r", "\t", "\u2028", "\u2029", "\x85"])
def test_a_part_of_a_sentence_ends_no_line(end: str) -> None:
    """A key of a file or a path of a submission may hold any of them."""
    shown = in_line(f"a{end}b")

    assert shown == (f"a\\x{ord(end):02x}b" if ord(end) < 0x100 else f"a\\u{ord(end):04x}b")
    assert shown.splitlines() == [shown]
