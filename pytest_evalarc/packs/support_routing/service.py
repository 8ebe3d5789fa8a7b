"""The ticket service that the host owns: four tools, retry receipts, and one declared failure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias, cast

from pydantic import JsonValue

from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.packs.support_routing.cases import Disturbance, Moment, Ticket

TEXT_LIMIT = 512
"""Characters, that is Unicode code points, of every argument."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "get_ticket": ("ticket_id",),
    "assign_queue": ("ticket_id", "queue"),
    "add_note": ("ticket_id", "body", "request_id"),
    "close_ticket": ("ticket_id",),
}
"""The arguments of each tool: all of them are needed, all are strings, and there are no others."""

ErrorSource: TypeAlias = Literal["tool_validation", "injected"]


class Outcome(NamedTuple):
    """What a call answered, and where an error in it came from."""

    result: JsonObject
    error_source: ErrorSource | None = None


class _Refused(Exception):  # noqa: N818 - it never leaves this module.
    """The call itself is wrong; it changes nothing, and trying again will not help."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class TicketService:
    """Tickets that change through calls of tools alone.

    Args:
        tickets: The state to begin with; it is copied.
        queues: Those that a ticket may be assigned to.
        disturbance: The call that fails once; None for a service that always works.
    """

    def __init__(
        self,
        tickets: Mapping[str, Ticket],
        queues: frozenset[str],
        disturbance: Disturbance | None,
    ) -> None:
        self._tickets = copy.deepcopy(dict(tickets))
        self._queues = queues
        self._pending = disturbance
        self._receipts: dict[tuple[str, str], str] = {}
        """Body of each note by ticket and request id: what makes a repeated call harmless."""

    @property
    def tickets(self) -> dict[str, Ticket]:
        """A copy of the state as it is now."""
        return copy.deepcopy(self._tickets)

    def call(self, tool: JsonValue, arguments: JsonValue) -> Outcome:
        """Carry out a call, or say why not; whatever is asked, there is an answer."""
        try:
            return self._carried_out(tool, arguments)
        except _Refused as refusal:
            return Outcome(_error(refusal.code, retryable=False), "tool_validation")

    def _carried_out(self, tool: JsonValue, arguments: JsonValue) -> Outcome:
        given = _arguments(tool, arguments)
        ticket_id = given["ticket_id"]
        if ticket_id not in self._tickets:
            raise _Refused("ticket_not_found")
        ticket = self._tickets[ticket_id]
        match tool:
            case "assign_queue":
                return self._assign_queue(ticket, given["queue"])
            case "add_note":
                return self._add_note(ticket_id, given["body"], given["request_id"])
            case "close_ticket":
                return self._write("close_ticket", lambda: ticket.update({"status": "closed"}))
        return Outcome({"ok": True, "ticket": cast("JsonObject", copy.deepcopy(ticket))})

    def _assign_queue(self, ticket: Ticket, queue: str) -> Outcome:
        if queue not in self._queues:
            raise _Refused("unknown_queue")
        return self._write("assign_queue", lambda: ticket.update({"queue": queue}))

    def _add_note(self, ticket_id: str, body: str, request_id: str) -> Outcome:
        if not request_id:
            raise _Refused("invalid_request_id")
        receipt = (ticket_id, request_id)
        if receipt not in self._receipts:
            return self._write("add_note", lambda: self._append(receipt, body))
        if self._receipts[receipt] != body:
            raise _Refused("idempotency_conflict")
        return Outcome({"ok": True, "replayed": True})

    def _append(self, receipt: tuple[str, str], body: str) -> None:
        self._receipts[receipt] = body
        self._tickets[receipt[0]]["notes"].append(body)

    def _write(self, tool: str, change: Callable[[], None]) -> Outcome:
        """Make a change, unless the declared failure comes before it; one after it looks alike."""
        disturbed = self._disturbed(tool)
        if disturbed != "before_commit":
            change()
        if disturbed is None:
            return Outcome({"ok": True})
        return Outcome(_error("temporarily_unavailable", retryable=True), "injected")

    def _disturbed(self, tool: str) -> Moment | None:
        """Return when the call fails, if it is the one that does; there is none after it."""
        if self._pending is None or self._pending["tool"] != tool:
            return None
        moment = self._pending["moment"]
        self._pending = None
        return moment


def _arguments(tool: JsonValue, arguments: JsonValue) -> dict[str, str]:
    names = ARGUMENTS.get(tool) if isinstance(tool, str) else None
    if names is None or not isinstance(arguments, dict) or arguments.keys() != set(names):
        raise _Refused("invalid_arguments")
    given = {name: value for name, value in arguments.items() if isinstance(value, str)}
    if len(given) < len(names) or any(len(value) > TEXT_LIMIT for value in given.values()):
        raise _Refused("invalid_arguments")
    return given


def _error(code: str, *, retryable: bool) -> JsonObject:
    return {"ok": False, "error": {"code": code, "retryable": retryable}}
