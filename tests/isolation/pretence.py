"""Programs that stand in the place of bubblewrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.isolation import bwrap
from pytest_evalarc.isolation.bwrap import Bwrap
from pytest_evalarc.isolation.host import Program


def program(folder: Path, script: str) -> Path:
    """Return a script in a folder, called as bubblewrap is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bwrap"
    path.write_text(script)
    path.chmod(0o755)
    return path


def pretend(monkeypatch: pytest.MonkeyPatch, path: Path) -> Bwrap:
    """Let a program be the bubblewrap of this machine, and return its sandbox."""
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: Program(path=path, version="0.99.0"))
    return Bwrap()
