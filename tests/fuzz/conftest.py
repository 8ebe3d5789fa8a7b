"""Tell how many examples each test tried, for `tests/fuzz/campaign.py` and whoever else asks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

_TRIED = re.compile(r"(\d+) passing\D*(?:test cases, )?(\d+) failing")
"""In what hypothesis tells of each phase of a test."""
COUNTS = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-counts",
        metavar="FILE",
        default=None,
        help="write how many examples each test tried, as JSON",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    yield
    told = getattr(item, "hypothesis_statistics", None)
    if call.when == "call" and told:
        counts = item.config.stash.setdefault(COUNTS, {})
        counts[item.nodeid] = sum(int(a) + int(b) for a, b in _TRIED.findall(told))


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("--fuzz-counts", default=None)
    if file:
        counts = session.config.stash.get(COUNTS, {})
        Path(file).write_text(json.dumps(counts), encoding="utf-8")
