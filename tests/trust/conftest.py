"""The project that pytest is run in, as the tests of the plugin have it."""

from __future__ import annotations

from tests.plugin.conftest import project

__all__ = ["project"]
