"""Whether a client's program can be seen from inside a session, decided before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_evalarc.errors import SetupError
from pytest_evalarc.isolation.bwrap import SYSTEM_FOLDERS
from pytest_evalarc.isolation.command import Policy

_MOST_LINKS = 40


def require_visible(program: Path, policy: Policy) -> None:
    """Refuse a program that lies where the session sees nothing.

    It would end as one that failed, and what never started must not count as that.

    Args:
        program: An absolute path; it, and whatever its links lead to, must be seen.
        policy: What the session is allowed.

    Raises:
        SetupError: Names the path that cannot be seen.
    """
    denied = _real(policy.deny_read)
    seen = _real((*policy.read, *policy.write)) | {Path("/", name) for name in SYSTEM_FOLDERS}
    for path in _hops(program):
        decided = next((p for p in (path, *path.parents) if p in denied or p in seen), None)
        if decided is None or decided in denied:
            also = "" if path == program else f" (a link leads from there to {path})"
            raise SetupError(
                f"program {program}",
                f"lies where no session sees it{also}",
                "name its folder in the setting reads of the client, or install it elsewhere",
            )


def _real(paths: Iterable[Path]) -> set[Path]:
    return {Path(os.path.realpath(path)) for path in paths}


def _hops(program: Path) -> Iterator[Path]:
    """Yield a path and what its own links lead to, each with folders that are no links."""
    path = program
    for _ in range(_MOST_LINKS):
        path = Path(os.path.realpath(path.parent), path.name)
        yield path
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()
