"""What a Cargo build runs or obeys beside the sources that it compiles."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evalarc.files.manifest import is_cache
from pytest_evalarc.tasks.trees import normalised


def build_paths(starter: Path) -> Iterator[str]:
    """Yield the paths of a starter that decide what its build runs, whether or not they are there.

    Whoever writes one of them runs code where hidden checks are compiled: manifests name programs,
    a build script is one, and so is every crate of procedural macros.

    Args:
        starter: The folder of a task's starter, which need not exist.
    """
    yield from (".cargo", "Cargo.lock")
    for manifest in sorted({starter / "Cargo.toml", *starter.rglob("Cargo.toml")}):
        place = PurePosixPath(manifest.relative_to(starter))
        if is_cache(str(place)):
            continue
        yield str(place)
        yield str(place.with_name("build.rs"))
        content = _content(manifest)
        script = _table(content, "package").get("build")
        if isinstance(script, str):
            yield normalised(str(place.parent / script))
        if _makes_macros(_table(content, "lib")):
            yield str(place.parent)


def _makes_macros(library: dict[str, Any]) -> bool:
    types = library.get("crate-type", library.get("crate_type", ()))
    named = library.get("proc-macro", library.get("proc_macro", False))
    return named is True or (isinstance(types, list) and "proc-macro" in types)


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _content(manifest: Path) -> dict[str, Any]:
    """Return a manifest; nothing where there is none, or where cargo is to complain."""
    try:
        return tomllib.loads(manifest.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
