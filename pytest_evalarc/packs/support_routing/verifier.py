"""What a final state must be, judged from data alone: no handler of the service is called."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from pytest_evalarc.files.text import printable
from pytest_evalarc.packs.support_routing.cases import Content, Ticket

SHOWN = 200
"""Characters of the state that a problem quotes."""


def problems(content: Content, final: Mapping[str, Ticket]) -> dict[str, str]:
    """Return what is wrong with a final state, as a sentence by dimension; right is empty.

    Args:
        content: The case: the state that it began with, and what was asked.
        final: Every ticket as it was left.
    """
    target = content["target"]
    if target not in final:
        return dict.fromkeys(("routing", "notes", "closure", "scope"), f"{target} is gone")
    before, after = content["tickets"][target], final[target]
    queue = content["routing_rules"][before["category"]]
    notes = [*before["notes"], content["note"]]
    status = "closed" if before["resolved"] else before["status"]
    return {
        "routing": _difference("the queue", after["queue"], queue),
        "notes": _difference("the notes", [*after["notes"]], [*notes]),
        "closure": _difference("the status", after["status"], status),
        "scope": _out_of_scope(content, final),
    }


def _out_of_scope(content: Content, final: Mapping[str, Ticket]) -> str:
    """Say which tickets differ in what nobody was asked to change."""
    target = content["target"]
    after = final[target]
    expected = dict(content["tickets"])
    expected[target] = {
        **expected[target],
        "queue": after["queue"],
        "status": after["status"],
        "notes": after["notes"],
    }
    touched = sorted(
        ticket_id
        for ticket_id in expected.keys() | final.keys()
        if expected.get(ticket_id) != final.get(ticket_id)
    )
    return f"what was to be left alone changed in {', '.join(touched)}" if touched else ""


def _difference(what: str, found: JsonValue, wanted: JsonValue) -> str:
    if found == wanted:
        return ""
    shown, right = (printable(json.dumps(value), limit=SHOWN) for value in (found, wanted))
    return f"{what} must be {right}, not {shown}"
