"""The one place that knows where the third-party settings store is."""

import sys
from pathlib import Path

# The store's folder lies beside the project, not in it.
sys.path.append(
    str(Path(__file__).resolve().parents[2] / "fixtures" / "fixture-settings")
)

from fixture_settings import SettingsStore, open_settings

__all__ = ["SettingsStore", "open_settings"]
