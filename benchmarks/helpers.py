"""Lets modules here import `tests` as a test does, whose helpers start agents and hosts."""

from __future__ import annotations

import sys
from types import ModuleType

from processes import ROOT

_tests = ModuleType("tests")
_tests.__path__ = [str(ROOT / "tests")]
sys.modules.setdefault("tests", _tests)
