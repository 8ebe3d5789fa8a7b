"""Repository-wide pytest set-up: pytest in pytest, and what tests need from the machine."""

from __future__ import annotations

import sys
from pathlib import Path

# Test helpers are imported as `tests.<module>`, also by the pytest program, which adds no folder.
sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["pytester", "tests.needs"]
