"""JSON that has one meaning, or none."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.strict import document_bytes, dumps, loads, read_model
from pytest_evalarc.model.base import Model
from pytest_evalarc.model.plain import PART_OF_DOCUMENTS


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the documents of these tests."""

    __pydantic_config__ = PART_OF_DOCUMENTS

    words: tuple[str, ...] = ()


class Note(Model):
    """A document of these tests."""

    schema_version: str
    count: int
    words: tuple[str, ...] = ()
    part: Part = Part()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("document", "place", "problem"),
    [
        (b'{"a": 1, "a": 2}', "line 1 column 10", 'key "a" is there twice'),
        (b'{"b": [\n{"a": 1,\n "a": 1}]}', "line 3 column 2", 'key "a" is there twice'),
        (rb'{"\u0061": 1, "a": 2}', "line 1 column 15", 'key "a" is there twice'),
        (b'{"a": {"a": 1}, "a": 2}', "line 1 column 17", 'key "a" is there twice'),
        (b'{"s": "NaN", "a": NaN}', "line 1 column 19", "NaN is not a JSON number"),
        (b"[1,\n -Infinity]", "line 2 column 2", "-Infinity is not a JSON number"),
        (b"1e999", "line 1 column 1", "1e999 is not finite"),
        (b"[-1.5e400]", "line 1 column 2", "-1.5e400 is not finite"),
        (b"[" + b"9" * 4301 + b"]", "line 1 column 2", "an integer of 4301 digits is too long"),
        (b"[" * 201 + b"]" * 201, "line 1 column 201", "is nested more than 200 levels deep"),
        (b'{"a":' * 201 + b"1" + b"}" * 201, "line 1 column 1001", "is nested more than 200"),
        (b"[" * 200_000, "line 1 column 201", "is nested more than 200 levels deep"),
        (b'{"a":\n "\xff"}', "line 2 byte 3", "byte 0xff is not UTF-8"),
        (b'{"a": 1,}', "line 1 column", "is not JSON"),
        (b'{"a": 1}\n{}', "line 2 column 1", "is not JSON: Extra data"),
        (b"", "line 1 column 1", "is not JSON"),
        (b'"\x01"', "line 1 column 2", "is not JSON: Invalid control character"),
    ],
)
def test_json_that_readers_would_not_read_alike_is_refused_with_its_place(
    document: bytes, place: str, problem: str
) -> None:
    """A score must not depend on which parser read it, and its author has to find the spot."""
    with pytest.raises(DocumentError) as caught:
        loads(document, where="result.json")

    assert caught.value.where.startswith(f"result.json: {place}")
    assert caught.value.problem.startswith(problem)


def test_a_byte_order_mark_is_named() -> None:
    """An invisible character at the start is the last thing that one looks for."""
    with pytest.raises(DocumentError, match=r"a\.json: starts with a byte order mark"):
        loads(b"\xef\xbb\xbf{}", where="a.json")


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b"9223372036854775808", 2**63),
        (b"9" * 4300, 10**4300 - 1),
        (b"-" + b"9" * 4300, 1 - 10**4300),
        (b"1.7976931348623157e308", 1.7976931348623157e308),
        (rb'"NaN \"a\": 1e999 \ud835"', 'NaN "a": 1e999 \ud835'),
        (b'[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
    ],
)
def test_what_is_merely_unusual_is_kept_exactly(document: bytes, value: object) -> None:
    """Strictness must not eat into what JSON allows: large integers stay whole."""
    assert loads(document, where="a.json") == value


def test_two_hundred_levels_are_still_read() -> None:
    """The limit is the one that the message names."""
    assert loads("[" * 200 + "]" * 200, where="a.json") == json.loads("[" * 200 + "]" * 200)


@given(json_values)
def test_what_is_written_is_read_back_the_same(value: object) -> None:
    """A reader of ours must never refuse a document of ours."""
    assert loads(dumps(value), where="a.json") == value  # type: ignore[arg-type]


def test_a_lone_surrogate_costs_one_character_and_not_the_file() -> None:
    """A single broken message of an agent must not stop a result from being stored."""
    assert dumps({"b\udcff": "x\ud835", "a": "é\uffff"}) == (
        '{\n  "b\ufffd": "x\ufffd",\n  "a": "é\uffff"\n}\n'.encode()
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_an_unknown_number_is_never_written(number: float) -> None:
    """Browsers and strict parsers refuse NaN, so it has to be null with a reason."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"rate": number})


def test_a_document_is_read_as_its_model(tmp_path: Path) -> None:
    """Lists become the tuples that frozen models hold."""
    path = tmp_path / "note.json"
    path.write_bytes(b'{"schema_version": "1.7", "count": 3, "words": ["a"]}')

    assert read_model(path, Note) == Note(schema_version="1.7", count=3, words=("a",))


@pytest.mark.parametrize(
    ("document", "where", "problem"),
    [
        (b'{"schema_version": "1.0", "count": "3"}', "count", "found '3'"),
        (b'{"schema_version": "1.0", "count": true}', "count", "found True"),
        (b'{"schema_version": "1.0", "count": 3.5}', "count", "found 3.5"),
        (b'{"schema_version": "1.0", "count": 1, "words": [1]}', "words.0", "found 1"),
        (b'{"schema_version": "1.0", "count": 1, "cuont": 2}', "cuont", "found 2"),
        (b'{"schema_version": "1.0"}', "count", "Field required"),
        (b'{"count": "x", "words": 1}', "schema_version", "(2 more keys are wrong)"),
        (b"[]", "the document", "found []"),
        (b'{"schema_version": "2.0", "new": 1}', "schema_version", "'2.0', not 1.x"),
        (b'{"schema_version": "1.0", "count": 1, "count": 2}', "line 1", '"count" is there twice'),
    ],
)
def test_a_document_that_does_not_fit_is_told_by_file_and_key(
    tmp_path: Path, document: bytes, where: str, problem: str
) -> None:
    """Someone has to mend the file, so the first wrong key is named with what stands there."""
    path = tmp_path / "note.json"
    path.write_bytes(document)

    with pytest.raises(DocumentError) as caught:
        read_model(path, Note)

    assert caught.value.where.startswith(f"{path}: {where}")
    assert problem in caught.value.problem
    assert caught.value.hint


def test_a_key_too_much_is_told_alike_of_a_document_and_of_a_part(tmp_path: Path) -> None:
    """Pydantic words it in two ways, and a reader would look for the difference."""
    problems = []
    for text in (
        '{"schema_version": "1.0", "count": 3, "size": 1}',
        '{"schema_version": "1.0", "count": 3, "part": {"size": 1}}',
    ):
        path = tmp_path / "note.json"
        path.write_text(text, "utf-8")
        with pytest.raises(DocumentError) as raised:
            read_model(path, Note)
        problems.append(raised.value.problem)

    assert problems == ["Extra inputs are not permitted, found 1"] * 2


def test_a_missing_document_is_told_as_one(tmp_path: Path) -> None:
    """A result that is gone is a fact about results, not a traceback."""
    with pytest.raises(DocumentError, match="cannot be read: No such file"):
        read_model(tmp_path / "gone.json", Note)


def test_a_document_cut_anywhere_is_refused(tmp_path: Path) -> None:
    """A crash while another tool copies results leaves a prefix, which must not count."""
    path = tmp_path / "note.json"
    whole = dumps({"schema_version": "1.0", "count": 12, "words": ["é"]}).rstrip(b"\n")

    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DocumentError):
            read_model(path, Note)


class Free(Model):
    """A document that holds any JSON."""

    schema_version: str = "1.0"
    value: JsonValue


@given(value=json_values)
def test_the_short_way_of_writing_says_what_the_long_way_says(value: JsonValue) -> None:
    """The two differ in speed alone, and in how some very small numbers are spelt."""
    document = Free(value=value)

    written = document_bytes(document)

    assert loads(written, where="short") == loads(dumps(document.to_json()), where="long")


def test_a_document_with_a_lone_surrogate_is_written_all_the_same() -> None:
    """The short way knows no remedy for it."""
    written = document_bytes(Free(value="x\ud835"))

    assert written == '{\n  "schema_version": "1.0",\n  "value": "x\ufffd"\n}\n'.encode()


@given(value=json_values)
def test_the_short_way_of_reading_gives_what_the_long_way_gives(
    tmp_path_factory: pytest.TempPathFactory, value: JsonValue
) -> None:
    """A document as this package writes it is read in half the time, and not otherwise."""
    path = tmp_path_factory.getbasetemp() / "free.json"
    data = dumps(Free(value=value).to_json())
    path.write_bytes(data)
    written = read_model(path, Free)
    path.write_bytes(json.dumps(json.loads(data)).encode())

    assert written == read_model(path, Free)
    assert written.to_json() == json.loads(data)


@pytest.mark.parametrize(
    ("found", "put", "problem"),
    [
        ('"a": 1', '"a": 1,\n    "a": 1', 'key "a" is there twice'),
        ('"a": 1', '"a": NaN', "NaN is not a JSON number"),
        ('"a": 1', '"a": 1e999', "is not finite"),
        ('"a": 1', f'"a": {"[" * 201 + "]" * 201}', "levels deep"),
        ('"1.0"', '"2.0"', "has schema version '2.0'"),
    ],
)
def test_what_has_no_single_meaning_is_refused_in_the_layout_of_this_package_too(
    tmp_path: Path, found: str, put: str, problem: str
) -> None:
    """The short way is for documents that are beyond doubt."""
    path = tmp_path / "free.json"
    text = dumps(Free(value={"a": 1}).to_json()).decode()
    path.write_text(text.replace(found, put), "utf-8")

    with pytest.raises(DocumentError, match=re.escape(problem)):
        read_model(path, Free)
