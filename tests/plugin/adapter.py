"""Reads of each node what VS Code's test adapter reads, and reports as it does.

It is loaded by `-p adapter` in a project of its own, as the adapter's plugin is, and leaves what
it would have sent as JSON in the file that ADAPTER_FILE names.
"""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest

RESULTS: list[dict[str, str]] = []


def absolute_id(path: Path, nodeid: str) -> str:
    """Return the id that the editor shows, keeps, and hands back on the command line."""
    return f"{path}::{nodeid.split('::', 1)[1]}"


def leaf(item: pytest.Item) -> dict[str, Any]:
    if hasattr(item, "callspec"):
        # As the adapter cuts the file off an id with parameters: any other ending is an error.
        item.nodeid.split(".py::")[1]
    line = item.location[1]
    return {
        "name": item.name,
        "line": None if line is None else line + 1,
        "id": absolute_id(item.path, item.nodeid),
        "skips": [mark.name for mark in item.own_markers if mark.name in ("skip", "skipif")],
    }


def class_line(node: pytest.Class) -> int | None:
    try:
        return inspect.getsourcelines(node.obj)[1]
    except (OSError, TypeError):
        return None


def suite(siblings: list[dict[str, Any]], name: str, node_id: str, line: int | None) -> Any:
    """Return the children of a suite, made when its id is new."""
    for sibling in siblings:
        if sibling["id"] == node_id:
            return sibling["children"]
    siblings.append({"name": name, "id": node_id, "line": line, "children": []})
    return siblings[-1]["children"]


def tree(session: pytest.Session) -> list[dict[str, Any]]:
    """Return files, below them classes as nested suites, and below those the tests."""
    files: list[dict[str, Any]] = []
    for item in session.items:
        classes = []
        parent = item.parent
        while isinstance(parent, pytest.Class):
            classes.append(parent)
            parent = parent.parent
        assert parent is not None
        children = suite(files, parent.path.name, str(parent.path), None)
        for node in reversed(classes):
            node_id = absolute_id(node.path, node.nodeid)
            children = suite(children, node.name, node_id, class_line(node))
        children.append(leaf(item))
    return files


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        return
    sent = {"tree": tree(session) if session.items else [], "results": RESULTS}
    Path(os.environ["ADAPTER_FILE"]).write_text(json.dumps(sent), "utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "setup" and report.failed:
        outcome = "error"
    elif report.when == "call" or (report.when == "setup" and report.skipped):
        outcome = report.outcome if report.outcome in ("passed", "failed") else "skipped"
    else:
        return
    message = report.longreprtext if outcome in ("failed", "error") else ""
    RESULTS.append({"nodeid": report.nodeid, "outcome": outcome, "message": message})
