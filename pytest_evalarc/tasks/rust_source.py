"""Rust split into tokens, far enough to see which tests a file makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class _Token(NamedTuple):
    text: str
    line: int
    at: int
    """Where it starts in the source."""
    depth: int
    """How many brackets it stands in, its own left out."""


class Attribute(NamedTuple):
    """An outer attribute, as `#[test]`."""

    path: str
    """As `tokio::test`, without arguments."""
    line: int
    start: int
    end: int
    """Its place in the source, from the `#` to behind the bracket."""


class Test(NamedTuple):
    """Something that an attribute makes a test."""

    attribute: Attribute
    others: tuple[str, ...]
    """Paths of the further attributes of the same item."""
    name: str | None
    """Of the function; None when it is not a plain `fn name`."""
    depth: int
    """How many brackets it stands in; 0 at the top level of the file."""


class NotRustError(ValueError):
    """A text whose literals or brackets do not end."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_CLOSES = frozenset(_BRACKETS.values())
_COMMENT_MARK = re.compile(r"/\*|\*/")

_PIECE = re.compile(
    r"""
      (?P<space> \s+ | //[^\n]* )
    | (?P<comment> /\* )
    | (?P<literal> [bc]?r(?P<hashes>\#*)"(?s:.*?)"(?P=hashes)
                 | [bc]?"(?:[^"\\]|\\(?s:.))*"
                 | b?'(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[^'}\n]*\}|.))'
                 | '\w+ )
    | (?P<string> [bc]?r?\#*" )
    | (?P<character> ' )
    | (?P<word> r\#\w+ | \w+ )
    | (?P<mark> . )
    """,
    re.VERBOSE,
)
"""Kinds of pieces; `comment`, `string` and `character` begin what is not over in one match. A
lifetime counts as a literal, for neither means anything here."""


def tests(source: str) -> Iterator[Test]:
    """Yield what attributes of the name `test` make, whatever their path, in the text's order.

    Raises:
        NotRustError: A literal, a comment or a bracket does not end.
    """
    tokens = tuple(_tokens(source))
    at = 0
    while at < len(tokens):
        depth = tokens[at].depth
        attributes: list[Attribute] = []
        while (attribute := _attribute(tokens, at)) is not None:
            attributes.append(attribute[0])
            at = attribute[1]
        made = [one for one in attributes if one.path.rpartition("::")[2] == "test"]
        for one in made:
            others = tuple(other.path for other in attributes if other is not one)
            yield Test(one, others, _function(tokens, at), depth)
        # What follows attributes is looked at as well: it can be the first bracket of an item.
        at += not attributes


def _attribute(tokens: Sequence[_Token], at: int) -> tuple[Attribute, int] | None:
    """Return the outer attribute at a place, and the place behind it."""
    if [token.text for token in tokens[at : at + 2]] != ["#", "["]:
        return None
    first, opening = tokens[at], tokens[at + 1]
    end = next(
        place
        for place in range(at + 2, len(tokens))
        if tokens[place].text == "]" and tokens[place].depth == opening.depth
    )
    inside = [token.text for token in tokens[at + 2 : end]]
    length = next((n for n, text in enumerate(inside) if text in ("(", "[", "{", "=")), None)
    path = "".join(inside[:length])
    return Attribute(path, first.line, first.at, tokens[end].at + 1), end + 1


def _function(tokens: Sequence[_Token], at: int) -> str | None:
    """Return the name of the plain function at a place, public or not."""
    words = [token.text for token in tokens[at : at + 8]]
    if words[:1] == ["pub"]:
        del words[0]
        if words[:1] == ["("]:
            del words[: words.index(")") + 1 if ")" in words else len(words)]
    return words[1] if words[:1] == ["fn"] and len(words) > 1 else None


def _tokens(source: str) -> Iterator[_Token]:
    """Yield words and marks; comments and literals are no tokens."""
    at, line = 0, 1
    opened: list[str] = []
    while at < len(source):
        piece = _PIECE.match(source, at)
        assert piece is not None  # The last alternative takes anything but a line's end: a space.
        kind, text, end = piece.lastgroup, piece.group(), piece.end()
        if kind == "comment":
            end = _end_of_comment(source, at, line)
        elif kind in ("string", "character"):
            raise NotRustError(line, f"a {kind} does not end")
        elif text in _CLOSES and (not opened or _BRACKETS[opened.pop()] != text):
            raise NotRustError(line, f"`{text}` closes nothing")
        if kind in ("word", "mark"):
            yield _Token(text, line, at, len(opened))
        if text in _BRACKETS:
            opened.append(text)
        line += source.count("\n", at, end)
        at = end
    if opened:
        raise NotRustError(line, f"`{opened[-1]}` is not closed")


def _end_of_comment(source: str, at: int, line: int) -> int:
    """Return where a block comment ends; unlike elsewhere, they nest."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(source, at):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise NotRustError(line, "a comment does not end")
