"""Tell how many examples each test tried and which failed, as `campaign.py` wants to know."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

_TRIED = re.compile(r"(\d+) passing\D*(?:test cases, )?(\d+) failing")
"""In what hypothesis tells of each phase of a test."""
COUNTS = pytest.StashKey[dict[str, int]]()
FAILED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-counts",
        metavar="FILE",
        default=None,
        help="write how many examples each test tried, and which tests failed, as JSON",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    outcome = yield
    if outcome.get_result().failed:
        item.config.stash.setdefault(FAILED, []).append(item.nodeid)
    told = getattr(item, "hypothesis_statistics", None)
    if call.when == "call" and told:
        counts = item.config.stash.setdefault(COUNTS, {})
        counts[item.nodeid] = sum(int(a) + int(b) for a, b in _TRIED.findall(told))


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("--fuzz-counts", default=None)
    if file:
        stash = session.config.stash
        told = {"tried": stash.get(COUNTS, {}), "failed": stash.get(FAILED, [])}
        Path(file).write_text(json.dumps(told), encoding="utf-8")
