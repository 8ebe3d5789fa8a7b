from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs_bwrap

FOUNDATION = Path(__file__).parent.parent / "benchmarks" / "foundation.py"


@pytest.mark.slow
@needs_bwrap
def test_the_flood_of_the_benchmarks_really_flows() -> None:
    """A figure of memory says nothing unless every byte went by, and nobody runs it daily."""
    size = 4 << 20

    done = subprocess.run(
        [sys.executable, FOUNDATION, "--flood-here", str(size)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout)["stdout_bytes"] == size
