"""Exit statuses of the console program."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What a command tells whoever called it; 4 is what pytest gives for a wrong call as well."""

    DONE = 0
    """It did what was asked, or the answer is yes."""
    NO = 1
    """The answer is no: a regression, or a document that disagrees with its rows. A command that
    answers nothing was refused."""
    INCOMPARABLE = 2
    """There is no answer: evaluations that were not made in the same way."""
    REFUSED = 4
    """It was wrongly called, or a file cannot be read or written."""
    UNREAD = 141
    """Whoever read its output went away before the end: what a shell tells of SIGPIPE."""
