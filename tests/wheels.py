"""A wheel of the files at hand, and environments that hold what it needs without any network."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.build import ROOT

EPOCH = 1_750_000_000
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def tracked(*below: str) -> list[str]:
    """Return files that are, or would next be, under version control."""
    git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others"]
    argv = [*git, "--exclude-standard", "--", *below]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file())


def checkout(folder: Path, *, mode: int, time: float) -> Path:
    """Copy the files of this checkout as another machine may lay them."""
    for name in tracked("pytest_evalarc", "*.*", "LICENSE", "tests/*.py"):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place)
        place.chmod(mode)
        os.utime(place, (time, time))
    return folder


def closure(requirements: list[str]) -> Iterator[importlib.metadata.Distribution]:
    """Yield the installed distributions that requirements bring on this platform, each once."""
    seen: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        found = importlib.metadata.distribution(name)
        waiting += [Requirement(text) for text in found.requires or ()]
        yield found


def lay(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """Put an installed distribution's files at the same places below another environment."""
    for file in distribution.files or ():
        place = Path(os.path.normpath(packages / file))
        place.parent.mkdir(parents=True, exist_ok=True)
        if "__pycache__" not in file.parts:
            shutil.copy(str(file.locate()), place)


def lay_dependencies(environment: Path) -> None:
    """Put what the package declares that it needs into an environment, as it is in this one."""
    (packages,) = environment.glob("lib/python*/site-packages")
    for distribution in closure(PROJECT["dependencies"]):
        lay(distribution, packages)
