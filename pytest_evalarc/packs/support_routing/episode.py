"""One candidate at the desk: observations go out, actions come in, and everything is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from pydantic import JsonValue

from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.pack import CandidateError, Session
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.packs.support_routing.cases import Content, Ticket
from pytest_evalarc.packs.support_routing.service import ARGUMENTS, TEXT_LIMIT, TicketService

ACTIONS = 12
"""Replies that a candidate has, the one that finishes among them."""

MOST_ARGUMENTS = max(map(len, ARGUMENTS.values()))

INSTRUCTION = (
    "Assign the ticket `ticket_id` to the queue that `routing_rules` names for its category, add "
    "`note` to it exactly once, close it if and only if it is resolved, leave every other ticket "
    "as it is, and then finish."
)


class ToolCall(NamedTuple):
    """A tool to be called; both parts are whatever the candidate said."""

    tool: JsonValue
    arguments: JsonValue


class Finish(NamedTuple):
    """The end of the work; the message is kept and decides nothing."""

    message: str | None


class Episode:
    """A case in progress: the service, and the record of all that happened to it.

    Args:
        content: The case.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self._service = TicketService(
            content["tickets"],
            frozenset(content["routing_rules"].values()),
            content["disturbance"],
        )
        self.trace: list[JsonObject] = [_state("initial_state", self.tickets)]
        """Plain data in order of time: `initial_state`, each `tool_call`, then `finish` and
        `agent_error` as they come, and `final_state` once the episode is closed."""

    @property
    def tickets(self) -> dict[str, Ticket]:
        """A copy of every ticket as it is now."""
        return self._service.tickets

    def play(self, session: Session) -> None:
        """Let a candidate act until it finishes and its process has ended as it should.

        Raises:
            CandidateError: It broke the protocol, or did not finish within its actions; what it
                did before that remains.
        """
        observation = self._start()
        for step in range(1, ACTIONS + 1):
            action = _action(session.ask(observation))
            if isinstance(action, Finish):
                message = None if action.message is None else _text(action.message)
                self.trace.append({"step": step, "type": "finish", "message": message})
                session.end("eof")
                return
            observation = {
                "type": "tool_result",
                "result": self._called(step, action),
                "remaining_actions": ACTIONS - step,
            }
        raise CandidateError("action_limit", f"it did not finish within {ACTIONS} actions")

    def close(self, fault: CandidateError | None) -> dict[str, Ticket]:
        """Record how the episode ended, and return the final state."""
        if fault is not None:
            detail = printable(fault.detail)
            self.trace.append({"type": "agent_error", "kind": fault.kind, "detail": detail})
        final = self.tickets
        self.trace.append(_state("final_state", final))
        return final

    def _start(self) -> JsonObject:
        content = self._content
        return {
            "type": "start",
            "task": {
                "ticket_id": content["target"],
                "ticket_ids": [*content["tickets"]],
                "routing_rules": dict(content["routing_rules"]),
                "note": content["note"],
                "instruction": INSTRUCTION,
            },
            "tools": [*ARGUMENTS],
            "remaining_actions": ACTIONS,
        }

    def _called(self, step: int, call: ToolCall) -> JsonObject:
        """Carry out a call and return its result; the changes recorded are those really made."""
        before = self.tickets
        result, error_source = self._service.call(call.tool, call.arguments)
        after = self.tickets
        changes = {
            ticket_id: {"before": before[ticket_id], "after": after[ticket_id]}
            for ticket_id in after
            if before[ticket_id] != after[ticket_id]
        }
        entry: JsonObject = {
            "step": step,
            "type": "tool_call",
            "action": {"tool": _named(call.tool), "arguments": _recorded(call.arguments)},
            "result": _shown(result),
            "status": "ok" if error_source is None else "tool_error",
            "error_source": error_source,
            "changes": _shown(cast("JsonValue", changes)),
        }
        self.trace.append(entry)
        return result


def _action(reply: JsonValue) -> ToolCall | Finish:
    match reply:
        case {"tool": tool, "arguments": arguments, **rest} if not rest:
            return ToolCall(tool, arguments)
        case {"finish": True, "message": str(message), **rest} if not rest:
            return Finish(message)
        case {"finish": True, **rest} if not rest:
            return Finish(None)
    said = _text(canonical(reply))
    raise CandidateError("protocol", f"its reply is neither a tool call nor a finish: {said}")


def _state(kind: str, tickets: Mapping[str, Ticket]) -> JsonObject:
    return {"type": kind, "tickets": _shown(cast("JsonValue", tickets))}


def _named(tool: JsonValue) -> str:
    return _text(tool if isinstance(tool, str) else canonical(tool))


def _recorded(arguments: JsonValue) -> JsonValue:
    """Return a few texts by name as such, each cut, and any other arguments as one text, cut.

    A tool takes nothing but a few texts, and a candidate may send anything.
    """
    if isinstance(arguments, dict) and len(arguments) <= MOST_ARGUMENTS:
        shown = {_text(k): _text(v) for k, v in arguments.items() if isinstance(v, str)}
        if len(shown) == len(arguments):
            return dict(shown)
    return _text(canonical(arguments))


def _text(text: str) -> str:
    return printable(text, limit=TEXT_LIMIT)


def _shown(value: JsonValue) -> JsonValue:
    """Return a copy whose texts are safe to show: a candidate's notes are in every state."""
    match value:
        case str():
            return _text(value)
        case list():
            return [_shown(item) for item in value]
        case dict():
            return {_text(key): _shown(item) for key, item in value.items()}
    return value
