"""`python -m release.locks`: pin every environment of a developer or of a release, with hashes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Lock(NamedTuple):
    """One file of pins below requirements/, and what of pyproject.toml it is made from."""

    file: str
    extras: tuple[str, ...] = ()
    group: str | None = None


LOCKS = (
    Lock("run.txt", extras=("yaml",)),
    Lock("dev.txt", extras=("dev", "yaml")),
    Lock("release.txt", group="release"),
)


def command(lock: Lock, arguments: Sequence[str] = ()) -> list[str]:
    """Return the call of uv that writes a lock; pins that still fit stay as they are."""
    wanted = ["--group", lock.group] if lock.group else ["pyproject.toml"]
    wanted += [word for extra in lock.extras for word in ("--extra", extra)]
    return [
        *(sys.executable, "-m", "uv", "pip", "compile", *wanted, *arguments),
        # One file for every platform and every Python that is supported, told apart by markers.
        *("--universal", "--python-version", "3.11", "--generate-hashes", "--no-config"),
        *("--quiet", "--custom-compile-command", "nox -s locks"),
        *("--output-file", f"requirements/{lock.file}"),
    ]


def main(arguments: Sequence[str]) -> int:
    """Write every lock again; arguments go to uv, as `--upgrade`."""
    for lock in LOCKS:
        subprocess.run(command(lock, arguments), cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
