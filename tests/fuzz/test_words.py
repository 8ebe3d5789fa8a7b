"""Names and foreign text: any string, wherever it is shown and whatever it becomes."""

from __future__ import annotations

import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from pytest_evalarc.files.text import printable, without_surrogates
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.runs.redaction import Redaction
from pytest_evalarc.tasks.names import is_reserved, path_twins
from tests.fuzz.forms import fuzzed

ANY = st.text() | st.lists(
    st.sampled_from(
        (
            *(
                "\x00",
                "\x1b[2J",
                "\x9b31m",
                "\r",
                "\n",
                "\t",
                "\u202e",
                "\u2066",
                "\ud800",
                "\udfff",
            ),
            *("\ufffe", "\x7f", "a", "\U0001f600", "]]>", "</script>", "<!--", "&lt;", '"', "'"),
        )
    ),
    max_size=8,
).map("".join)


@fuzzed(150)
@given(ANY | st.binary(max_size=40), st.integers(1, 60))
def test_what_is_shown_steers_no_terminal_and_suits_every_file(
    text: str | bytes, limit: int
) -> None:
    """The same words go to a terminal, into XML, HTML and JSON."""
    shown = printable(text, limit=limit)

    assert not any(
        unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in shown
    )
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    assert shown.encode().decode() == shown
    assert json.loads(json.dumps(shown)) == shown
    element = ET.Element("it")
    element.text = shown
    assert (ET.fromstring(ET.tostring(element, encoding="utf-8")).text or "") == shown
    assert unescape(str(escape(shown))) == shown and "<" not in str(escape(shown))
    assert printable(shown, limit=len(shown) + 1) == shown


@fuzzed(100)
@given(ANY | st.from_regex(r"[A-Za-z0-9_+-]{1,101}\n?", fullmatch=True))
def test_a_name_is_one_part_of_a_path_and_of_a_node_id(name: str) -> None:
    """What passes for a name becomes a folder, a JSON key and a part of a node id."""
    if is_name(name):
        assert Path("folder", name).parts == ("folder", name)
        assert "::" not in name and "[" not in name and name == name.strip()
        assert name.encode("ascii").decode() == name
        assert is_reserved(name) == is_reserved(name.upper()) == is_reserved(name.lower())


@fuzzed(100)
@given(st.lists(ANY, unique=True, max_size=6))
def test_paths_without_twins_stay_apart_on_every_file_system(paths: list[str]) -> None:
    """Some file systems fold case, some fold accents, and a task must be one on all of them."""
    twins = list(path_twins(paths))

    later = {path for _, path in twins}
    kept = [path for path in paths if path not in later]
    assert len({unicodedata.normalize("NFC", path.casefold()) for path in kept}) == len(kept)
    assert len({unicodedata.normalize("NFD", path) for path in kept}) == len(kept)


SECRETS = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=8, max_size=20)


@fuzzed(40)
@given(SECRETS, ANY, ANY)
def test_no_spelling_of_a_secret_is_kept(secret: str, before: str, after: str) -> None:
    """Whatever stands around a key, and however JSON wrote it, it is struck out."""
    redaction = Redaction([secret])
    spelt = [secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)]
    for spelling in [*spelt, json.dumps(json.dumps(secret))]:
        text = f"{before}{spelling}{after}"

        struck = redaction.text(text)

        inner = spelling.strip('"\\')
        assert inner not in struck or inner in before + after or set(inner) == {"*"}
        assert len(struck.encode("utf-8", "surrogatepass")) == len(
            text.encode("utf-8", "surrogatepass")
        )
    assert redaction.text(without_surrogates(before)) is not None
