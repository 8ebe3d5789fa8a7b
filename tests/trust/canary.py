"""A key that is none, every way to spell it, and a search for it in all that a run leaves."""

from __future__ import annotations

import base64
import bz2
import codecs
import gzip
import html
import json
import os
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "CANARY_API_KEY"
WORD = "osprey7f3a"
"""Stands in the middle of the key, so that a piece of it is noticed too."""
KEY = f"test-key-not-real/\"é'\\+%&<{WORD}>"
"""Holds what JSON, URLs, HTML, shells and Python escape."""
_DATA = KEY.encode()


def _wrapped(width: int, end: str) -> str:
    text = base64.b64encode(_DATA).decode()
    return end.join(text[at : at + width] for at in range(0, len(text), width))


STRUCK = {
    "plain": KEY,
    "JSON": json.dumps(KEY),
    "JSON, not ASCII": json.dumps(KEY, ensure_ascii=False),
    "JSON in JSON": json.dumps(json.dumps(KEY)),
    "JSON with escaped slashes": json.dumps(KEY).replace("/", "\\/"),
    "JSON, all escaped": "".join(f"\\u{ord(character):04x}" for character in KEY),
    "base64": base64.b64encode(_DATA).decode(),
    "base64 after one byte": base64.b64encode(b"x" + _DATA + b"y").decode(),
    "base64 after two bytes": base64.b64encode(b"xy" + _DATA).decode(),
    "base64 for URLs": base64.urlsafe_b64encode(_DATA).decode(),
    "base64, wrapped": _wrapped(20, "\n"),
    "base64, wrapped as in MIME": _wrapped(20, "\r\n"),
    "base64 in a URL": urllib.parse.quote(base64.b64encode(_DATA), safe=""),
    "hexadecimal": _DATA.hex(),
    "hexadecimal, upper case": _DATA.hex().upper(),
    "URL": urllib.parse.quote(KEY),
    "URL, all escaped": "".join(f"%{byte:02X}" for byte in _DATA),
    "HTML": html.escape(KEY),
    "HTML, all escaped": "".join(f"&#{ord(character)};" for character in KEY),
    "Python": repr(KEY),
    "Python, bytes": repr(_DATA),
}
"""What is struck out wherever it stands: what programs make of a text unasked."""

NOT_STRUCK = {
    "reversed": KEY[::-1].encode(),
    "ROT13": codecs.encode(KEY, "rot13").encode(),
    "in two lines": f"{KEY[:20]}\n{KEY[20:]}".encode(),
    "in two strings": json.dumps([KEY[:20], KEY[20:]]).encode(),
    "spaced out": " ".join(KEY).encode(),
    "hexadecimal with spaces": _DATA.hex(" ").encode(),
    "base32": base64.b32encode(_DATA),
    "base64 of base64": base64.b64encode(base64.b64encode(_DATA)),
    "compressed": gzip.compress(_DATA, mtime=0),
    "compressed with bzip2": bz2.compress(_DATA),
    "UTF-16": KEY.encode("utf-16-le"),
    "encrypted": bytes(byte ^ 0x5A for byte in _DATA),
}
"""What is not: whoever has the key can spell it in a way that nobody looks for."""


def _cores(spelling: str) -> bytes:
    """Return what is left of a spelling by which it is known, whatever surrounds it."""
    return spelling.strip("\"'").removeprefix("b'").encode()[5:-5]


def found_in(data: bytes) -> list[str]:
    """Return the spellings of the key that some bytes hold; a piece of it counts as `plain`."""
    names = [name for name, spelling in STRUCK.items() if _cores(spelling) in data]
    return [*names, *(["plain"] if WORD.encode() in data and "plain" not in names else [])]


def leaks(*roots: Path) -> list[str]:
    """Return each file or name below some folders that holds the key, with how it is spelled."""
    found = []
    for root in roots:
        for path, data in _all_bytes(root):
            found += [f"{path}: {spelling}" for spelling in found_in(data)]
    return found


def _all_bytes(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every name, link and content below a folder, whatever its mode."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            yield Path(folder), os.fsencode(name)
            if path.is_symlink():
                yield path, os.fsencode(path.readlink())
            elif path.is_file():
                yield path, path.read_bytes()
