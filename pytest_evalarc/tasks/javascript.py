"""JavaScript split into tokens, far enough to see which tests a file makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class _Token(NamedTuple):
    text: str
    line: int


class CallOfTest(NamedTuple):
    """A call that makes a test, or a group of them."""

    word: str
    method: str
    """As `skip` in `test.skip(…)`; empty when the word itself is called."""
    line: int
    depth: int
    """How many brackets it stands in; 0 at the top level of the file."""

    @property
    def is_suite(self) -> bool:
        """Whether it groups tests."""
        return self.word in _SUITES


class NotJavaScriptError(ValueError):
    """A text whose literals or brackets do not end."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


_TESTS = ("test", "it")
_SUITES = ("describe", "suite")
_METHODS = ("skip", "todo", "only")
_OPENS = ("(", "[", "{", "${")
_CLOSES = {")": ("(",), "]": ("[",), "}": ("{", "${")}

_PIECE = re.compile(
    r"""
      (?P<space> \s+ | //[^\n]* | \#![^\n]* | /\*.*?\*/ )
    | (?P<comment> /\* )
    | (?P<literal> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<string> ["'] )
    | (?P<word> [\w$\#]+ )
    | (?P<mark> \?\. | . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Kinds of pieces; `comment` and `string` are the beginnings of what does not end."""
_REGEX = re.compile(
    r"(?P<literal> / (?![*/]) (?: [^\\/\[\n] | \\. | \[ (?:[^\]\\\n]|\\.)* \] )+ / \w* )",
    re.VERBOSE,
)
_TEMPLATE = re.compile(r"[`}](?P<template>(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{))", re.DOTALL)
"""From a backtick, or from the end of an expression inside, to the next of either."""
_BEFORE_REGEX = frozenset(
    {
        *("return", "typeof", "case", "in", "of", "void", "delete", "instanceof", "new", "throw"),
        *("await", "yield", "else", "do"),
    }
)
_EXPRESSION = "${"


def calls_of_tests(source: str) -> Iterator[CallOfTest]:
    """Yield the calls of node:test's functions by their own names, in the order of the text.

    Raises:
        NotJavaScriptError: A literal or a bracket does not end.
    """
    tokens = list(_tokens(source))
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.text in _OPENS) - (token.text in _CLOSES)
        if token.text not in _TESTS + _SUITES:
            continue
        before = tokens[index - 1].text if index else ""
        after = [later.text for later in tokens[index + 1 : index + 4]]
        method = after[1] if after[::2] == [".", "("] and after[1] in _METHODS else ""
        is_call = after[:1] == ["("] or method
        if is_call and before not in (".", "?.", "function"):
            yield CallOfTest(token.text, method, token.line, depth)


def _tokens(source: str) -> Iterator[_Token]:
    """Yield words and marks; comments and the insides of literals are no tokens."""
    at, line, before = 0, 1, ""
    opened: list[str] = []
    while at < len(source):
        piece = _piece(source, at, before=before, inside=opened[-1] if opened else "")
        text, kind = piece.group(), piece.lastgroup
        if kind in ("comment", "string"):
            raise NotJavaScriptError(line, f"a {kind} does not end")
        marks = _marks(text) if kind == "template" else [text] if kind == "mark" else []
        for mark in marks:
            _nest(opened, mark, line)
            yield _Token(mark, line)
        if kind == "word":
            yield _Token(text, line)
        if kind != "space":
            before = text
        at, line = piece.end(), line + text.count("\n")
    if opened:
        raise NotJavaScriptError(line, f"`{opened[-1]}` is not closed")


def _piece(source: str, at: int, *, before: str, inside: str) -> re.Match[str]:
    """Return the next piece, which can depend on what was there before it and around it."""
    if source[at] == "`" or (source[at] == "}" and inside == _EXPRESSION):
        pattern, what = _TEMPLATE, "template"
    else:
        is_regex = source[at] == "/" and _may_start_regex(before)
        pattern, what = _REGEX if is_regex else _PIECE, "text"
    found = pattern.match(source, at) or (_PIECE.match(source, at) if what == "text" else None)
    if found is None:
        raise NotJavaScriptError(source.count("\n", 0, at) + 1, f"a {what} does not end")
    return found


def _marks(template: str) -> list[str]:
    """Return what a piece of a template closes and opens."""
    closes = ["}"] if template.startswith("}") else []
    return [*closes, _EXPRESSION] if template.endswith(_EXPRESSION) else closes


def _nest(opened: list[str], mark: str, line: int) -> None:
    if mark in _OPENS:
        opened.append(mark)
    elif mark in _CLOSES and (not opened or opened.pop() not in _CLOSES[mark]):
        raise NotJavaScriptError(line, f"`{mark}` closes nothing")


def _may_start_regex(before: str) -> bool:
    """Whether a slash after this piece starts a regular expression, and is no division."""
    is_value = before[-1:].isalnum() or before[-1:] in tuple("_$)]`'\"/")
    return before in _BEFORE_REGEX or not is_value
