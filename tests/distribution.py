"""A package that is installed as far as its metadata tells."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest


def install(
    patch: pytest.MonkeyPatch,
    folder: Path,
    name: str,
    source: str,
    *,
    requires: str = "pytest-evalarc>=0.1",
    entry_points: tuple[str, ...] | None = None,
) -> None:
    """Put a package of one module where it is found, for the rest of a test.

    Args:
        patch: Undoes it, the module's import included.
        folder: Where the package lies; shared by several.
        name: Of package and module.
        source: Of the module.
        requires: What the package says that it needs.
        entry_points: Names of its plugins of pytest, all of them the module; None is its name.
    """
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{name}.py").write_text(source, "utf-8")
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n", "utf-8"
    )
    lines = [f"{point} = {name}\n" for point in entry_points or (name,)]
    (metadata / "entry_points.txt").write_text("[pytest11]\n" + "".join(lines), "utf-8")
    patch.syspath_prepend(folder)
    # Undone, it takes the imported module away again.
    patch.setitem(sys.modules, name, ModuleType(name))
    del sys.modules[name]
