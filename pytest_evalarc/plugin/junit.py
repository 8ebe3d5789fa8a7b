"""Gates as test cases of the XML that `--junitxml` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evalarc.plugin.gating import answer_line, gate_lines

if TYPE_CHECKING:
    from pytest_evalarc.counting.gate import Decision

SUITE = "evalarc::gates"
"""Stands before a gate in its node id."""


def add_gates(config: pytest.Config, decisions: Sequence[Decision]) -> None:
    """Add a test case for each gate to the XML that `--junitxml` asks for, and write it again.

    Gates are decided when the session has ended and the file is written, and the plugin that
    writes it is reached through its hooks alone, which any version of pytest has.
    """
    plugins = config.pluginmanager.get_plugins()
    others = [plugin for plugin in plugins if type(plugin).__name__ != "LogXML"]
    if not decisions or len(others) == len(plugins):
        return
    log = config.pluginmanager.subset_hook_caller("pytest_runtest_logreport", others)
    for decision in decisions:
        for report in _reports(decision):
            log(report=report)
    finish = config.pluginmanager.subset_hook_caller("pytest_sessionfinish", others)
    session: Any = config.pluginmanager.get_plugin("session")
    finish(session=session, exitstatus=session.exitstatus)


def _reports(decision: Decision) -> Iterator[pytest.TestReport]:
    """Yield what an item of this name would have reported."""
    is_held = decision.status == "held"
    longrepr = None if is_held else "\n".join(gate_lines(decision))
    found = [("answer", answer_line(answer)) for answer in decision.answers]
    yield _report(decision.gate, "call", longrepr=longrepr)
    yield _report(decision.gate, "teardown", longrepr=None, properties=found)


def _report(
    gate: str,
    when: Any,
    *,
    longrepr: str | None,
    properties: Sequence[tuple[str, object]] = (),
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=f"{SUITE}::{gate}",
        location=(SUITE, None, gate),
        keywords={},
        outcome="failed" if longrepr else "passed",
        longrepr=longrepr,
        when=when,
        user_properties=list(properties),
    )
