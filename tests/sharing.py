"""What the workers of one run have in common, so that none of them makes it a second time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of this run, which all of its workers write to."""
    base = factory.getbasetemp()
    # Workers have a folder each, beside each other.
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
