"""Commands of `codex` that do nothing but print files, told from all others.

What cannot be told for certain is no read: a load of a skill is then unknown, and never wrong. Two
things are not told at all. The folder that a command runs in can be any, so a relative path says
where a file lies only as far as it is spelled. And of several programs in one command only the
last one's failure is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from posixpath import basename, join
from typing import NamedTuple

SKILL_FILE = "SKILL.md"
SKILL_FOLDER = ".agents/skills"

_LONGEST = 256 * 1024
"""Characters of a command that are looked at; the system takes no script that is half as long."""
_SHELLS = frozenset({"bash", "sh", "zsh"})
_SHELL_OPTIONS = frozenset({"-c", "-lc"})
_PLAIN = re.compile(r"(?:[\w \t./,:@%+='\"-]|&&)+")
"""Nothing that a shell would expand, redirect, join or send to the background."""
_PROGRAM = re.compile(r"(?:(?:/usr)?/bin/)?(\w+)")
_SPELLED = re.compile(rf"(?:\./)?{re.escape(SKILL_FOLDER)}/[^/]+/{re.escape(SKILL_FILE)}")
_FROM_THE_FIRST_LINE = re.compile(r"1(?:,[1-9]\d*)?p|p")
_FROM_ANY_LINE = re.compile(r"[1-9]\d*(?:,[1-9]\d*)?p")
_COUNT = r"[1-9]\d*"
_SOME = re.compile(rf"-(?:[nc]?{_COUNT})|--(?:lines|bytes)={_COUNT}")

_WITHOUT_FOLDER = re.compile(
    rf"(?<![\w./~$*?}}\])-])(?:\.{{1,2}}/)*{re.escape(SKILL_FILE)}(?![\w./-])"
)
"""The file of a skill as it is called from the folder that it lies in, or from one below."""
_SEARCHES_BY_NAME = re.compile(r"(?:-i?name|-g|--i?glob|--include)[= ]['\"]?$")
_GOES = re.compile(
    r"(?:^|[;&|({\n])\s*(?:cd|pushd)\s+['\"]?(?:[\w.+~-]*/)*\w[\w.+-]*/?['\"]?(?=[\s;&|)}]|$)"
)
"""A step into a folder that is called by its name."""
_INTERPRETER = re.compile(r"(?:\S*/)?(?:(?:ba|da|k|z)?sh|i?python[\d.]*|node|ruby|perl)(?: -\S+)*")
_FRONT_MATTER = re.compile(r"^---[ \t]*\r?\n(?:name|description):", re.MULTILINE)
"""How the file of a skill begins."""


class Prints(NamedTuple):
    """The files that a program prints."""

    files: list[str]
    from_first: bool = True
    """Whether something of every file that is not empty is printed."""


@lru_cache(maxsize=256)
def script_of(command: str) -> str:
    """Return what a shell is told to do; of what is not told to a shell, the command itself.

    Args:
        command: Shell, option and script, as the client quotes them.
    """
    try:
        words = shlex.split(command) if len(command) <= _LONGEST else []
    except ValueError:
        return command
    match words:
        case [shell, option, script] if basename(shell) in _SHELLS and option in _SHELL_OPTIONS:
            return script
        case _:
            return command


def printed_files(command: str) -> tuple[str, ...]:
    """Return the files that a command prints, if it does nothing else; none for any other.

    Args:
        command: Shell, option and script, as the client quotes them.

    Returns:
        Paths as they are spelled, with the folder before them that the command goes to first.
    """
    script = script_of(command)
    if script == command or not _PLAIN.fullmatch(script):
        return ()
    steps = _steps(script)
    folder = ""
    if len(steps) > 1 and len(steps[0]) == 2 and steps[0][0] == "cd":
        folder, steps = steps[0][1], steps[1:]
    prints = [_printed_by(words) for words in steps]
    found = [each for each in prints if each is not None]
    files = tuple(join(folder, path) for each in found for path in each.files)
    is_certain = len(files) == 1 or all(each.from_first for each in found)
    are_told = all(_is_told(path) for path in files)
    return files if len(found) == len(prints) and is_certain and are_told else ()


def hides_a_skill(command: str, output: str) -> bool:
    """Whether a command may have printed the file of a skill so that nobody can say of which.

    Either it names the file without a folder, and does not say where it goes; a search for files
    of that name prints none. Or it does not name it at all, and printed how such a file begins.

    Args:
        command: Shell, option and script, as the client quotes them.
        output: What the command printed.
    """
    script = script_of(command)
    if SKILL_FILE not in script:
        return _FRONT_MATTER.search(output) is not None
    return not _GOES.search(script) and any(
        not _SEARCHES_BY_NAME.search(script[: named.start()])
        for named in _WITHOUT_FOLDER.finditer(script)
    )


def takes_commands(command: str) -> bool:
    """Whether a command starts a shell or an interpreter that waits for what to do.

    What it is then told is no command of its own for the client, so it is not seen.

    Args:
        command: Shell, option and script, as the client quotes them.
    """
    return _INTERPRETER.fullmatch(script_of(command).strip()) is not None


def _steps(script: str) -> list[list[str]]:
    """Return the words of each program of a plain script; none when it is not well-formed."""
    steps: list[list[str]] = [[]]
    lexer = shlex.shlex(script, posix=True, punctuation_chars="&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        for word in lexer:
            if word == "&&":
                steps.append([])
            else:
                steps[-1].append(word)
    except ValueError:
        return [[]]
    return steps


def _printed_by(words: list[str]) -> Prints | None:
    """Return what one program prints; None when it is none that only prints files."""
    program = _PROGRAM.fullmatch(words[0]) if words else None
    printer = _PRINTERS.get(program[1]) if program is not None else None
    found = printer(words[1:]) if printer is not None else None
    return found if found is not None and found.files and "-" not in found.files else None


def _is_told(path: str) -> bool:
    """Whether the spelling of a path says which file it is.

    A relative one may start anywhere. That matters for the files of skills alone: one of them is
    known by the folder of all skills before it.
    """
    if not path or path.endswith("/") or ".." in path.split("/"):
        return False
    if path.startswith("/") or basename(path) != SKILL_FILE:
        return True
    return _SPELLED.fullmatch(path) is not None


def _with_options(known: re.Pattern[str]) -> Callable[[list[str]], Prints | None]:
    """Return what reads the words after a program whose options are all of a form."""

    def read(words: list[str]) -> Prints | None:
        options, files = _split(words)
        return Prints(files) if all(known.fullmatch(option) for option in options) else None

    return read


def _first_or_last(words: list[str]) -> Prints | None:
    """Read the words after `head` or `tail`: some lines or bytes of each file."""
    if len(words) > 2 and words[0] in ("-n", "-c"):
        words = [words[0] + words[1], *words[2:]]
    options, files = _split(words)
    return Prints(files) if all(_SOME.fullmatch(option) for option in options) else None


def _numbered(words: list[str]) -> Prints | None:
    if words[:2] == ["-b", "a"]:
        words = ["-ba", *words[2:]]
    options, files = _split(words)
    return Prints(files) if options in ([], ["-ba"]) else None


def _lines(words: list[str]) -> Prints | None:
    """Read the words after `sed`: lines of files, which may have fewer."""
    match words:
        case ["-n", lines, *files] if _FROM_ANY_LINE.fullmatch(lines) or lines == "p":
            from_first = _FROM_THE_FIRST_LINE.fullmatch(lines) is not None
            options, named = _split(files)
            return None if options else Prints(named, from_first)
        case _:
            return None


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return options and files; an option after a file is taken for what it is to most programs."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word[:1] in ("-", "+") and word != "-"]
    files = [word for word in words[:end] if word not in options]
    return options, [*files, *words[end + 1 :]]


_PRINTERS: Mapping[str, Callable[[list[str]], Prints | None]] = {
    "cat": _with_options(re.compile(r"-[AbeEnstTuv]+|--number|--show-all")),
    "head": _first_or_last,
    "tail": _first_or_last,
    "nl": _numbered,
    "less": _with_options(re.compile(r"-[FNRSX]+")),
    "more": _with_options(re.compile(r"(?!)")),
    "sed": _lines,
}
"""Programs that print files; whatever option of theirs is not known here makes it no read."""
