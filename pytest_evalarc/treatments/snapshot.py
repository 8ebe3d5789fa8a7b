"""What decides what reaches a session, compared before and after it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping

from pytest_evalarc.clients.protocol import Watched
from pytest_evalarc.errors import EvalArcError
from pytest_evalarc.files.manifest import TreeLimits, read_manifest
from pytest_evalarc.files.strict import loads
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.treatments.left import kind_of, read_left

MOST_BYTES = 16 << 20
"""Of one configuration file: clients keep caches of their own beside their settings."""

SYMPOSIUM_CONFIG = Watched(file="home/.symposium/config.toml")
"""Symposium's own configuration, watched in every trial: none of a baseline's has any."""

ABSENT = "absent"
UNREADABLE = "unreadable"
_TREE = TreeLimits(bytes=MOST_BYTES, files=2000)


def snapshot(layout: RunLayout, watched: tuple[Watched, ...]) -> Mapping[str, str]:
    """Return what watched configuration says, as far as that can be compared.

    Whatever stands there is read bounded and without following a link, and never raises.

    Args:
        layout: The trial's folders.
        watched: What the client names; Symposium's own configuration is watched beside it.

    Returns:
        By `<file>` or `<file>: <key>`, the digest of the content, `absent` or `unreadable`. Of
        JSON and TOML, order and layout do not count; any other file, and a folder, is taken as
        it stands.
    """
    return {
        place: state
        for each in dict.fromkeys((*watched, SYMPOSIUM_CONFIG))
        for place, state in _states(layout, each)
    }


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return what became of watched configuration, each as a sentence, sorted.

    What cannot be read afterwards may have become anything, and so may what never could be.
    """
    places = sorted(before.keys() | after.keys())
    told = ((p, _told(before.get(p, ABSENT), after.get(p, ABSENT))) for p in places)
    return tuple(f"{place} {what}" for place, what in told if what)


def _told(before: str, after: str) -> str:
    if UNREADABLE in (before, after):
        return "cannot be read"
    if before == after:
        return ""
    if before == ABSENT:
        return "was added"
    return "was removed" if after == ABSENT else "was altered"


def _states(layout: RunLayout, watched: Watched) -> Iterator[tuple[str, str]]:
    if not watched.keys:
        yield watched.file, _guarded(lambda: _whole(layout, watched.file))
        return
    # One reading for all keys: each would see another file otherwise.
    found: dict[str, str] | None = None
    with contextlib.suppress(EvalArcError, ValueError, RecursionError):
        found = _by_key(layout, watched)
    for key in watched.keys:
        state = UNREADABLE if found is None else found.get(key, ABSENT)
        yield f"{watched.file}: {key}", state


def _guarded(read: Callable[[], str]) -> str:
    try:
        return read()
    except (EvalArcError, ValueError, RecursionError):
        return UNREADABLE


def _whole(layout: RunLayout, file: str) -> str:
    if kind_of(layout.root, file) == stat.S_IFDIR:
        return read_manifest(layout.root / file, limits=_TREE).sha256
    data = read_left(layout.root, file, limit=MOST_BYTES)
    if data is None:
        return ABSENT
    if file.endswith((".json", ".toml")):
        return _digest(_parsed(file, data))
    return hashlib.sha256(data).hexdigest()


def _by_key(layout: RunLayout, watched: Watched) -> dict[str, str]:
    data = read_left(layout.root, watched.file, limit=MOST_BYTES)
    if data is None:
        return {}
    document = _parsed(watched.file, data)
    if not isinstance(document, dict):
        raise ValueError("a document without keys has none to compare")
    return {key: _digest(document[key]) for key in watched.keys if key in document}


def _parsed(file: str, data: bytes) -> object:
    if file.endswith(".toml"):
        return tomllib.loads(data.decode())
    return loads(data, where=file)


def _digest(value: object) -> str:
    # A date of TOML is told by its text, and a number that JSON lacks by its name.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
