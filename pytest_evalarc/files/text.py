"""Foreign text made safe for every place where it is shown."""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
"""Controls but newline and tab, marks that turn the direction of writing, and no characters."""

_LAYOUT = re.compile("[\t\n\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str | bytes, *, limit: int = 2000) -> str:
    r"""Return foreign text that terminals, JSON and XML 1.0 show as what it is.

    Args:
        text: Anything that a client, a submission or a tool said; bytes are read as UTF-8.
        limit: Characters of the text that are kept, head and tail in equal parts; at least 2.

    Returns:
        The text with U+FFFD for what is no character, `\xNN` for a control, and a marker with
        the number of characters dropped in its middle when it was longer than the limit.
    """
    whole = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    dropped = len(whole) - limit
    if dropped <= 0:
        return _shown(whole)
    tail = limit // 2
    head = limit - tail
    return f"{_shown(whole[:head])}[… {dropped} characters dropped …]{_shown(whole[-tail:])}"


def in_line(text: str, *, limit: int = 2000) -> str:
    """Return foreign text as a part of a sentence: printable, and without an end of a line.

    A name or a key may hold anything, and a message is one line all the same.

    Args:
        text: What a file or a sender gave as a key, a path or a name.
        limit: As for `printable`.
    """
    return _LAYOUT.sub(_escape, printable(text, limit=limit))


def without_surrogates(text: str) -> str:
    """Return the text with U+FFFD for every lone surrogate, which UTF-8 cannot hold."""
    return _SURROGATE.sub("\ufffd", text)


def _shown(text: str) -> str:
    return _UNSAFE.sub(_escape, without_surrogates(text))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
