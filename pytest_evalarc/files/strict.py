"""Strict JSON: one meaning for every reader, or a sentence that says where it has none."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from pytest_evalarc.errors import DocumentError
from pytest_evalarc.files.text import in_line, without_surrogates
from pytest_evalarc.model.plain import SCHEMA_VERSION

if TYPE_CHECKING:
    from pydantic import JsonValue, ValidationError

    from pytest_evalarc.model.base import Model

MAX_DEPTH = 200
MAX_DIGITS = 4300
_RESTORE = "restore the file, or move it away"
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[\[\]{}:]|NaN|-?Infinity|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL
)

_MESSAGES = {"unexpected_keyword_argument": "Extra inputs are not permitted"}
"""Pydantic says otherwise of a dataclass what a reader need not tell from the same of a model."""

M = TypeVar("M", bound="Model")


class _Refused(Exception):  # noqa: N818 - it never leaves this module.
    """JSON that Python would read and other readers would not, or not alike."""


class _Fault(NamedTuple):
    offset: int
    problem: str


def loads(data: bytes | str, *, where: str) -> JsonValue:
    """Return the value of a JSON document that every reader understands alike.

    Args:
        data: One document; bytes must be UTF-8 without a byte order mark.
        where: What a message calls this document, as its path.

    Raises:
        DocumentError: It is not JSON, or it holds a key twice in one object, NaN, an infinity,
            a number beyond the range of a double, an integer of more than 4300 digits or more
            than 200 levels. The message names line and column.
    """
    text = data if isinstance(data, str) else _decoded(data, where)
    if text.startswith("\ufeff"):
        raise DocumentError(where, "starts with a byte order mark", "save it as plain UTF-8")
    try:
        value = _DECODER.decode(text)
        if _may_be_deep(text):
            _check_depth(value)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise DocumentError(f"{where}: {place}", f"is not JSON: {error.msg}", _RESTORE) from error
    except (_Refused, RecursionError) as error:
        offset, problem = _first_fault(text)
        raise DocumentError(f"{where}: {_place(text, offset)}", problem, _RESTORE) from error
    return cast("JsonValue", value)


def dumps(data: JsonValue) -> bytes:
    """Return the value as indented UTF-8 JSON with a newline at its end.

    Keys keep their order; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD.

    Raises:
        ValueError: A number is NaN or infinite: an unknown one is null, with a reason beside it.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def document_bytes(document: Model) -> bytes:
    """Return a document as it is written: the JSON that `dumps` gives, several times as fast."""
    try:
        return document.model_dump_json(indent=2, by_alias=True).encode() + b"\n"
    except ValueError:
        # A lone surrogate, for which only the slow way has a remedy.
        return dumps(document.to_json())


def read_model(path: Path, model: type[M]) -> M:
    """Return a document as the model that describes it.

    Raises:
        DocumentError: The file is missing, is not strict JSON, has another major schema
            version, or does not fit the model; the message names the first key that is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise DocumentError(str(path), problem, _RESTORE) from error
    found = _as_written(data, model, where=str(path))
    return as_model(data, model, where=str(path)) if found is None else found


def as_model(data: bytes, model: type[M], *, where: str) -> M:
    """Return the bytes of a document as the model that describes it.

    Raises:
        DocumentError: As for `read_model`.
    """
    from pydantic import ValidationError

    value = loads(data, where=where)
    if "schema_version" in model.model_fields and isinstance(value, dict):
        check_version(value, where=where)
    try:
        return model.model_validate_json(data, strict=True)
    except ValidationError as error:
        raise _misfit(where, error) from error


def check_version(document: Mapping[str, JsonValue], *, where: str) -> None:
    """Refuse a document whose schema version has another first number than ours.

    One without a version is left to its model.

    Raises:
        DocumentError: Names the version that was found.
    """
    _check_version(document.get("schema_version"), where=where)


def _as_written(data: bytes, model: type[M], *, where: str) -> M | None:
    """Return a document that holds byte for byte what this package writes; None for any other.

    What is written again as it was read has no second meaning, and this takes half as long as
    looking for one.
    """
    try:
        found = model.model_validate_json(data, strict=True)
        again = document_bytes(found)
    except (ValueError, RecursionError):
        return None
    if again != data:
        return None
    _check_version(getattr(found, "schema_version", None), where=where)
    return found


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise DocumentError(f"{where}: line {line} byte {column}", problem, _RESTORE) from error


def _may_be_deep(text: str) -> bool:
    """Whether there are brackets enough for it; most documents have fewer."""
    return text.count("{") + text.count("[") > MAX_DEPTH


def _check_depth(value: object) -> None:
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            child
            for node in level
            for child in _containers(node.values() if isinstance(node, dict) else node)
        ]
    if level:
        raise _Refused


def _containers(values: Iterable[object]) -> list[dict[str, object] | list[object]]:
    return [value for value in values if isinstance(value, (dict, list))]


def _number_fault(token: str) -> str:
    if token.lstrip("-").isdigit():
        digits = len(token.lstrip("-"))
        return f"an integer of {digits} digits is too long" if digits > MAX_DIGITS else ""
    return "" if math.isfinite(float(token)) else f"{in_line(token, limit=40)} is not finite"


def _integer(token: str) -> int:
    if len(token) > MAX_DIGITS and _number_fault(token):
        raise _Refused
    return int(token)


def _finite(token: str) -> float:
    value = float(token)
    if math.isinf(value):
        raise _Refused
    return value


def _constant(_token: str) -> NoReturn:
    raise _Refused


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Refused
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=_integer,
    parse_float=_finite,
    parse_constant=_constant,
)


def _first_fault(text: str) -> _Fault:
    """Find what the decoder refused; only called when it did, so all before it is well-formed."""
    keys: list[set[str]] = []
    last = _Fault(0, "")
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "[{":
            keys.append(set())
            if len(keys) > MAX_DEPTH:
                return _Fault(token.start(), f"is nested more than {MAX_DEPTH} levels deep")
        elif word in "]}":
            keys.pop()
        elif word == ":":
            key = json.loads(last.problem, strict=False)
            if key in keys[-1]:
                return _Fault(last.offset, f"key {in_line(last.problem)} is there twice")
            keys[-1].add(key)
        elif word in ("NaN", "Infinity", "-Infinity"):
            return _Fault(token.start(), f"{word} is not a JSON number")
        elif not word.startswith('"') and (problem := _number_fault(word)):
            return _Fault(token.start(), problem)
        last = _Fault(token.start(), word)
    raise AssertionError("the decoder refused a document in which nothing is wrong")


def _place(text: str, offset: int) -> str:
    line = text.count("\n", 0, offset) + 1
    return f"line {line} column {offset - text.rfind(chr(10), 0, offset)}"


def _check_version(found: object, *, where: str) -> None:
    ours = SCHEMA_VERSION.partition(".")[0]
    if isinstance(found, str) and found.partition(".")[0] != ours:
        problem = f"has schema version {in_line(found, limit=40)!r}, not {ours}.x"
        raise DocumentError(f"{where}: schema_version", problem, "read it with that version")


def _misfit(where: str, error: ValidationError) -> DocumentError:
    first, *others = error.errors(include_url=False)
    key = ".".join(str(part) for part in first["loc"]) or "the document"
    found = in_line(repr(first["input"]), limit=120)
    more = f" ({len(others)} more keys are wrong)" if others else ""
    message = _MESSAGES.get(first["type"], first["msg"])
    problem = f"{message}, found {found}{more}"
    return DocumentError(f"{where}: {in_line(key, limit=200)}", problem, _RESTORE)
