"""The text of shell commands, taken apart as far as that can be done without running it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias

Words: TypeAlias = tuple[str, ...]

MOST_CHARACTERS = 100_000
"""Of a command that is looked at: a document written by one command can be of any size."""
MOST_LEVELS = 4
"""How deep commands in commands are looked for."""

_SEPARATORS = frozenset(";&|()\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PATH = re.compile(r"(?:\A|(?<=[=:,@<>]))/(?!/)[^=:,<>]*")
"""An absolute path that begins a word, or follows what an option or a variable ends in."""
_QUOTED = re.compile(r"""["'](/(?!/)[^"'\s]*)["']""")
"""An absolute path in the text of a program that a word holds, as `open("/etc/passwd")`."""
_REDIRECTIONS = frozenset("<>&")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_STARTERS = frozenset(
    {
        *("builtin", "command", "do", "else", "env", "exec", "eval", "if", "nice", "nohup"),
        *("setsid", "stdbuf", "sudo", "then", "time", "timeout", "until", "while", "xargs", "!"),
        "{",
    }
)
"""Words that a further command follows, after options, assignments and numbers of their own."""
_MOVES = frozenset({"cd", "pushd", "popd"})


def simple_commands(text: str) -> tuple[Words, ...]:
    """Return the words of each simple command in a text, commands in quotes and `$(…)` too.

    What cannot be taken apart, as an open quote, is split at blanks. Nothing is expanded.
    """
    return tuple(_simple_commands(text[:MOST_CHARACTERS], MOST_LEVELS))


def called(commands: Iterable[Words], programs: Sequence[str]) -> Iterator[str]:
    """Yield each of the programs that a command calls, once.

    A program is known by its name wherever it lies; `cargo-x` is called by `cargo x` as well.
    """
    found = {name for words in commands for name in _programs(words)}
    yield from (program for program in dict.fromkeys(programs) if program in found)


def paths_in(commands: Sequence[Words]) -> Iterator[str]:
    """Yield each path that commands name, as they name it: absolute ones, and those with `..`.

    Once a command moves to another folder nobody knows where a relative path starts, so it is
    left out.
    """
    seen: dict[str, None] = {}
    moves = any(words[0] in _MOVES for words in commands if words)
    for words in commands:
        for word in words:
            found = _QUOTED.findall(word)
            # A command in quotes has its own words, which are looked at as such.
            if word.startswith("/") or not re.search(r"\s", word):
                found += _PATH.findall(word)
                if not moves and ".." in word.split("/"):
                    found.append(word)
            seen |= dict.fromkeys(found)
    yield from seen


def _simple_commands(text: str, levels: int) -> Iterator[Words]:
    for words in _split(text):
        yield words
        if levels:
            for inner in _inner_texts(words):
                yield from _simple_commands(inner, levels - 1)


def _split(text: str) -> Iterator[Words]:
    """Yield the words of a text between its separators."""
    words: list[str] = []
    for token in _tokens(text):
        if token and _SEPARATORS.issuperset(token):
            if words:
                yield tuple(words)
            words = []
        else:
            words.append(token)
    if words:
        yield tuple(words)


def _tokens(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()\n<>")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return re.findall(r"[;&|()\n]+|[^\s;&|()'\"`]+", text)


def _inner_texts(words: Words) -> Iterator[str]:
    """Yield the words of a command that are commands themselves."""
    shell = next((i for i, word in enumerate(words) if _name(word) in _SHELLS), None)
    for index, word in enumerate(words):
        is_script = shell is not None and index > shell and re.search(r"\s", word)
        if is_script or words[0] == "eval":
            yield word
            continue
        yield from re.findall(r"`([^`]+)`", word)
        # Quoted text keeps its blanks, and a shell still runs what stands in it like this.
        yield from re.findall(r"\$\(([^()]+)\)", word)


def _programs(words: Words) -> Iterator[str]:
    """Yield the name of the program that a simple command calls, and of its subcommand."""
    rest = _without_redirections(words)
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in _STARTERS):
        starter = rest.pop(0)
        if starter in _STARTERS:
            rest = _after_options(rest)
    if not rest:
        return
    name = _name(rest[0])
    yield name
    if name == "cargo":
        subcommand = next((word for word in rest[1:] if not word.startswith(("+", "-"))), None)
        if subcommand is not None:
            yield f"cargo-{subcommand}"


def _without_redirections(words: Words) -> list[str]:
    kept: list[str] = []
    places = iter(words)
    for word in places:
        if not _REDIRECTIONS.issuperset(word):
            kept.append(word)
            continue
        next(places, None)
        if kept and kept[-1].isdigit():
            kept.pop()
    return kept


def _after_options(words: list[str]) -> list[str]:
    """Return what follows the options and numbers that a starter takes."""
    index = 0
    while index < len(words) and re.match(r"-|[0-9]", words[index]):
        index += 1
    return words[index:]


def _name(word: str) -> str:
    return PurePosixPath(word).name
