"""Names that cannot be used, or not beside each other."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

_WORDS = frozenset(
    {
        *("run", "success", "reference", "starter", "validate", "audit", "submission"),
        *("skill_dir_empty_before", "session_start", "sync_recorded"),
        *("baseline", "noise", "latest"),
    }
)
"""What stands in node ids and result folders where a task's own names stand too."""

_DEVICES = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""Names that Windows gives to no file."""

_PREFIXES = (
    *("installed-", "not_installed-", "used-", "not_used-", "hook-", "sync-"),
    *("trial-", "with-", "without-"),
)
"""How the items of expectations, trials and configurations begin."""

_PYTEST_MARKS = frozenset(
    {
        *("skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings"),
        *("timeout", "xdist_group"),
    }
)


def is_reserved(name: str) -> bool:
    """Whether a task of this name would meet a word of ours, or a device of Windows."""
    folded = name.casefold()
    return folded in _WORDS or _DEVICES.fullmatch(folded) is not None


def is_reserved_item(name: str) -> bool:
    """Whether a check or mutant of this name would meet an item that every task can have."""
    return is_reserved(name) or name.casefold().startswith(_PREFIXES)


def is_pytest_mark(tag: str) -> bool:
    """Whether pytest, or this plugin, would do something else with an item marked so."""
    return tag in _PYTEST_MARKS or tag.startswith("evalarc_")


def path_twins(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (earlier, later) for paths that some file system cannot tell apart.

    Two paths collide when they are equal after Unicode normalisation and case-folding.
    """
    seen: dict[str, str] = {}
    for path in paths:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        if (earlier := seen.setdefault(folded, path)) != path:
            yield earlier, path
