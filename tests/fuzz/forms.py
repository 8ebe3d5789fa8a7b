"""What all fuzzing shares: how hard to try, what counts as a refusal, and how bytes get damaged.

Each test here is short in the ordinary suite, where the same examples come every time, and long
under `--hypothesis-profile=fuzz`, where they are new ones each time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pytest_evalarc.errors import EvalArcError, TaskProblems

CORPUS = Path(__file__).with_name("corpus")
"""Files that failed once, by what they are; those that are no files stand as examples at a test."""
IS_LONG = settings.get_current_profile_name() == "fuzz"
LONGER = 4
"""So many times the examples of the short form are tried in one round of the long one.

Few, so that even some minutes of it come around to every surface."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from((10**30, -(2**63), 2**64, 1e308, "\ud800", "\x00\x1b[31m", "\u202e")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
"""Any value that a foreign program may print as JSON."""


def fuzzed(examples: int = 40, **facts: Any) -> settings:
    """Return how hard a test tries.

    Args:
        examples: Of the short form.
        **facts: Further settings.
    """
    kept: dict[str, Any] = {
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        **facts,
    }
    if IS_LONG:
        return settings(max_examples=examples * LONGER, **kept)
    return settings(max_examples=examples, derandomize=True, database=None, **kept)


@contextmanager
def refusing(*kinds: type[EvalArcError]) -> Iterator[None]:
    """Let what the block refuses be one of these errors, told as it should be, and nothing else."""
    expected = kinds or (EvalArcError,)
    try:
        yield
    except expected as error:
        require_told(error)


def require_told(error: EvalArcError) -> None:
    """See that each problem is one line that any terminal can show, and names a place."""
    problems = error.problems if isinstance(error, TaskProblems) else (error,)
    assert problems
    for problem in problems:
        told = str(problem)
        assert problem.where.strip() and problem.problem.strip(), told
        assert not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in told), ascii(told)


def files_of(root: Path) -> dict[str, bytes]:
    """Return all files below a folder, by relative path."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@st.composite
def damaged(draw: Callable[..., Any], originals: Sequence[bytes]) -> bytes:
    """Return one of some files with bytes or lines of it lost, doubled, moved or changed."""
    data = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, 3))):
        data = draw(_DAMAGES)(draw, data)
    return data


def _cut(draw: Callable[..., Any], data: bytes) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def _overwritten(draw: Callable[..., Any], data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    length = draw(st.integers(0, 4))
    return data[:at] + draw(st.binary(max_size=4) | _NASTY) + data[at + length :]


def _lines_moved(draw: Callable[..., Any], data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at, to = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    match draw(st.sampled_from(("drop", "double", "swap", "join"))):
        case "drop":
            del lines[at]
        case "double":
            lines.insert(to, lines[at])
        case "swap":
            lines[at], lines[to] = lines[to], lines[at]
        case "join":
            lines[at] = lines[at].rstrip(b"\n")
    return b"".join(lines)


def _line_ends_changed(draw: Callable[..., Any], data: bytes) -> bytes:
    return data.replace(b"\n", draw(st.sampled_from((b"\r\n", b"\r", b"\n\n", b"\x0b", b" "))))


_NASTY = st.sampled_from(
    (
        *(b"\xef\xbb\xbf", b"\x00", b"\xff", b"\\ud800", b"\\u0000", b"\x1b[2J", b"\xe2\x80\xae"),
        *(b"NaN", b"1e999", b"9" * 400, b"9" * 5000, b"[" * 300, b'{"a":' * 2000, b'"""', b"'''"),
        *(b"{}", b"null", b"-1", b"true", b'""', b"[]", b"../../x", b"/", b"\r"),
    )
)
_DAMAGES = st.sampled_from((_cut, _overwritten, _overwritten, _lines_moved, _line_ends_changed))


@st.composite
def altered(draw: Callable[..., Any], value: Any) -> Any:
    """Return JSON or TOML data with some of its values replaced, removed or added."""
    for _ in range(draw(st.integers(1, 3))):
        value = _altered(draw, value, draw(st.integers(1, 6)))
    return value


def _altered(draw: Callable[..., Any], value: Any, levels: int) -> Any:
    if isinstance(value, dict) and value and levels:
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(("below", "below", "below", "drop", "add"))):
            case "below":
                return {**value, key: _altered(draw, value[key], levels - 1)}
            case "drop":
                return {name: each for name, each in value.items() if name != key}
            case _:
                return {**value, draw(st.text(max_size=6)): draw(JSON)}
    if isinstance(value, list) and value and levels:
        at = draw(st.integers(0, len(value) - 1))
        if draw(st.integers(0, 4)) == 0:
            return [*value, value[at]]
        return [*value[:at], _altered(draw, value[at], levels - 1), *value[at + 1 :]]
    return draw(JSON)
